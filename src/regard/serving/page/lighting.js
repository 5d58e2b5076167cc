/** Which words are highlighted when one is pointed at, and the text that describes it. */

const SLIGHT = 0.01; // smaller weights are not listed
const MOST = 4;

/**
 * @typedef {{side: string, index: number, column?: number}} Place  a word pointed at, or a cell
 * @typedef {{source: number[] | null, target: number[] | null, row: number | null,
 *   column: number | null, reading: Reading | null}} Light  weights of each side's words, 0 to 1
 * @typedef {{label: string, arrow: string, others: {label: string, weight: number}[]}} Reading
 *   a word and the words that it attends to (←) or that attend to it (→), the strongest first
 */

/** No word is highlighted. @type {Light} */
export const DARK = Object.freeze({ source: null, target: null, row: null, column: null, reading: null });

/**
 * A word of the rows highlights what it attends to, a word of the columns what attends to it.
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
        : reading(map.rows[place.index], "←", [row[only]], [map.columns[only]], 0),
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

function reading(unit, arrow, weights, others, least = SLIGHT) {
  const strongest = weights
    .map((weight, index) => ({ weight, label: others[index].label }))
    .filter(({ weight }) => weight >= least)
    .sort((one, other) => other.weight - one.weight)
    .slice(0, MOST);
  return { label: unit.label, arrow, others: strongest };
}
