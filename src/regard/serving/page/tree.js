/** The hypotheses of a beam as a prefix tree: shared beginnings appear only once. */

/**
 * @typedef {{tokens: string[], path: number[], logProbabilities: number[], children: Node[],
 *   rank: number, end: {rank: number, score: number, text: string} | null}} Node
 *   a run of tokens without a branch; `path` has all ids from the beginning to its end, `rank` is
 *   that of the best hypothesis through it, from 0
 */

/** @returns {Node} the root, whose own run is the beginning that all hypotheses share */
export function prefixTree(beams) {
  return grow(beams.map((beam, rank) => ({ ...beam, rank })), 0);
}

function grow(beams, from) {
  let to = from;
  const [first] = beams; // beams stay in their order, so the first is the best
  while (to < first.ids.length && beams.every((beam) => beam.ids[to] === first.ids[to])) to += 1;
  const ended = beams.find((beam) => beam.ids.length === to) ?? null;
  const branches = new Map();
  for (const beam of beams) {
    if (beam.ids.length <= to) continue;
    const id = beam.ids[to];
    branches.set(id, [...(branches.get(id) ?? []), beam]);
  }
  return {
    tokens: first.tokens.slice(from, to),
    path: first.ids.slice(0, to),
    logProbabilities: first.log_probabilities.slice(from, to),
    children: [...branches.values()].map((branch) => grow(branch, to)),
    rank: first.rank,
    end: ended && { rank: ended.rank, score: ended.score, text: ended.text },
  };
}

/**
 * Join tokens into text: pieces by SentencePiece's word marks, characters with marked spaces, or words,
 * where a tie (⁀) removes the space and an arrow (⇧) makes a capital.
 */
export function joinTokens(tokens, all) {
  const written = (some) => some.filter((token) => token !== "</s>");
  const isPieces = all.some((token) => token.startsWith("▁"));
  const isCharacters = written(all).every((token) => [...token].length === 1);
  if (isPieces) return written(tokens).join("").replaceAll("▁", " ").trim();
  if (isCharacters) return written(tokens).join("").replaceAll("␣", " ");
  return written(tokens).join(" ").replaceAll(" ⁀ ", "")
    .replace(/⇧ ?(.?)/gu, (_, letter) => letter.toUpperCase())
    .replace(/ ([.,;:!?…])/g, "$1");
}
