/** The form for typing or opening a text, for picking an example, and for choosing models. */

import { button, element } from "./element.js";
import { companionsOf, languageTag, modelNamed, titlesOf } from "./models.js";
import { openTexts } from "./transfer.js";

// What is typed, and what the button does, by task.
const WORDS = {
  translate: ["Text", "Translate"], "language-model": ["Text", "Read"], "classify-text": ["Text", "Classify"],
  forecast: ["Window", "Forecast"], "classify-nodes": ["Node", "Look"],
};
const PAUSE = 400; // milliseconds without a keystroke before a text is sent

/**
 * @param {{onChange: (changes: Partial<import("./state.js").State>) => void,
 *   onProblem: (message: string) => void}} options  `onProblem` hears of a file that is no text
 */
export function createComposer({ onChange, onProblem }) {
  const form = document.getElementById("composer");
  const sentence = document.getElementById("sentence");
  const examples = document.getElementById("examples");
  const select = { model: document.getElementById("model"), with: document.getElementById("with") };
  let timer = null;
  let composing = false;

  const send = () => {
    clearTimeout(timer);
    onChange({ q: sentence.value.trim() });
  };
  const sendSoon = () => {
    clearTimeout(timer);
    if (!composing) timer = setTimeout(send, PAUSE);
  };
  sentence.addEventListener("input", () => { fit(sentence); sendSoon(); });
  sentence.addEventListener("compositionstart", () => { composing = true; });
  sentence.addEventListener("compositionend", () => { composing = false; sendSoon(); });
  sentence.addEventListener("keydown", (event) => {
    // Enter begins a new line, as in any text, and sends what is there.
    if (event.key === "Enter" && !event.isComposing) setTimeout(send);
  });
  const file = document.getElementById("file");
  document.getElementById("open").addEventListener("click", () => file.click());
  openTexts({ input: file, box: sentence, onText: (text) => onChange({ q: text.trim() }), onProblem });
  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  for (const [name, box] of Object.entries(select)) {
    box.addEventListener("change", () => onChange({ [name]: box.value }));
  }
  new ResizeObserver(() => fit(sentence)).observe(form);

  return {
    /** Show a state without changing text that is being typed. */
    show(state, models) {
      const model = modelNamed(models, state.model);
      const companions = companionsOf(models, model);
      const titles = titlesOf(models);
      const titled = (each) => [each.name, titles[models.indexOf(each)]];
      fill(select.model, models.map(titled), model.name);
      fill(select.with, [["", "none"], ...companions.map(titled)], state.with);
      document.getElementById("model-choice").hidden = models.length < 2;
      document.getElementById("with-choice").hidden = companions.length === 0;
      if (sentence.value.trim() !== state.q) {
        sentence.value = state.q;
        fit(sentence);
      }
      const lang = model.source ? languageTag(model.source) : null;
      if (lang) sentence.lang = lang;
      const [label, action] = WORDS[model.task] ?? WORDS.translate;
      form.querySelector("label[for=sentence]").textContent = label;
      form.querySelector(".primary").textContent = action;
      showExamples(model, lang, state.q);
    },
  };

  function showExamples(model, lang, current) {
    examples.hidden = model.examples.length === 0;
    examples.replaceChildren(
      element("span", { class: "caption" }, "Examples"),
      ...model.examples.map((text) => button(text, () => onChange({ q: text }), {
        lang, dir: "auto", class: "example", "aria-pressed": String(text === current),
      })));
  }
}

/** Give a select these options, unless it has them already. */
export function fill(select, options, value) {
  const has = [...select.options].map((option) => `${option.value}\n${option.text}`).join("\n");
  if (has !== options.map((pair) => pair.join("\n")).join("\n")) {
    select.replaceChildren(...options.map(([name, title]) => element("option", { value: name }, title)));
  }
  select.value = value;
}

/** Make a text box as high as its text. */
function fit(box) {
  box.style.setProperty("height", "auto");
  const border = box.offsetHeight - box.clientHeight;
  box.style.setProperty("height", `${box.scrollHeight + border}px`);
}
