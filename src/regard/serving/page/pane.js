/** One model's translation of the sentence, with its attention, alternatives and beam. */

import { createAlternatives } from "./alternatives.js";
import { translate } from "./api.js";
import { createBeam } from "./beam.js";
import { button, element } from "./element.js";
import { factsOf, languageTag } from "./models.js";
import { createNotice } from "./notice.js";
import { joinTokens } from "./tree.js";
import { Viewer } from "./viewer.js";

const LONG = 24; // pieces of a sentence whose heat map needs the whole width
const NOTHING = { key: "", q: "", forced: [], abort: new AbortController() };

export class Pane {
  /**
   * @param {{onForce: (ids: number[] | null) => void, onChoose: (choice: object) => void,
   *   onPoint: (place: object | null) => void, onAnswer: () => void}} options  `onForce` gets the
   *   ids that the translation must begin with, null to undo the last ones; `onPoint` gets the
   *   highlighted word; `onAnswer` is called when there is a new answer
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
    this.contrast = element("p", { class: "hint", hidden: true }, "In blue: words that the other translation does not have.");
    this.#compose();
    this.model = null;
    this.answer = null;
    this.request = NOTHING;
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
  translate(model, { q, forced }) {
    const key = JSON.stringify([model.name, q, forced]);
    if (key === this.request.key) return;
    this.model = model;
    this.title.textContent = model.title;
    this.facts.textContent = factsOf(model);
    const since = Math.max(forced.length, q === this.request.q ? this.request.forced.length : 0);
    this.request.abort.abort();
    this.request = {
      key, q, forced, abort: new AbortController(),
      // The word to select after a reader has forced a word or undone that.
      place: since - 1, focus: this.body.contains(document.activeElement),
    };
    this.#send();
  }

  async #send() {
    const { q, forced, abort } = this.request;
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
      this.notice.show(error, () => this.#send());
    }
  }

  #write(text) {
    this.body.hidden = false;
    this.body.classList.add("writing");
    this.viewer.write(this.request.q, text, this.model);
  }

  #showAnswer(answer) {
    this.answer = answer;
    this.element.removeAttribute("aria-busy");
    this.body.classList.remove("writing");
    this.body.hidden = false;
    this.#showForced();
    this.beam.show(answer.beams ?? [], languageTag(this.model.target));
    this.onAnswer(); // the listener calls `look`
    const { place, focus } = this.request;
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
    const { length } = this.request.forced;
    this.forced.hidden = length === 0;
    const { tokens } = this.answer.target;
    const text = joinTokens(tokens.slice(0, length), tokens);
    this.forced.replaceChildren(
      "Made to begin with ",
      element("q", { lang: languageTag(this.model.target), dir: "auto" }, text), " ",
      button("Undo", () => this.onForce(null), { class: "quiet" }));
  }

  #showAlternatives() {
    const selected = this.viewer.selectedUnit;
    const unit = selected ?? this.viewer.leastCertain(this.request.forced.length);
    this.alternatives.show(this.answer, unit, {
      isSelected: selected !== null, lang: languageTag(this.model.target),
    });
  }

  /**
   * Show a view, layer and head, by words or by pieces; `different` has the indices of the words that
   * the translation of the other model does not have.
   */
  look(look, different = []) {
    const drawn = JSON.stringify([this.request.key, look, different]);
    if (!this.answer || this.element.hasAttribute("aria-busy")) this.drawn = "";
    else if (drawn !== this.drawn) {
      this.drawn = drawn; // drawing it again would only lose the pointer and the focus
      this.contrast.hidden = different.length === 0;
      this.body.classList.toggle("long", this.answer.source.tokens.length > LONG);
      const last = this.request.forced.length - 1;
      this.viewer.show(this.answer, this.model, look, (unit, index) =>
        `${unit.pieces.includes(last) ? "forced-word" : ""} ${different.includes(index) ? "different" : ""}`);
      this.#showAlternatives();
    }
  }

  /** Highlight a source word that is pointed at in the other pane; null for none. */
  echo(index) {
    const place = index === null ? null : { side: "source", index };
    if (this.answer) this.viewer.point(place && index < this.viewer.units.source.length ? place : null);
  }

  /** Cancel the request and remove the pane from the page. */
  close() {
    this.request.abort.abort();
    this.notice.clear();
    this.viewer.overview.close();
    this.element.remove();
  }
}
