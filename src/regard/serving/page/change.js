/**
 * Interventions: what a reader changes inside the model, and what becomes of the output.
 *
 * Every change is written as `regard intervene` has it, so that it can be repeated there.
 */

import { ask } from "./api.js";
import { sizesOf } from "./arithmetic.js";
import { fill } from "./composer.js";
import { differences } from "./difference.js";
import { button, element, percent } from "./element.js";
import { createHeatMap } from "./heatmap.js";
import { shownMap, unitsOf } from "./maps.js";
import { createNotice } from "./notice.js";
import { createWeightEditor } from "./weights.js";

const PAUSE = 250; // milliseconds after the last change before the model is asked
const PARTS = { cross: "translation to source", encoder: "within the source", decoder: "within the translation" };

export const change = {
  name: "change",
  title: "Change what it looks at",
  suits: ({ model }) => model.attends && model.task !== "forecast",
  create: () => createChange(),
};

/** What can be changed of a subject: words by the names that the server knows, and steps. */
function materialOf(subject) {
  const { model, answer, look } = subject;
  if (model.task === "classify-nodes") {
    const words = answer.neighbours.map(({ name }) => ({ label: name, ref: name }));
    return { words, steps: [], map: null, headsOf: answer.heads, ...sizesOf(subject) };
  }
  const translates = model.task === "translate";
  const map = shownMap(answer, { ...look, view: translates ? "cross" : "encoder", layer: translates ? look.layer : "", head: "mean" });
  const units = unitsOf(answer.source, look.byPiece || !translates);
  const words = units.map((unit) => {
    const word = translates ? answer.source.words[unit.pieces[0]] : unit.pieces[0];
    return { label: unit.label, ref: word === -1 ? "</s>" : `#${word}` };
  });
  return {
    words, map, causal: !translates && model.part === "decoder",
    steps: map ? map.rows.map((unit) => ({ label: unit.label, steps: unit.pieces })) : [],
    ...sizesOf(subject),
  };
}

