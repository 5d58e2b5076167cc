/** The heat map: a row for each word that attends, a column for each word it may attend to. */

import { element, percent } from "./element.js";

/**
 * @param {{onPoint: (cell: {row: number, column: number} | null) => void,
 *   onChoose?: (cell: {row: number, column: number}) => void}} options
 */
export function createHeatMap({ onPoint, onChoose = null }) {
  const table = element("table");
  const picture = element("div", { class: "heatmap", role: "img" }, table);
  const legend = element("p", { class: "legend" });
  let rows = [];
  let columns = [];

  const placeOf = (cell) => ({ row: cell.parentNode.rowIndex - 1, column: cell.cellIndex - 1 });
  picture.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell) onPoint(placeOf(cell));
  });
  picture.classList.toggle("choosable", onChoose !== null);
  picture.addEventListener("click", (event) => {
    const cell = event.target.closest("tbody td");
    if (cell) onChoose?.(placeOf(cell));
  });
  picture.addEventListener("pointerleave", () => onPoint(null));
  // A map that scrolls must be reachable by keyboard; one that fits need not be.
  new ResizeObserver(() => {
    picture.toggleAttribute("tabindex", picture.scrollWidth > picture.clientWidth);
    if (picture.hasAttribute("tabindex")) picture.tabIndex = 0;
  }).observe(table);

  return {
    element: element("div", { class: "map-frame" }, picture, legend),
    /** @param {import("./maps.js").Shown} map */
    show(map, title) {
      columns = map.columns.map((unit) =>
        element("th", { scope: "col" }, element("span", { class: labelClass(unit) }, unit.label)));
      rows = map.rows.map((unit, index) => element("tr", {},
        element("th", { scope: "row" }, element("span", { class: labelClass(unit) }, unit.label)),
        ...map.weights[index].map((weight) =>
          element("td", { "--w": (map.most > 0 ? weight / map.most : 0).toFixed(4) }))));
      table.replaceChildren(
        element("thead", {}, element("tr", {}, element("td"), ...columns)),
        element("tbody", {}, ...rows));
      picture.style.setProperty("--columns", map.columns.length);
      picture.setAttribute("aria-label", `${title}: ${summary(map)}`);
      legend.replaceChildren(
        element("span", {}, "Share of attention"), "0\u00a0%", element("span", { class: "scale", "aria-hidden": "true" }), percent(map.most));
    },
    /** Highlight one row and one column; null for neither. */
    point({ row, column }) {
      table.classList.toggle("pointing", row !== null || column !== null);
      table.classList.toggle("by-row", row !== null);
      rows.forEach((line, index) => {
        line.classList.toggle("pointed", index === row);
        [...line.cells].forEach((cell, place) =>
          cell.classList.toggle("crossed", column !== null && place === column + 1));
      });
      columns.forEach((label, index) => label.classList.toggle("pointed", index === column));
    },
  };
}

const labelClass = (unit) => (unit.mark ? "mark" : unit.glued ? "glued" : null);

/** The map in words, for screen readers: what each row attends to most. */
function summary(map) {
  return map.rows.map((unit, index) => {
    const row = map.weights[index];
    const best = row.indexOf(Math.max(...row));
    return `${unit.label} at ${map.columns[best].label} ${percent(row[best])}`;
  }).join(", ");
}
