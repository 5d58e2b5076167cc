/** One model's translation of the text, with attention, alternatives and beam of one sentence. */

import { createAlternatives } from "./alternatives.js";
import { translate } from "./api.js";
import { createBeam } from "./beam.js";
import { button, element } from "./element.js";
import { factsOf, languageTag } from "./models.js";
import { createNotice } from "./notice.js";
import { createPanels } from "./panels.js";
import { TextTranslation } from "./text.js";
import { createOutlets } from "./transfer.js";
import { joinTokens } from "./tree.js";
import { createUnknown } from "./unknown.js";
import { Viewer } from "./viewer.js";
import { createWhole, joined } from "./whole.js";

const LONG = 24; // pieces of a sentence whose heat map needs the whole width
const NOTHING = { key: "", q: "", forced: [], abort: new AbortController() };
const TOO_LONG = 413;

export class Pane {
  /**
   * @param {{onForce: (ids: number[] | null) => void, onChoose: (choice: object) => void,
   *   onPoint: (place: object | null) => void, onAnswer: () => void,
   *   onSentence: (place: number) => void, onOpen: (name: string, isOpen: boolean) => void}} options  `onForce` gets the ids that the translation must
   *   begin with, null to undo the last ones; `onPoint` gets the highlighted word; `onAnswer` is
   *   called when there is something new to show; `onSentence` gets the chosen sentence,
   *   `onOpen` a panel that was opened or closed
   */
  constructor({ onForce, onChoose, onPoint, onAnswer, onSentence, onOpen }) {
    this.onForce = onForce;
    this.onAnswer = onAnswer;
    this.text = new TextTranslation({
      onSentences: () => { this.#showSentences(); this.onAnswer(); },
      onFound: () => { this.#showWhole(); this.onAnswer(); },
      onError: (error) => this.notice.show(error, () => this.text.translateAll()),
    });
    this.whole = createWhole({ onChoose: onSentence });
    this.outlets = createOutlets({
      textOf: () => joined(this.text.sentences, this.text.shown(this.wanted.forces)),
      nameOf: () => `translation.${languageTag(this.model.target) ?? "out"}.txt`,
    });
    this.unknown = createUnknown();
    this.viewer = new Viewer({
      onChoose, onPoint, onSelect: () => this.#showAlternatives(),
      onCell: (cell) => this.panels.tell("arithmetic", { ...cell, view: this.looked.view }),
    });
    this.alternatives = createAlternatives({
      onForce: (step, id) =>
        onForce([...this.answer.steps.slice(0, step).map((each) => each.id), id]),
    });
    this.beam = createBeam({ onBegin: onForce });
    this.panels = createPanels({ onOpen, onChange: onChoose });
    this.notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
    this.title = element("h2");
    this.facts = element("p", { class: "facts" });
    this.forced = element("p", { class: "forced", hidden: true });
    this.contrast = element("p", { class: "hint", hidden: true }, "In blue: words that the other translation does not have.");
    this.#compose();
    this.model = null;
    this.answer = null;
    this.wanted = { sentence: 0, forces: {} };
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
      element("header", {}, element("div", {}, this.title, this.facts), this.outlets.element),
      this.whole.element, this.unknown.element, this.notice.element, this.body,
      this.panels.element);
  }

  /** Show a model's translation of a text; `forces` has the ids that sentences must begin with. */
  translate(model, { q, sentence, forces }) {
    this.wanted = { sentence, forces };
    this.model = model;
    this.title.textContent = model.title;
    this.facts.textContent = factsOf(model);
    const isNew = this.text.read(model, q);
    if (isNew) this.notice.clear();
    if (isNew && this.text.sentences.length === 0) this.#stop();
    this.#showSentences();
  }

  #showSentences() {
    this.#showWhole();
    this.#send();
    this.text.complete(this.wanted.forces, this.place);
  }

  /** The place of the chosen sentence. */
  get place() {
    return Math.max(0, Math.min(this.wanted.sentence, this.text.sentences.length - 1));
  }

  /** What screen readers hear when the translation is there. */
  get announcement() {
    if (!this.text.isWhole) return this.answer?.text ?? "";
    return this.text.isComplete ? `${this.text.sentences.length} sentences are translated` : "";
  }

  /** Let go of the sentence that is shown. */
  #stop() {
    this.request.abort.abort();
    this.request = NOTHING;
    this.#showNothing();
  }

  /** Ask for the chosen sentence, unless that has been done. */
  #send() {
    const sentence = this.text.sentences[this.place];
    if (!sentence) return;
    const forced = this.wanted.forces[this.place] ?? [];
    const key = JSON.stringify([this.text.key, this.place, forced]);
    const q = sentence.text;
    if (key === this.request.key) return;
    const since = Math.max(forced.length, q === this.request.q ? this.request.forced.length : 0);
    this.request.abort.abort();
    this.request = {
      key, q, forced, abort: new AbortController(), place: this.place,
      // The word to select after a reader has forced a word or undone that.
      piece: since - 1, focus: this.body.contains(document.activeElement),
    };
    this.#ask();
  }

  async #ask() {
    const { q, forced, abort, place } = this.request;
    this.notice.clear();
    this.element.setAttribute("aria-busy", "true");
    const request = { q, model: this.model.name };
    if (forced.length > 0) request.prefix_tokens = forced;
    try {
      const onText = (text) => { if (!abort.signal.aborted) this.#write(text); };
      const answer = await translate(request, { onText, signal: abort.signal });
      if (abort.signal.aborted) return;
      this.text.put(place, forced, answer);
      this.#showAnswer(answer);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.#showNothing();
      this.notice.show(error, () => this.#ask());
      // What is too long to be looked at can still be translated.
      if (error.status === TOO_LONG && !this.text.isWhole) this.text.translateAll();
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
    this.#showWhole();
    this.#showForced();
    this.beam.show(answer.beams ?? [], languageTag(this.model.target));
    this.onAnswer(); // the listener calls `look`
    const { piece, focus } = this.request;
    if (piece >= 0) this.viewer.selectPiece(piece, { focus });
  }

  #showNothing() {
    this.answer = null;
    this.element.removeAttribute("aria-busy");
    this.body.classList.remove("writing");
    this.body.hidden = true;
    this.panels.show(null);
    this.#showWhole();
    this.onAnswer();
  }

  /** Show the whole text, where it is more than the sentence below it, and what can be done with it. */
  #showWhole() {
    const { text, wanted, place } = this;
    const found = text.shown(wanted.forces);
    const lang = languageTag(this.model.target);
    this.whole.show(text.isWhole ? text.sentences : null, found, { chosen: place, lang });
    this.unknown.show(found, languageTag(this.model.source));
    this.outlets.show(found.length > 0 && !found.includes(null));
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
   * the translation of the other model does not have, and `open` the names of the open panels.
   */
  look(look, different = [], open = []) {
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
      const { model, answer, request } = this;
      this.looked = look;
      this.panels.show({ model, answer, look, q: request.q, tokens: answer.target.ids }, open);
    }
  }

  /** Highlight a source word that is pointed at in the other pane; null for none. */
  echo(index) {
    const place = index === null ? null : { side: "source", index };
    if (this.answer) this.viewer.point(place && index < this.viewer.units.source.length ? place : null);
  }

  /** Cancel the requests and remove the pane from the page. */
  close() {
    this.request.abort.abort();
    this.text.close();
    this.notice.clear();
    this.viewer.overview.close();
    this.panels.close();
    this.element.remove();
  }
}