function createChange() {
  const hidden = element("div", { class: "toggles", role: "group" });
  const heads = element("div", { class: "heads" });
  const swaps = [element("select", { "aria-label": "first word" }), element("select", { "aria-label": "second word" })];
  const scope = element("select", { "aria-label": "heads whose attention is set" });
  const editor = createWeightEditor({ onForce: force, onMove: move });
  const applied = element("ul", { class: "applied" });
  const notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
  const outcome = element("div", { class: "outcome", role: "status" });
  const swapField = element("div", { class: "field" }, element("label", {}, "Swap the values of ", swaps[0]),
    element("label", {}, "and ", swaps[1]), button("Swap", () => {
      add("swap", `${swaps[0].value}=${swaps[1].value}`, `swap ${labelOf(swaps[0].value)} and ${labelOf(swaps[1].value)}`);
    }));
  const editing = element("section", {}, element("h3", {}, "Set the attention of a step"),
    element("p", { class: "hint" }, "Click a cell to put all attention there, drag it to another cell of its row to move it, or use the sliders."),
    element("div", { class: "field" }, element("label", {}, "In ", scope)), editor.element);
  const headSection = element("section", {}, element("h3", {}, "Switch heads off"), heads);
  const hideTitle = element("h3", {}, "Hide a word");
  const maps = [0, 1].map(() => createHeatMap({ onPoint: () => {} }));
  const box = element("div", { class: "change" },
    element("section", {}, hideTitle, hidden), headSection,
    element("section", {}, swapField), editing, applied, notice.element, outcome);
  let material = null;
  let request = null;
  let changes = []; // {kind, text, label}
  let timer = null;
  let abort = new AbortController();

  const labelOf = (ref) => `“${material.words.find((word) => word.ref === ref)?.label ?? ref}”`;
  const has = (kind, text) => changes.some((each) => each.kind === kind && each.text === text);

  function add(kind, text, label, key = text) {
    changes = [...changes.filter((each) => each.kind !== kind || each.key !== key), { kind, text, label, key }];
    refresh();
  }

  function toggle(kind, text, label) {
    if (!has(kind, text)) { add(kind, text, label); return; }
    changes = changes.filter((each) => each.kind !== kind || each.text !== text);
    refresh();
  }

  /** Give a step these weights, one for each source word. */
  function force(row, weights) {
    const { label, steps } = material.steps[row];
    const shares = material.words
      .map((word, at) => [word.ref, weights[at]])
      .filter(([, weight]) => weight > 0)
      .map(([ref, weight]) => `${ref}:${weight.toFixed(6)}`).join(",");
    changes = changes.filter((each) => each.row !== row);
    for (const step of steps) {
      const text = `${step}=${shares}${suffix()}`;
      changes.push({ kind: "force", text, key: `${step}`, row, weights, label: `attention of “${label}” set` });
    }
    refresh();
  }

  function move(row, from, to) {
    const weights = [...editor.weights(row)];
    weights[to] += weights[from];
    weights[from] = 0;
    force(row, weights);
  }

  const suffix = () => (scope.value ? `@${scope.value}` : "");

  function refresh() {
    for (const one of hidden.children) one.setAttribute("aria-pressed", String(has("hide", one.dataset.text)));
    for (const one of heads.querySelectorAll("button")) one.setAttribute("aria-pressed", String(has("off", one.dataset.text)));
    editor.mark(new Map(changes.filter((each) => each.kind === "force").map((each) => [each.row, each.weights])));
    const labels = [...new Set(changes.map((each) => each.label))];
    applied.replaceChildren(...labels.map((label) => element("li", {}, label, " ", button("Undo", () => {
      changes = changes.filter((each) => each.label !== label);
      refresh();
    }, { class: "quiet", "aria-label": `Undo: ${label}` }))));
    applied.hidden = labels.length === 0;
    clearTimeout(timer);
    abort.abort();
    box.removeAttribute("aria-busy");
    if (changes.length === 0) { outcome.replaceChildren(); notice.clear(); return; }
    timer = setTimeout(send, PAUSE);
  }

  async function send() {
    abort = new AbortController();
    const { signal } = abort;
    const asked = { ...request };
    for (const { kind, text } of changes) asked[kind] = [...(asked[kind] ?? []), text];
    box.setAttribute("aria-busy", "true");
    try {
      const found = await ask("intervene", asked, { signal });
      notice.clear();
      draw(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      outcome.replaceChildren();
      notice.show(error, send);
    }
    if (!signal.aborted) box.removeAttribute("aria-busy");
  }

  function draw({ before, after, kept, changes: changed }) {
    const pair = [before, after];
    const words = pair.map(({ text }) => text.split(/\s+/).filter(Boolean));
    const lines = pair.map((_, at) => {
      const different = new Set(differences(words[at], words[1 - at]));
      return element("p", { class: "output", "data-output": at ? "after" : "before" },
        element("span", { class: "caption" }, at ? "after " : "before "),
        ...words[at].flatMap((word, place) => [different.has(place) ? element("mark", {}, word) : word, " "]));
    });
    const said = changed.length === 0 ? "The output stays the same."
      : `Changed: ${changed.map((one) => `${one.before || "nothing"} → ${one.after || "nothing"}`).join(", ")}.`;
    const rows = before.tokens.map((token, at) => element("tr", {}, element("th", { scope: "row" }, token),
      share(before.probabilities[at]), share(kept[at])));
    const table = element("table", { class: "kept" },
      element("thead", {}, element("tr", {}, ...["before", "probability", "now"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows));
    outcome.replaceChildren(...lines, element("p", {}, said),
      element("details", {}, element("summary", {}, "How probable each token was, and is now"), table), ...mapsOf(pair));
  }

  function mapsOf(pair) {
    if (!pair.every(({ attention }) => attention?.target.length > 0)) return [];
    return [element("div", { class: "pair" }, ...pair.map(({ attention }, at) => {
      const unit = (label) => ({ label, pieces: [], mark: false, glued: false });
      const most = Math.max(0, ...attention.weights.flat());
      const title = at ? "Attention after" : "Attention before";
      maps[at].show({ weights: attention.weights, rows: attention.target.map(unit), columns: attention.source.map(unit), most }, title);
      return element("section", {}, element("h3", {}, title), maps[at].element);
    }))];
  }

  function compose() {
    const { words, sizes, steps, map, causal } = material;
    const isGraph = steps.length === 0;
    hideTitle.textContent = isGraph ? "Hide a neighbour" : "Hide a word";
    hidden.setAttribute("aria-label", hideTitle.textContent);
    hidden.replaceChildren(...words.slice(0, 60).map(({ label, ref }) =>
      button(label, () => toggle("hide", ref, `“${label}” hidden`), { class: "toggle", "aria-pressed": "false", "data-text": ref })));
    const parts = Object.entries(sizes);
    heads.replaceChildren(...parts.flatMap(([part, [layers, count]]) =>
      Array.from({ length: layers }, (_, layer) => element("div", { class: "toggles", role: "group", "aria-label": `${part} layer ${layer}` },
        element("span", { class: "caption" }, `${material.names[part] ?? PARTS[part] ?? part}, layer ${layer}`),
        ...Array.from({ length: material.headsOf?.[layer] ?? count }, (__, head) => {
          const text = `${part}.${layer}.${head}`;
          return button(`${head}`, () => toggle("off", text, `head ${text} off`), {
            class: "toggle", "aria-pressed": "false", "data-text": text, "aria-label": `${part} layer ${layer} head ${head} off`,
          });
        })))));
    headSection.hidden = parts.length === 0;
    const options = words.map(({ label, ref }) => [ref, label]);
    swaps.forEach((one, at) => fill(one, options, options[Math.min(at, options.length - 1)]?.[0] ?? ""));
    swapField.parentNode.hidden = isGraph || words.length < 2;
    editing.hidden = !map;
    if (map) {
      const [part, [layers, count]] = parts.find(([name]) => name === "cross") ?? parts[0];
      fill(scope, [[part, "all heads"], ...Array.from({ length: layers }, (_, layer) => [`${part}.${layer}`, `layer ${layer}`]),
        ...(count > 1 ? Array.from({ length: layers * count }, (_, at) =>
          [`${part}.${Math.floor(at / count)}.${at % count}`, `layer ${Math.floor(at / count)}, head ${at % count}`]) : [])], part);
      scope.parentNode.hidden = layers * count < 2;
      editor.show(map, { causal });
    }
  }

  return {
    element: box,
    show(subject) {
      const asked = { q: subject.q, model: subject.model.name };
      const next = JSON.stringify([asked, subject.tokens ?? null, subject.look, subject.answer.target?.tokens]);
      if (next === request?.key) return;
      const isSame = request && JSON.stringify(asked) === JSON.stringify(request.asked);
      request = Object.defineProperties({ ...asked }, { key: { value: next }, asked: { value: asked } });
      material = materialOf(subject);
      if (!isSame) { changes = []; outcome.replaceChildren(); }
      else changes = changes.filter((each) => each.kind !== "force");
      compose();
      refresh();
    },
    close() {
      clearTimeout(timer);
      abort.abort();
      notice.clear();
    },
  };
}

const share = (value) => element("td", { "data-value": String(value) }, percent(value));
