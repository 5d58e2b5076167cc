/** An editor of attention: click a cell or drag it along its row; or move the sliders of a step. */

import { fill } from "./composer.js";
import { element, percent } from "./element.js";

/**
 * @param {{onForce: (row: number, weights: number[]) => void,
 *   onMove: (row: number, from: number, to: number) => void}} options
 *   `onForce` gets a step and its weights, `onMove` the words between which its weight moves
 */
export function createWeightEditor({ onForce, onMove }) {
  const table = element("table");
  const picture = element("div", { class: "heatmap editable" }, table);
  new ResizeObserver(() => {
    if (picture.scrollWidth > picture.clientWidth) picture.tabIndex = 0;
    else picture.removeAttribute("tabindex");
  }).observe(table);
  const step = element("select", { "aria-label": "step" });
  const sliders = element("div", { class: "sliders", role: "group", "aria-label": "attention of the step" });
  let map = null;
  let forced = new Map();
  let causal = false;
  let start = null;

  const weights = (row) => forced.get(row) ?? map.weights[row];
  const row = () => Number(step.value || 0);
  const cellAt = (event) => {
    const cell = document.elementFromPoint(event.clientX, event.clientY)?.closest?.("td");
    if (!cell || !table.contains(cell)) return null;
    return { row: cell.parentNode.rowIndex - 1, column: cell.cellIndex - 1 };
  };
  const isOpen = (at, column) => !causal || column <= at;

  table.addEventListener("pointerdown", (event) => {
    if (!event.target.closest("td")) return;
    start = cellAt(event);
    if (start && start.column < 0) start = null;
    table.querySelector(".dragged")?.classList.remove("dragged");
    if (start) event.target.closest("td").classList.add("dragged");
  });
  table.addEventListener("pointerup", (event) => {
    const end = cellAt(event);
    table.querySelector(".dragged")?.classList.remove("dragged");
    if (start && end && end.row === start.row && isOpen(end.row, end.column)) {
      step.value = `${end.row}`;
      if (end.column === start.column) onForce(end.row, map.columns.map((_, at) => Number(at === end.column)));
      else onMove(end.row, start.column, end.column);
    }
    start = null;
  });
  step.addEventListener("change", () => slide());

  /** Show the weights of the chosen step as sliders. */
  function slide() {
    const now = weights(row());
    const focus = [...sliders.querySelectorAll("input")].indexOf(document.activeElement);
    sliders.replaceChildren(...map.columns.map((unit, at) => {
      const slider = element("input", { type: "range", min: "0", max: "100", step: "1", disabled: !isOpen(row(), at) });
      slider.value = `${Math.round(100 * now[at])}`;
      slider.addEventListener("input", () => set(at, Number(slider.value) / 100));
      return element("label", {}, element("span", {}, unit.label), slider, element("output", {}, percent(now[at])));
    }));
    if (focus >= 0) sliders.querySelectorAll("input")[focus]?.focus();
  }

  /** Give a word a weight; the others share the rest as they did before. */
  function set(at, value) {
    const now = weights(row());
    const rest = now.reduce((sum, each, place) => sum + (place === at ? 0 : each), 0);
    const open = now.filter((_, place) => place !== at && isOpen(row(), place)).length;
    onForce(row(), now.map((each, place) => {
      if (place === at) return open ? value : 1;
      if (rest > 0) return (each / rest) * (1 - value);
      return isOpen(row(), place) ? (1 - value) / open : 0;
    }));
  }

  function draw() {
    const most = Math.max(0.0001, ...map.rows.flatMap((_, at) => weights(at)));
    table.replaceChildren(
      element("thead", {}, element("tr", {}, element("td"), ...map.columns.map((unit) =>
        element("th", { scope: "col" }, element("span", {}, unit.label))))),
      element("tbody", {}, ...map.rows.map((unit, at) => element("tr", { class: forced.has(at) ? "forced-row" : null },
        element("th", { scope: "row" }, element("span", {}, unit.label)),
        ...weights(at).map((weight) => element("td", { "--w": (weight / most).toFixed(4), title: percent(weight) }))))));
    picture.style.setProperty("--columns", map.columns.length);
  }

  return {
    element: element("div", { class: "editor" }, element("div", { class: "attention" }, picture),
      element("div", {}, element("div", { class: "field" }, element("label", {}, "Step ", step)), sliders)),
    weights,
    /** @param {import("./maps.js").Shown} given */
    show(given, options) {
      map = given;
      causal = options.causal ?? false;
      forced = new Map();
      fill(step, map.rows.map((unit, at) => [`${at}`, unit.label]), `${Math.min(row(), map.rows.length - 1)}`);
      draw();
      slide();
    },
    /** Show which steps have weights of the reader's. */
    mark(given) {
      if (!map) return;
      forced = given;
      draw();
      slide();
    },
  };
}
