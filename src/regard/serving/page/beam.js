/** The beam as a tree; a click on a branch forces the translation to begin that way. */

import { element, button, percent } from "./element.js";
import { joinTokens, prefixTree } from "./tree.js";

/**
 * @param {{onBegin: (ids: number[]) => void}} options  the ids that the translation begins with
 */
export function createBeam({ onBegin }) {
  const holder = element("div", { class: "tree-frame" });
  const heading = element("h3");
  const section = element("section", { class: "beam", hidden: true }, heading,
    element("p", { class: "hint" }, "Other hypotheses of the search; choose a branch to force it. "
      + "In a branch: its probability. After a hypothesis: its rank and score, the log-probability "
      + "by length; the nearer to 0, the better."),
    holder);

  return {
    element: section,
    show(beams, lang) {
      section.hidden = beams.length < 2;
      if (section.hidden) return;
      const all = beams.flatMap((beam) => beam.tokens);
      const root = prefixTree(beams);
      const first = root.tokens.length > 0 ? [root] : root.children;
      heading.textContent = `The ${beams.length} best of the beam`;
      holder.replaceChildren(element("ul", { class: "tree", lang }, ...branches(first, all, onBegin)));
    },
  };
}

/** Sibling branches; an only child needs no probability. */
function branches(nodes, all, onBegin) {
  return nodes.map((node) => {
    const parts = [box(node, all, { rivals: nodes.length > 1, onBegin })];
    if (node.end) {
      parts.push(element("span", { class: "score", title: "Rank and score" },
        `${node.end.rank + 1}.\u2002${node.end.score.toFixed(2).replace("-", "−")}`));
    }
    if (node.children.length > 0) {
      parts.push(element("ul", {}, ...branches(node.children, all, onBegin)));
    }
    return element("li", {}, ...parts);
  });
}

function box(node, all, { rivals, onBegin }) {
  const text = joinTokens(node.tokens, all);
  const content = [text ? element("bdi", {}, text) : element("span", { class: "mark" }, "end")];
  if (rivals) {
    content.push(element("span", { class: "share" }, percent(Math.exp(node.logProbabilities[0]))));
  }
  const attributes = { class: `branch ${node.rank === 0 ? "best" : ""}` };
  // The end cannot be forced, and forcing the shown translation would change nothing.
  if (!text || (node.rank === 0 && node.end)) return element("span", attributes, ...content);
  const made = button("", () => onBegin(idsWithoutEnd(node)), attributes);
  made.replaceChildren(...content);
  return made;
}

/** The ids up to a node without the end token: the search decides again where to end. */
function idsWithoutEnd(node) {
  return node.tokens.at(-1) === "</s>" ? node.path.slice(0, -1) : node.path;
}
