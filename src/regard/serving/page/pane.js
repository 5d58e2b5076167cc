/** One model's translation of the sentence, with all that can be seen of how it came about. */

import { createAlternatives } from "./alternatives.js";
import { translate } from "./api.js";
import { createBeam } from "./beam.js";
import { button, element } from "./element.js";
import { factsOf, languageTag } from "./models.js";
import { createNotice } from "./notice.js";
import { joinTokens } from "./tree.js";
import { Viewer } from "./viewer.js";

const LONG = 24; // pieces of a sentence whose heat map wants the whole width
const NOTHING = { key: "", q: "", forced: [], abort: new AbortController() };

export class Pane {
  /**
   * @param {{onForce: (ids: number[] | null) => void, onChoose: (choice: object) => void,
   *   onPoint: (place: object | null) => void, onAnswer: () => void}} options  `onForce` hears the
   *   ids that the translation shall begin with, null to take the last ones back; `onPoint` the
   *   word that is lit; `onAnswer` that there is something new to look at
   */
  constructor({ onForce, onChoose, onPoint, onAnswer }) {
    this.onForce = onForce;
    this.onAnswer = onAnswer;
    this.viewer = new Viewer({ onChoose, onPoint, onSelect: () => this.#showAlternatives() });
    this.alternatives = createAlternatives({
      onForce: (step, id) =>
        onForce([...this.answer.steps.slice(0, step).map((each) => each.id), id]),
    });
    this.beam = createBeam({ onBegin: onForce });
    this.notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
    this.title = element("h2");
    this.facts = element("p", { class: "facts" });
    this.forced = element("p", { class: "forced", hidden: true });
    this.contrast = element("p", { class: "hint", hidden: true }, "In blue: words that the other has not.");
    this.#compose();
    this.model = null;
    this.answer = null;
    this.wanted = NOTHING;
    this.drawn = "";
  }

  #compose() {
    const { viewer } = this;
    this.body = element("div", { class: "pane-body", hidden: true },
      element("div", { class: "reader" },
        element("h3", {}, "Source"), viewer.rows.source.element,
        element("h3", {}, "Translation"), viewer.rows.target.element,
        this.contrast, this.forced, viewer.reading, viewer.blind, this.alternatives.element),
      element("div", { class: "maps" }, viewer.attention, viewer.overview.element),
      this.beam.element);
    this.element = element("section", { class: "pane" },
      element("header", {}, this.title, this.facts), this.notice.element, this.body);
  }

  /** Show a model's translation of a sentence, beginning with these ids. */
  ask(model, { q, forced }) {
    const key = JSON.stringify([model.name, q, forced]);
    if (key === this.wanted.key) return;
    this.model = model;
    this.title.textContent = model.title;
    this.facts.textContent = factsOf(model);
    const since = Math.max(forced.length, q === this.wanted.q ? this.wanted.forced.length : 0);
    this.wanted.abort.abort();
    this.wanted = {
      key, q, forced, abort: new AbortController(),
      // Where a reader who forced a word, or took one back, goes on.
      place: since - 1, focus: this.body.contains(document.activeElement),
    };
    this.#request();
  }

  async #request() {
    const { q, forced, abort } = this.wanted;
    this.notice.clear();
    if (!q) {
      this.#showNothing();
      return;
    }
    this.element.setAttribute("aria-busy", "true");
    const request = { q, model: this.model.name };
    if (forced.length > 0) request.prefix_tokens = forced;
    try {
      const onText = (text) => { if (!abort.signal.aborted) this.#write(text); };
      const answer = await translate(request, { onText, signal: abort.signal });
      if (!abort.signal.aborted) this.#showAnswer(answer);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.#showNothing();
      this.notice.show(error, () => this.#request());
    }
  }

  #write(text) {
    this.body.hidden = false;
    this.body.classList.add("writing");
    this.viewer.write(this.wanted.q, text, this.model);
  }

  #showAnswer(answer) {
    this.answer = answer;
    this.element.removeAttribute("aria-busy");
    this.body.classList.remove("writing");
    this.body.hidden = false;
    this.#showForced();
    this.beam.show(answer.beams ?? [], languageTag(this.model.target));
    this.onAnswer(); // whoever hears it says how to look at the answer
    const { place, focus } = this.wanted;
    if (place >= 0) this.viewer.selectPiece(place, { focus });
  }

  #showNothing() {
    this.answer = null;
    this.element.removeAttribute("aria-busy");
    this.body.classList.remove("writing");
    this.body.hidden = true;
    this.onAnswer();
  }

  #showForced() {
    const { length } = this.wanted.forced;
    this.forced.hidden = length === 0;
    const { tokens } = this.answer.target;
    const text = joinTokens(tokens.slice(0, length), tokens);
    this.forced.replaceChildren(
      "Made to begin with ",
      element("q", { lang: languageTag(this.model.target), dir: "auto" }, text), " ",
      button("Undo", () => this.onForce(null), { class: "quiet" }));
  }

  #showAlternatives() {
    const asked = this.viewer.selectedUnit;
    this.alternatives.show(this.answer, asked ?? this.viewer.leastCertain(this.wanted.forced.length), {
      asked: asked !== null, lang: languageTag(this.model.target),
    });
  }

  /**
   * Show a view, layer and head, words or pieces; `different` are the places of the words that the
   * model beside this one does not have.
   */
  look(look, different = []) {
    const drawn = JSON.stringify([this.wanted.key, look, different]);
    if (!this.answer || this.element.hasAttribute("aria-busy")) this.drawn = "";
    else if (drawn !== this.drawn) {
      this.drawn = drawn; // drawing again would lose the pointer and the focus for nothing
      this.contrast.hidden = different.length === 0;
      this.body.classList.toggle("long", this.answer.source.tokens.length > LONG);
      const last = this.wanted.forced.length - 1;
      this.viewer.show(this.answer, this.model, look, (unit, index) =>
        `${unit.pieces.includes(last) ? "forced-word" : ""} ${different.includes(index) ? "different" : ""}`);
      this.#showAlternatives();
    }
  }

  /** Light a source word up because it was pointed at elsewhere; null for none. */
  echo(index) {
    const place = index === null ? null : { side: "source", index };
    if (this.answer) this.viewer.point(place && index < this.viewer.units.source.length ? place : null);
  }

  /** Stop what is under way and leave the page. */
  close() {
    this.wanted.abort.abort();
    this.notice.clear();
    this.viewer.overview.close();
    this.element.remove();
  }
}
