/** A node of a graph: its class and its neighbours, by the attention to them; a click goes there. */

import { fill } from "./composer.js";
import { button, element, percent } from "./element.js";

const SVG = "http://www.w3.org/2000/svg";
const [SIZE, RADIUS, DRAWN] = [420, 150, 24];
const TAU = 2 * Math.PI;

const drawn = (tag, attributes, ...children) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
};

export function createGraph({ onChoose }) {
  const verdict = element("p", { class: "verdict" });
  const labels = element("ol", { class: "options" });
  const layer = element("select", { "aria-label": "layer" });
  const head = element("select", { "aria-label": "head" });
  const picture = drawn("svg", { class: "neighbourhood", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img" });
  const list = element("ol", { class: "neighbours" });
  const note = element("p", { class: "hint" });
  const legend = element("p", { class: "classes" });
  const box = element("div", { class: "pane-body" },
    element("div", { class: "reader" }, verdict, labels, element("h3", {}, "Neighbours"), note, list),
    element("div", { class: "maps" }, element("div", { class: "field" }, element("label", {}, "Layer ", layer), element("label", {}, "Head ", head)), picture, legend));
  let answer = null;
  for (const one of [layer, head]) one.addEventListener("change", () => draw());

  function weightsOf(neighbour) {
    const of = neighbour.weights[Number(layer.value)];
    if (!of) return 0;
    return head.value === "mean" ? of.reduce((sum, each) => sum + each, 0) / of.length : of[Number(head.value)];
  }

  function draw() {
    const { classes, heads, neighbours } = answer;
    fill(layer, heads.map((_, at) => [`${at}`, `${at}`]), layer.value && Number(layer.value) < heads.length ? layer.value : "0");
    const count = heads[Number(layer.value)] ?? 0;
    const wanted = head.value !== "" && head.value !== "mean" && Number(head.value) < count ? head.value : "mean";
    fill(head, [["mean", "mean"], ...Array.from({ length: count }, (_, at) => [`${at}`, `${at}`])], wanted);
    [layer, head].forEach((one) => { one.parentNode.hidden = heads.length === 0; });
    const colour = (name) => `hsl(${Math.round((360 * classes.indexOf(name)) / classes.length)} 62% 45%)`;
    const ranked = neighbours.map((each) => ({ ...each, weight: weightsOf(each) })).sort((one, other) => other.weight - one.weight);
    const most = Math.max(1e-9, ...ranked.map(({ weight }) => weight));
    list.replaceChildren(...ranked.map((each) => element("li", {},
      button(each.itself ? `${each.name} (itself)` : each.name, () => onChoose({ q: each.name }), { class: "quiet" }),
      element("span", { class: "swatch", "--colour": colour(each.label), "aria-hidden": "true" }), element("span", { class: "faint" }, each.label),
      ...(heads.length > 0 ? [element("span", { class: "share", "data-value": String(each.weight) }, percent(each.weight))] : []))));
    const others = ranked.filter(({ itself }) => !itself).slice(0, DRAWN);
    const middle = SIZE / 2;
    const lines = [];
    const nodes = others.map((each, at) => {
      const angle = (at / others.length) * TAU - TAU / 4;
      const [x, y] = [middle + RADIUS * Math.cos(angle), middle + RADIUS * Math.sin(angle)];
      lines.push(drawn("line", { x1: middle, y1: middle, x2: x, y2: y, class: "edge", "stroke-width": (1 + 7 * (each.weight / most)).toFixed(2) }));
      const label = drawn("text", { x: middle + (RADIUS + 22) * Math.cos(angle), y: middle + (RADIUS + 22) * Math.sin(angle) + 4, "text-anchor": "middle" }, each.name.slice(0, 14));
      const made = drawn("g", { class: "node" }, drawn("circle", { cx: x, cy: y, r: 11, fill: colour(each.label) }), label);
      made.addEventListener("click", () => onChoose({ q: each.name }));
      return made;
    });
    picture.replaceChildren(...lines, ...nodes, drawn("circle", { cx: middle, cy: middle, r: 16, fill: colour(answer.label), class: "centre" }),
      drawn("text", { x: middle, y: middle + 34, "text-anchor": "middle", class: "here" }, answer.name.slice(0, 20)));
    picture.setAttribute("aria-label", `${answer.name} and ${others.length} neighbours; the list has them all`);
    legend.replaceChildren(...classes.flatMap((name) => [element("span", { class: "swatch", "--colour": colour(name), "aria-hidden": "true" }), `${name} `]));
  }

  return {
    element: box,
    announcement: (found) => `Node ${found.name}: ${found.label}`,
    show(found) {
      answer = found;
      const known = found.known === null ? "" : `, in the data ${found.known}`;
      verdict.replaceChildren("Node ", element("b", {}, found.name), `: ${found.label} (${percent(found.probabilities[found.label])}${known})`);
      const ranked = Object.entries(found.probabilities).sort(([, one], [, other]) => other - one).slice(0, 8);
      labels.replaceChildren(...ranked.map(([name, value], at) => element("li", {},
        element("span", { class: `option ${at === 0 ? "chosen" : ""}`, "--p": value.toFixed(4) },
          element("span", { class: "name" }, name), element("span", { class: "share" }, percent(value))))));
      note.textContent = `It attends to ${found.degree} of ${found.nodes} nodes, itself among them; choose one to go there.`;
      draw();
    },
  };
}
