/**
 * The arithmetic of one cell: from the two vectors to the weight, and to what it mixes in.
 *
 * Every number comes from the server as `regard trace --json` has it and is kept in `data-value`;
 * what is shown is rounded. Only products and sums that follow from them are computed here.
 */

import { ask } from "./api.js";
import { fill } from "./composer.js";
import { element, percent } from "./element.js";
import { bare, placeOf } from "./maps.js";
import { createNotice } from "./notice.js";

const PARTS = { cross: "translation to source", encoder: "within the source", decoder: "within the translation" };
const MARKS = { "</s>": "end", "<s>": "start" };

export const arithmetic = {
  name: "arithmetic",
  title: "The arithmetic of a cell",
  suits: ({ model }) => model.attends && model.traced !== false && model.heads > 0,
  create: () => createArithmetic(),
};

function createArithmetic() {
  const choices = {};
  const fields = ["part", "layer", "head", "row", "column"].map((name) => {
    const box = element("select", { "data-choice": name });
    choices[name] = box;
    box.addEventListener("change", () => choose({ [name]: name === "part" ? box.value : Number(box.value) }));
    const titles = { part: "Attention", layer: "Layer", head: "Head", row: "of", column: "to" };
    return element("label", {}, `${titles[name]} `, box);
  });
  const hint = element("p", { class: "hint" });
  const notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
  const steps = element("div", { class: "arithmetic-steps", "aria-live": "off" });
  const box = element("div", { class: "arithmetic" }, element("div", { class: "field" }, ...fields), hint, notice.element, steps);
  let subject = null;
  let place = null; // {part, layer, head, row, column}
  let known = {}; // numbers by part, layer and head
  let abort = new AbortController();

  function choose(changes) {
    place = { ...place, ...changes };
    refresh();
  }

  async function refresh() {
    const { sizes } = subject;
    if (!(place.part in sizes)) place.part = Object.keys(sizes)[0];
    const [layers, heads] = sizes[place.part];
    place.layer = Math.min(place.layer, layers - 1);
    place.head = Math.min(place.head, heads - 1);
    const key = `${place.part}.${place.layer}.${place.head}`;
    if (!known[key]) {
      abort.abort();
      abort = new AbortController();
      const { signal } = abort;
      box.setAttribute("aria-busy", "true");
      try {
        const found = await ask("head", { ...subject.request, part: place.part, layer: place.layer, head: place.head }, { signal });
        if (signal.aborted) return;
        known[key] = found;
        notice.clear();
      } catch (error) {
        if (error.name === "AbortError" || signal.aborted) return;
        steps.replaceChildren();
        notice.show(error, refresh);
        return;
      } finally {
        if (!signal.aborted) box.removeAttribute("aria-busy");
      }
    }
    draw(known[key]);
  }

  function draw({ labels, arrays }) {
    const { weights } = arrays;
    const rows = labelsOf(labels, weights.axes[0], weights.values.length);
    const columns = labelsOf(labels, weights.axes[1], weights.values[0].length);
    place.row = Math.min(place.row, rows.length - 1);
    if (place.column === null) place.column = weights.values[place.row].indexOf(Math.max(...weights.values[place.row]));
    place.column = Math.min(place.column, columns.length - 1);
    const [layers, heads] = subject.sizes[place.part];
    const parts = Object.keys(subject.sizes);
    fill(choices.part, parts.map((name) => [name, subject.names[name] ?? PARTS[name]]), place.part);
    fill(choices.layer, numbered(layers), `${place.layer}`);
    fill(choices.head, numbered(heads), `${place.head}`);
    fill(choices.row, rows.map((label, at) => [`${at}`, label]), `${place.row}`);
    fill(choices.column, columns.map((label, at) => [`${at}`, label]), `${place.column}`);
    [parts.length, layers, heads, 2, 2].forEach((count, at) => { fields[at].hidden = count < 2; });
    const isMean = heads > 1 && subject.look.head === "mean";
    hint.hidden = !isMean;
    hint.textContent = `The map above is a mean over heads; these are the numbers of head ${place.head}.`;
    steps.replaceChildren(...stepsOf(arrays, { ...place, rows, columns }));
    steps.dataset.cell = [place.part, place.layer, place.head, place.row, place.column].join(".");
  }

  return {
    element: box,
    show(given) {
      const asked = { q: given.q, model: given.model.name, ...(given.tokens ? { tokens: given.tokens } : {}) };
      const isNew = JSON.stringify(asked) !== JSON.stringify(subject?.request);
      const isOther = isNew || JSON.stringify(given.look) !== JSON.stringify(subject?.look);
      subject = { request: asked, look: given.look, ...sizesOf(given) };
      if (isNew) known = {};
      if (isOther) place = { ...placeIn(given, subject.sizes), row: isNew ? 0 : place.row, column: isNew ? null : place.column };
      refresh();
    },
    tell({ view, row, column }) {
      const part = subject.partOf[view] ?? view;
      choose({ part, row, column });
      box.scrollIntoView({ block: "nearest" });
    },
    close() {
      abort.abort();
      notice.clear();
    },
  };
}

