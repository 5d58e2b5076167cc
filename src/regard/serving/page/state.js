/** The state of the page, stored in the address: a copied address shows the same page. */

/**
 * @typedef {object} State
 * @property {string} q  the text
 * @property {string} sentence  which of its sentences is looked at, counted from 0
 * @property {string} model  name of the model; "" is the first
 * @property {string} with  name of the model to compare with; "" is none
 * @property {string} view  "cross", "encoder" or "decoder"
 * @property {string} layer  a number from 0 as everywhere in Regard, "mean", or "" for the last
 * @property {string} head  a number from 0, or "mean"
 * @property {string} pieces  "yes", "no", or "" to decide by the sentence
 * @property {string} force  ids that translations must begin with, separated by commas: "5,8" for
 *   the first sentence, "5,8;2:7" for the first and the third
 * @property {string} forceWith  the same for the model to compare with
 * @property {string} open  names of the panels that are open, separated by commas
 */

/** @type {State} */
export const DEFAULTS = Object.freeze({
  q: "", sentence: "0", model: "", with: "", view: "cross", layer: "", head: "mean", pieces: "",
  force: "", forceWith: "", open: "",
});

// A longer text would not fit into an address everywhere; the page then keeps it to itself.
const LONGEST_ADDRESS = 4000;

const FORCED = /^((\d+:)?\d+(,\d+)*(;(\d+:)?\d+(,\d+)*)*)?$/;
const VALID = {
  sentence: /^\d{1,5}$/,
  view: /^(cross|encoder|decoder)$/,
  layer: /^(|mean|\d{1,3})$/,
  head: /^(mean|\d{1,3})$/,
  pieces: /^(|yes|no)$/,
  force: FORCED,
  forceWith: FORCED,
  open: /^([a-z]{1,20}(,[a-z]{1,20})*)?$/,
};

/** Read the part of an address after "#"; invalid values are ignored. */
export function readState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) {
    const value = given.get(name);
    if (value !== null && (VALID[name]?.test(value) ?? true)) state[name] = value;
  }
  return state;
}

/** Write a state as the part of an address after "#"; defaults are left out. */
export function writeState(state) {
  const given = new URLSearchParams();
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (state[name] !== usual && (name !== "q" || fitsAddress(state))) given.set(name, state[name]);
  }
  return `#${given}`;
}

/** Whether an address can hold the whole state. */
export const fitsAddress = (state) => state.q.length <= LONGEST_ADDRESS;

/** The ids in the text of `force`, by sentence. @returns {Record<number, number[]>} */
export function forcesOf(text) {
  const entries = (text ? text.split(";") : []).map((entry) => {
    const [place, ids] = entry.includes(":") ? entry.split(":") : ["0", entry];
    return [Number(place), ids.split(",").map(Number)];
  });
  return Object.fromEntries(entries);
}

/** The text of `force`; sentences without ids are left out. */
export function writeForces(forces) {
  return Object.entries(forces)
    .filter(([, ids]) => ids.length > 0)
    .map(([place, ids]) => (place === "0" ? ids.join(",") : `${place}:${ids.join(",")}`))
    .join(";");
}
