/** A language model: it writes on, and shows what it expects at each token and what it looks at. */

import { post } from "./api.js";
import { button, element, percent } from "./element.js";
import { bare } from "./maps.js";
import { createNotice } from "./notice.js";
import { createTextView } from "./textview.js";

const PAUSE = 120; // milliseconds after the temperature was moved

export function createLanguage({ onChoose, onAsk, onCell }) {
  const view = createTextView({ onChoose, onCell, onSelect: () => showSteps(), label: "Tokens of the text" });
  const temperature = element("input", { type: "range", min: "0", max: "2", step: "0.05", name: "temperature", "aria-label": "temperature" });
  temperature.value = "0.8";
  const degree = element("output", {}, "0.8");
  const length = element("input", { type: "number", min: "1", max: "400", name: "length", "aria-label": "most new tokens" });
  length.value = "60";
  const again = element("input", { type: "number", min: "0", max: "99999", name: "seed", "aria-label": "seed" });
  again.value = "1";
  const go = button("Write on", () => write(), { class: "primary" });
  const stop = button("Stop", () => abort.abort(), { hidden: true });
  const take = button("Look at all of it", () => onChoose({ q: subject.q + written }), { class: "quiet", hidden: true });
  const text = element("p", { class: "written", dir: "auto", "aria-live": "off", hidden: true });
  const notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
  const heading = element("h3");
  const steps = element("ol", { class: "options" });
  const controls = element("div", { class: "field writer" },
    element("label", {}, "Temperature ", temperature, " ", degree),
    element("label", {}, "tokens ", length), element("label", {}, "seed ", again), go, stop, take);
  const box = element("div", { class: "pane-body" },
    element("div", { class: "reader" }, controls, text, notice.element,
      element("h3", {}, "Tokens"), view.row.element, view.reading,
      element("section", { class: "alternatives" }, heading, steps)),
    element("div", { class: "maps" }, view.attention, view.overview), view.arcs);
  let subject = null;
  let answer = null;
  let written = "";
  let timer = null;
  let abort = new AbortController();

  temperature.addEventListener("input", () => {
    degree.textContent = temperature.value;
    clearTimeout(timer);
    timer = setTimeout(() => onAsk({ temperature: Number(temperature.value) }), PAUSE);
  });

  /** Show what the model expects after the selected token, or after the last. */
  function showSteps() {
    const at = view.selected ?? answer.steps.length - 1;
    const token = bare(answer.source.tokens[at]);
    heading.textContent = answer.both_ways ? `In place of “${token}”` : `After “${token}”`;
    const step = answer.steps[at];
    steps.replaceChildren(...step.alternatives.map((option) => element("li", {},
      element("span", { class: `option ${option.token === step.token ? "chosen" : ""}`, "--p": option.probability.toFixed(4) },
        element("span", { class: "name", dir: "auto" }, bare(option.token)),
        element("span", { class: "share", "data-value": String(option.probability) }, percent(option.probability))))));
  }

  async function write() {
    abort.abort();
    abort = new AbortController();
    const { signal } = abort;
    written = "";
    const shown = element("span", { class: "new" });
    text.hidden = false;
    text.replaceChildren(subject.q, shown, element("span", { class: "caret", "aria-hidden": "true" }));
    [go.hidden, stop.hidden, take.hidden] = [true, false, true];
    notice.clear();
    try {
      await post("generate", {
        q: subject.q, model: subject.model.name, temperature: Number(temperature.value),
        max_tokens: Math.max(1, Math.min(400, Number(length.value) || 60)), seed: Math.max(0, Math.floor(Number(again.value) || 0)),
      }, { signal, onEvent: (name, data) => {
        if (name !== "token") return;
        written += data.text;
        shown.textContent = written;
      } });
    } catch (error) {
      if (error.name !== "AbortError") notice.show(error, write);
    }
    text.querySelector(".caret")?.remove();
    if (signal !== abort.signal) return;
    [go.hidden, stop.hidden, take.hidden] = [false, true, written === ""];
  }

  return {
    element: box,
    options: () => ({ temperature: Number(temperature.value) }),
    announcement: (found) => `${found.read} tokens were read`,
    show(found, given) {
      if (subject?.q !== given.q || subject.model !== given.model) {
        abort.abort();
        text.hidden = true;
        take.hidden = true;
      }
      answer = found;
      subject = given;
      go.parentNode.classList.toggle("reads-only", !given.model.writes);
      for (const one of [go, length.parentNode, again.parentNode]) one.hidden = !given.model.writes;
      view.show(found, given.look, {
        classOf: (index) => (unsure(found, index) ? "unsure" : ""),
        describe: (index) => describe(found, index),
      });
      showSteps();
    },
    close() {
      clearTimeout(timer);
      abort.abort();
      notice.clear();
      view.close();
    },
  };
}

/** Whether the model did not expect a token, which the step before it foresaw. */
const expected = (found, index) => found.steps[found.both_ways ? index : index - 1]?.probability ?? null;
const unsure = (found, index) => (expected(found, index) ?? 1) < 0.1;
const describe = (found, index) => (expected(found, index) === null ? null : `${percent(expected(found, index))} expected`);