/** The layers and heads of each part of a model, by its answer. */
export function sizesOf({ model, answer }) {
  if (model.task !== "translate") {
    const heads = answer.heads ? Math.max(1, ...answer.heads) : model.heads;
    return {
      sizes: { [model.part]: [model.layers, heads] },
      names: { [model.part]: answer.heads ? "the neighbourhood" : "within the text" },
      partOf: { encoder: model.part },
    };
  }
  const sizes = {};
  for (const part of ["cross", "encoder", "decoder"]) {
    if (answer[part]) sizes[part] = [answer[part].length, answer[part][0].length];
  }
  if (model.family !== "transformer") sizes.cross = [1, model.heads];
  return { sizes, names: {}, partOf: {} };
}

function placeIn({ look }, sizes) {
  const part = look.view in sizes ? look.view : Object.keys(sizes)[0];
  const [layers, heads] = sizes[part];
  return {
    part,
    layer: look.layer === "mean" ? layers - 1 : placeOf(look.layer, layers),
    head: look.head === "mean" ? 0 : placeOf(look.head, heads),
  };
}

const labelsOf = (labels, axis, count) =>
  Array.from({ length: count }, (_, at) => MARKS[labels[axis]?.[at]] ?? bare(labels[axis]?.[at] ?? `${at}`));

const numbered = (count) => Array.from({ length: count }, (_, at) => [`${at}`, `${at}`]);

/** The steps from two vectors to a share of the context. */
function stepsOf(arrays, { row, column, rows, columns }) {
  const { weights, scores, mask, Z, V } = arrays;
  const from = rows[row];
  const to = columns[column];
  const weight = weights.values[row][column];
  const shown = [vectorsStep(arrays, { row, column, from, to })];
  if (scores) shown.push(softmaxStep(arrays, { row, column, columns }));
  else shown.push(section("Weight", weights.formula, line(["weight", weight])));
  if (mask && mask.values[row][column] === 0) {
    shown.push(element("p", { class: "hint" }, `“${from}” may not attend to “${to}”: the mask puts its score to minus infinity, and its weight is 0.`));
  }
  if (V && Z) {
    const value = V.values[column];
    shown.push(section("Value mixed in", Z.formula,
      vectors([
        [`V of “${to}”`, value, "value"],
        ["weight · V", value.map((number) => weight * number), "mixed"],
        [`Z of “${from}”, the sum over all`, Z.values[row], "context"],
      ])));
  }
  return shown.filter(Boolean);
}

