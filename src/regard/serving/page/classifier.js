/** A text classifier: its labels, which words decided, and what its heads look at. */

import { element, percent } from "./element.js";
import { createTextView } from "./textview.js";

export function createClassifier({ onChoose, onCell }) {
  const view = createTextView({ onChoose, onCell, onSelect: () => {}, label: "Tokens of the text" });
  const verdict = element("p", { class: "verdict" });
  const labels = element("ol", { class: "options" });
  const evidence = element("p", { class: "evidence", dir: "auto" });
  const legend = element("p", { class: "hint" });
  const table = element("table", { class: "kept" });
  const box = element("div", { class: "pane-body" },
    element("div", { class: "reader" }, verdict, labels,
      element("h3", {}, "Which words decided"), evidence, legend,
      element("details", {}, element("summary", {}, "Every word in numbers"), table)),
    element("div", { class: "maps" }, element("h3", {}, "Tokens"), view.row.element, view.reading, view.attention, view.overview),
    view.arcs);

  return {
    element: box,
    announcement: (found) => `Label: ${found.label}`,
    show(found, { look }) {
      const ranked = Object.entries(found.probabilities).sort(([, one], [, other]) => other - one);
      verdict.replaceChildren("Label: ", element("b", {}, found.label), ` (${percent(found.probabilities[found.label])})`);
      labels.replaceChildren(...ranked.map(([name, value], at) => element("li", {},
        element("span", { class: `option ${at === 0 ? "chosen" : ""}`, "--p": value.toFixed(4) },
          element("span", { class: "name" }, name), element("span", { class: "share" }, percent(value))))));
      const most = Math.max(1e-9, ...found.values.map(Math.abs));
      evidence.replaceChildren(...found.words.flatMap((word, at) => {
        const value = found.values[at];
        return [element("span", {
          class: `decided ${value < 0 ? "against" : "for"}`, "--w": (Math.abs(value) / most).toFixed(4),
          title: `${value.toFixed(2)}`, "data-value": String(value),
        }, word), " "];
      }));
      legend.textContent = `Blue speaks for “${found.label}”, orange for “${found.other}”: by how much the log-odds fall without the word.`;
      table.replaceChildren(
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "word"), element("th", { scope: "col" }, "log-odds"))),
        element("tbody", {}, ...found.words.map((word, at) =>
          element("tr", {}, element("th", { scope: "row" }, word), element("td", {}, found.values[at].toFixed(3))))));
      view.show(found, look);
    },
    close: () => view.close(),
  };
}
