/** Arcs over a line of tokens, from each token to those that it attends to. */

import { element } from "./element.js";

const SVG = "http://www.w3.org/2000/svg";
const SLIGHT = 0.03; // weaker attention is left out
const LETTER = 9.5; // width of a letter of the labels, roughly
const MOST = 80; // tokens: more would only be a haze

const drawn = (tag, attributes, ...children) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
};

export function createArcs() {
  const picture = drawn("svg", { class: "arcs-picture", role: "img" });
  const box = element("section", { class: "arcs", hidden: true }, element("h3", {}, "Arcs"),
    element("p", { class: "hint" }, "From each token to what it attends to, of the head that is shown; point at a token to see its own."),
    element("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "arcs, which scroll" }, picture));
  let lines = [];
  let labels = [];

  return {
    element: box,
    /** @param {import("./maps.js").Shown | null} map */
    show(map) {
      box.hidden = !map || map.rows.length < 2 || map.rows.length > MOST;
      if (box.hidden) return;
      const widths = map.columns.map((unit) => Math.max(22, unit.label.length * LETTER + 14));
      const starts = widths.map((_, at) => widths.slice(0, at).reduce((sum, each) => sum + each, 0));
      const middle = (at) => starts[at] + widths[at] / 2;
      const width = starts.at(-1) + widths.at(-1);
      const height = Math.min(190, 46 + width / 5);
      const most = Math.max(...map.weights.flat()) || 1;
      lines = [];
      map.weights.forEach((weights, from) => weights.forEach((weight, to) => {
        if (weight < SLIGHT || from === to) return;
        const [left, right] = [middle(to), middle(from)];
        const top = height - 34 - Math.min(height - 42, 12 + Math.abs(right - left) / 2.6);
        const path = drawn("path", {
          d: `M ${right} ${height - 28} C ${right} ${top}, ${left} ${top}, ${left} ${height - 28}`,
          class: "arc", "stroke-opacity": (0.08 + (0.92 * weight) / most).toFixed(3), "stroke-width": (0.6 + 2.2 * weight).toFixed(2),
        });
        lines.push({ from, path });
      }));
      labels = map.columns.map((unit, at) =>
        drawn("text", { x: middle(at), y: height - 10, "text-anchor": "middle" }, unit.label));
      picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      picture.setAttribute("width", width);
      picture.setAttribute("height", height);
      picture.setAttribute("aria-label", `Arcs between ${map.rows.length} tokens`);
      picture.replaceChildren(...lines.map(({ path }) => path), ...labels);
    },
    /** Show only the arcs of one token; null for all. */
    point(index) {
      for (const { from, path } of lines) path.classList.toggle("faded", index !== null && from !== index);
      labels.forEach((label, at) => label.classList.toggle("here", at === index));
    },
  };
}