function vectorsStep(arrays, { row, column, from, to }) {
  const queries = arrays.Q ?? arrays["compared queries"];
  const keys = arrays.K ?? arrays["compared keys"];
  const { scores } = arrays;
  if (queries && keys) {
    const query = queries.values[row];
    const key = keys.values[column];
    const product = arrays["QK^T"]?.values[row][column];
    const width = query.length;
    const given = [
      ...(product === undefined ? [] : [["product", product]]),
      ...(product === undefined ? [] : [["sqrt(d_k)", Math.sqrt(width)]]),
      ...(scores ? [["score", scores.values[row][column]]] : []),
    ];
    return section("Two vectors and their product", scores?.formula ?? "",
      vectors([
        [`query of “${from}”`, query, "query", queries.formula],
        [`key of “${to}”`, key, "key", keys.formula],
        ["query · key", query.map((number, at) => number * key[at]), "products"],
      ]), line(...given));
  }
  if (arrays["W s"] && arrays["U h"]) {
    const ours = arrays["W s"].values[row];
    const theirs = arrays["U h"].values[column];
    const inside = ours.map((number, at) => Math.tanh(number + theirs[at]));
    return section("Two vectors and their score", scores.formula,
      vectors([
        [`W s of “${from}”`, ours, "query"],
        [`U h of “${to}”`, theirs, "key"],
        ["tanh of the sum", inside, "inside"],
        ["v", arrays["v^T"].values[0], "readout"],
        ["v · tanh", inside.map((number, at) => number * arrays["v^T"].values[0][at]), "products"],
      ]), line(["score", scores.values[row][column]]));
  }
  return scores ? section("Score", scores.formula, line(["score", scores.values[row][column]])) : null;
}

function softmaxStep({ scores, weights, mask }, { row, column, columns }) {
  const open = (at) => !mask || mask.values[row][at] !== 0;
  const values = scores.values[row];
  const most = Math.max(...values.filter((_, at) => open(at)));
  const powers = values.map((value, at) => (open(at) ? Math.exp(value - most) : 0));
  const total = powers.reduce((sum, each) => sum + each, 0);
  const cells = (name, numbers, shape) => element("tr", {}, element("th", { scope: "row" }, name),
    ...numbers.map((number, at) => cell(number, { kind: shape, isHere: at === column })));
  const table = element("table", { class: "numbers" },
    element("thead", {}, element("tr", {}, element("td"), ...columns.map((label, at) =>
      element("th", { scope: "col", class: at === column ? "here" : null }, label)))),
    element("tbody", {},
      cells("score", values, "row-score"),
      cells("exp(score − most)", powers, "power"),
      cells("weight", weights.values[row], "row-weight")));
  const weight = weights.values[row][column];
  return section("Softmax over the row", weights.formula, scrolled(table),
    line(["sum of exp", total], ["weight", weight]),
    element("p", { class: "hint" }, `${short(powers[column])} / ${short(total)} = ${short(weight)}, which is ${percent(weight)} of the attention.`));
}

function section(title, formula, ...content) {
  return element("section", {}, element("h3", {}, title),
    element("p", { class: "formula" }, formula), ...content);
}

/** Vectors below each other, a column for each dimension. */
function vectors(rows) {
  const width = rows[0][1].length;
  return scrolled(element("table", { class: "numbers" },
    element("thead", {}, element("tr", {}, element("td"),
      element("th", { scope: "col" }, "sum"), ...Array.from({ length: width }, (_, at) => element("th", { scope: "col" }, `${at + 1}`)))),
    element("tbody", {}, ...rows.map(([name, numbers, kind, formula]) => element("tr", { "data-vector": kind },
      element("th", { scope: "row", title: formula || null }, name),
      kind === "products" ? cell(numbers.reduce((sum, each) => sum + each, 0), { kind: "sum" }) : element("td"),
      ...numbers.map((number) => cell(number, { kind })))))));
}

function scrolled(table) {
  return element("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "numbers, which scroll" }, table);
}

const cell = (number, { kind, isHere = false }) =>
  element("td", { "data-kind": kind, "data-value": String(number), class: isHere ? "here" : null }, short(number));

const line = (...pairs) => element("p", { class: "results" }, ...pairs.flatMap(([name, number], at) => [
  at > 0 ? " · " : "", `${name} = `, element("b", { "data-result": name, "data-value": String(number) }, short(number)),
]));

/** A number in few digits. */
export function short(number) {
  const size = Math.abs(number);
  if (size === 0) return "0";
  if (size < 0.0005 || size >= 100_000) return number.toExponential(1);
  return number.toPrecision(3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}
