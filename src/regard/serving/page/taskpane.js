/** One model of another task than translation: what it makes of a text, a window or a node. */

import { ask } from "./api.js";
import { createClassifier } from "./classifier.js";
import { element } from "./element.js";
import { createForecast } from "./forecast.js";
import { createGraph } from "./graph.js";
import { createLanguage } from "./language.js";
import { factsOf } from "./models.js";
import { createNotice } from "./notice.js";
import { createPanels } from "./panels.js";

/** What is shown of each task; each is made once for a pane. */
const BODIES = {
  "language-model": createLanguage,
  "classify-text": createClassifier,
  forecast: createForecast,
  "classify-nodes": createGraph,
};

export class TaskPane {
  /**
   * @param {{onChoose: (choice: object) => void, onAnswer: () => void,
   *   onOpen: (name: string, isOpen: boolean) => void}} options  as those of a Pane
   */
  constructor({ onChoose, onAnswer, onOpen }, task) {
    this.task = task;
    this.onAnswer = onAnswer;
    this.answer = null;
    this.text = { sentences: [] };
    this.place = 0;
    this.key = "";
    this.abort = new AbortController();
    this.title = element("h2");
    this.facts = element("p", { class: "facts" });
    this.notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
    this.panels = createPanels({ onOpen, onChange: onChoose });
    this.body = BODIES[task]({
      onChoose, onAsk: (options) => this.#ask(options),
      onCell: (cell) => this.panels.tell("arithmetic", { ...cell, view: "encoder" }),
    });
    this.body.element.hidden = true;
    this.element = element("section", { class: "pane task-pane" },
      element("header", {}, element("div", {}, this.title, this.facts)),
      this.notice.element, this.body.element, this.panels.element);
  }

  /** What screen readers hear when the answer is there. */
  get announcement() {
    return this.answer ? this.body.announcement(this.answer) : "";
  }

  /** Show what a model makes of an input. */
  translate(model, { q }) {
    this.model = model;
    this.title.textContent = model.title;
    this.facts.textContent = factsOf(model);
    const key = JSON.stringify([model.name, q]);
    if (key === this.key) return;
    this.key = key;
    this.q = q;
    this.abort.abort();
    if (!q) { this.#showNothing(); return; }
    this.#ask({});
  }

  async #ask(options) {
    this.abort.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.element.setAttribute("aria-busy", "true");
    try {
      const answer = await ask("look", { q: this.q, model: this.model.name, ...this.body.options?.(), ...options }, { signal });
      if (signal.aborted) return;
      this.notice.clear();
      this.element.removeAttribute("aria-busy");
      // Other maps of the page know a text by its source and its target, of which there is none.
      this.answer = { ...answer, target: { tokens: [], words: [], word_texts: [], ids: null } };
      this.body.element.hidden = false;
      this.drawn = "";
      this.onAnswer();
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      this.#showNothing();
      this.notice.show(error, () => this.#ask(options));
    }
  }

  #showNothing() {
    this.answer = null;
    this.element.removeAttribute("aria-busy");
    this.body.element.hidden = true;
    this.notice.clear();
    this.panels.show(null);
    this.onAnswer();
  }

  /** Show a layer and a head of the answer. */
  look(look, different, open = []) {
    if (!this.answer) return;
    const seen = { ...look, view: "encoder", byPiece: true };
    const drawn = JSON.stringify([this.key, seen]);
    if (drawn === this.drawn) { this.panels.show(this.subject, open); return; }
    this.drawn = drawn;
    const { model, answer, q } = this;
    this.body.show(answer, { model, q, look: seen });
    this.subject = { model, answer, q, look: seen };
    this.panels.show(this.subject, open);
  }

  /** There is no other side on which a word could be pointed at. */
  echo() {}

  /** Cancel the requests and remove the pane from the page. */
  close() {
    this.abort.abort();
    this.notice.clear();
    this.panels.close();
    this.body.close?.();
    this.element.remove();
  }
}
