/** Which words light up when one is pointed at, and how that reads as a sentence. */

import { percent } from "./element.js";

/**
 * @typedef {{side: string, index: number, column?: number}} Place  a word pointed at, or a cell
 * @typedef {{source: number[] | null, target: number[] | null, row: number | null,
 *   column: number | null, reading: string}} Light  weights of each side's words, 0 to 1
 */

/** No word is lit. @type {Light} */
export const DARK = Object.freeze({ source: null, target: null, row: null, column: null, reading: "" });

/**
 * A word of the rows lights what it attends to; a word of the columns lights what attends to it.
 * @param {import("./maps.js").Shown | null} map
 * @param {Place} place
 * @returns {Light}
 */
export function lightOf(map, place) {
  if (!map) return DARK;
  if (place.side === map.rowSide) {
    const row = map.weights[place.index];
    const only = place.column;
    return {
      ...DARK,
      [map.columnSide]: row.slice(map.shift),
      row: place.index,
      column: only ?? null,
      reading: only === undefined
        ? reading(map.rows[place.index], "←", row, map.columns)
        : `${map.rows[place.index].label} ← ${map.columns[only].label} ${percent(row[only])}`,
    };
  }
  if (place.side === map.columnSide) {
    const column = map.weights.map((row) => row[place.index + map.shift]);
    return {
      ...DARK,
      [map.rowSide]: column,
      column: place.index + map.shift,
      reading: reading(map.columns[place.index + map.shift], "→", column, map.rows),
    };
  }
  return DARK;
}

function reading(unit, arrow, weights, others) {
  const strongest = weights
    .map((weight, index) => ({ weight, label: others[index].label }))
    .filter(({ weight }) => weight >= 0.01)
    .sort((one, other) => other.weight - one.weight)
    .slice(0, 4)
    .map(({ weight, label }) => `${label} ${percent(weight)}`);
  return `${unit.label} ${arrow} ${strongest.join(", ") || "nothing"}`;
}
