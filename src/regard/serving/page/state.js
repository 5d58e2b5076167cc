/** The state of the page, stored in the address: a copied address shows the same page. */

/**
 * @typedef {object} State
 * @property {string} q  the sentence
 * @property {string} model  name of the model; "" is the first
 * @property {string} with  name of the model to compare with; "" is none
 * @property {string} view  "cross", "encoder" or "decoder"
 * @property {string} layer  a number from 0 as everywhere in Regard, "mean", or "" for the last
 * @property {string} head  a number from 0, or "mean"
 * @property {string} pieces  "yes", "no", or "" to decide by the sentence
 * @property {string} force  ids that the translation must begin with, separated by commas
 * @property {string} forceWith  the same for the model to compare with
 */

/** @type {State} */
export const DEFAULTS = Object.freeze({
  q: "", model: "", with: "", view: "cross", layer: "", head: "mean", pieces: "",
  force: "", forceWith: "",
});

const VALID = {
  view: /^(cross|encoder|decoder)$/,
  layer: /^(|mean|\d{1,3})$/,
  head: /^(mean|\d{1,3})$/,
  pieces: /^(|yes|no)$/,
  force: /^(\d+(,\d+)*)?$/,
  forceWith: /^(\d+(,\d+)*)?$/,
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
    if (state[name] !== usual) given.set(name, state[name]);
  }
  return `#${given}`;
}

/** The ids in the text of `force`. */
export const idsOf = (text) => (text ? text.split(",").map(Number) : []);
