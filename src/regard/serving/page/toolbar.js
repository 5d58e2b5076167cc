/** The choice of attention: cross-attention or self-attention, layer and head. */

import { fill } from "./composer.js";
import { element } from "./element.js";
import { layersOf, placeOf, suitsPieces, viewsOf } from "./maps.js";

const VIEWS = {
  cross: "Translation to source",
  encoder: "Within the source",
  decoder: "Within the translation",
};

/**
 * @param {{onChange: (changes: Partial<import("./state.js").State>) => void}} options
 */
export function createToolbar({ onChange }) {
  const bar = document.getElementById("toolbar");
  const select = (name) => {
    const box = element("select", { name });
    box.addEventListener("change", () => onChange({ [name]: box.value }));
    return box;
  };
  const view = select("view");
  const layer = select("layer");
  const head = select("head");
  const pieces = element("input", { type: "checkbox", name: "pieces" });
  pieces.addEventListener("change", () => onChange({ pieces: pieces.checked ? "yes" : "no" }));
  const choices = [
    element("label", {}, "Attention ", view),
    element("label", {}, "Layer ", layer),
    element("label", {}, "Head ", head),
    element("label", {}, pieces, " Subwords"),
  ];
  bar.append(...choices);
  bar.addEventListener("submit", (event) => event.preventDefault());

  return {
    /** Offer the views, layers and heads of these answers, which share one toolbar. */
    show(state, answers) {
      const views = Object.keys(VIEWS).filter((name) =>
        answers.some((answer) => viewsOf(answer).includes(name)));
      const layers = answers.map((answer) => layersOf(answer, state.view));
      const layerCount = Math.max(0, ...layers.map((each) => each.length));
      const headCount = Math.max(0, ...layers.flat().map((each) => each.length));
      const cut = answers.some(({ source, target }) => [source, target].some(hasSubwords));
      fill(view, views.map((name) => [name, VIEWS[name]]), state.view);
      fill(layer, [...numbers(layerCount), ["mean", "mean"]],
        state.layer === "mean" ? "mean" : `${placeOf(state.layer, layerCount)}`);
      fill(head, [["mean", "mean"], ...numbers(headCount)],
        state.head === "mean" ? "mean" : `${placeOf(state.head, headCount)}`);
      pieces.checked = showsPieces(state, answers);
      const offered = [views.length > 1, layerCount > 1, headCount > 1, cut];
      choices.forEach((choice, place) => { choice.hidden = !offered[place]; });
      bar.hidden = !offered.includes(true);
    },
  };
}

/** Whether pieces are shown: as the reader chose, or else as suits the sentences. */
export function showsPieces(state, answers) {
  if (state.pieces) return state.pieces === "yes";
  return answers.some(({ source, target }) => suitsPieces(source) || suitsPieces(target));
}

const numbers = (count) => Array.from({ length: count }, (_, place) => [`${place}`, `${place}`]);

/** Whether any word has more than one piece. */
const hasSubwords = ({ words }) => words.some((word, place) => word !== -1 && word === words[place - 1]);
