/** Attention maps of an answer: which one to show, with pieces merged into words. */

/**
 * @typedef {{tokens: string[], words: number[], word_texts: string[]}} Side  a sentence in pieces
 * @typedef {{label: string, pieces: number[], mark: boolean, glued: boolean}} Unit
 *   what is shown as one word: a whole word or one piece; `mark` is the end or beginning of the
 *   sentence, `glued` a piece that continues the word of the piece before it
 * @typedef {{weights: number[][], rows: Unit[], columns: Unit[], rowSide: string,
 *   columnSide: string, shift: number, most: number}} Shown
 *   a map between units; column c stands for unit c - shift of its side
 */

const MARKS = { "</s>": "end", "<s>": "start" };

/** The views for which an answer has weights. */
export function viewsOf(answer) {
  const has = { cross: answer.cross ?? answer.mean, encoder: answer.encoder, decoder: answer.decoder };
  return Object.keys(has).filter((view) => has[view]);
}

/** The layers of a view, each a list of heads, each a map of pieces. */
export function layersOf(answer, view) {
  if (view === "cross") return answer.cross ?? (answer.mean ? [[answer.mean]] : []);
  return answer[view] ?? [];
}

/** The sentence as units: whole words, or pieces. */
export function unitsOf(side, byPiece) {
  const units = [];
  side.tokens.forEach((token, index) => {
    const word = side.words[index];
    const previous = side.words[index - 1];
    const continues = index > 0 && word === previous && word !== -1;
    if (word === -1 && token in MARKS) {
      units.push({ label: MARKS[token], pieces: [index], mark: true, glued: false });
    } else if (byPiece) {
      units.push({ label: bare(token), pieces: [index], mark: false, glued: continues });
    } else if (continues) {
      units.at(-1).pieces.push(index);
    } else if (word !== -1) {
      const label = side.word_texts[word] ?? bare(token);
      units.push({ label, pieces: [index], mark: false, glued: false });
    }
  });
  return units;
}

/** A piece without SentencePiece's mark of a word's beginning. */
export const bare = (token) => (token.length > 1 ? token.replace(/^▁/, "") : token);

/** Whether the sentence should be shown in pieces: few spaces and many pieces, as in Chinese. */
export function suitsPieces(side) {
  return side.tokens.length > 4 && side.tokens.length > 4 * side.word_texts.length;
}

/**
 * The map to show, or null if the model has none of this view.
 * @returns {Shown | null}
 */
export function shownMap(answer, { view, layer, head, byPiece }) {
  const layers = layersOf(answer, view);
  if (layers.length === 0) return null;
  const chosen = layer === "mean" ? layers : [layers[placeOf(layer, layers.length)]];
  const heads = chosen.flatMap((each) =>
    head === "mean" ? each : [each[placeOf(head, each.length)]]);
  const rowSide = view === "encoder" ? "source" : "target";
  const columnSide = view === "decoder" ? "target" : "source";
  const columnPieces = view === "decoder" ? asRead(answer.target) : answer[columnSide];
  const rows = unitsOf(answer[rowSide], byPiece);
  const columns = unitsOf(columnPieces, byPiece);
  const weights = merge(mean(heads), rows, columns);
  const most = Math.max(0, ...weights.flat());
  return { weights, rows, columns, rowSide, columnSide, shift: view === "decoder" ? 1 : 0, most };
}

/** The index of a named layer or head; the last one if none is named or the number is too large. */
export const placeOf = (named, count) => (named === "" ? count - 1 : Math.min(Number(named), count - 1));

/** The decoder's input at each step: the begin token, then all tokens but the last. */
function asRead(side) {
  return {
    tokens: ["<s>", ...side.tokens.slice(0, -1)],
    words: [-1, ...side.words.slice(0, -1)],
    word_texts: side.word_texts,
  };
}

/** The mean of maps of the same shape. */
export function mean(maps) {
  if (maps.length === 1) return maps[0];
  return maps[0].map((row, i) =>
    row.map((_, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length));
}

/** Units instead of pieces: a row is the mean over its pieces, a column the sum over its pieces. */
export function merge(weights, rows, columns) {
  return rows.map((row) => columns.map((column) => {
    let sum = 0;
    for (const i of row.pieces) for (const j of column.pieces) sum += weights[i]?.[j] ?? 0;
    return sum / row.pieces.length;
  }));
}
