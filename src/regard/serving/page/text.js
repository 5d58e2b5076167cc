/** A text on its way through one model: its sentences and what is known of their translations. */

import { translate, translateText } from "./api.js";
import { mayBeSeveral } from "./whole.js";

/** What a sentence's translation was forced to begin with, as a key. */
const keyOf = (ids = []) => ids.join(",");

export class TextTranslation {
  /**
   * @param {{onSentences: () => void, onFound: () => void, onError: (error: Error) => void}} options
   *   `onSentences` is called when there are new sentences, `onFound` when there are translations
   */
  constructor({ onSentences, onFound, onError }) {
    this.listeners = { onSentences, onFound, onError };
    this.key = "";
    this.abort = new AbortController();
    this.#begin();
  }

  #begin() {
    /** @type {import("./whole.js").SourceSentence[]} */
    this.sentences = [];
    /** @type {import("./whole.js").Found[]} what the model says by itself */
    this.found = [];
    this.made = new Map(); // what it says when it is forced, by place and ids
    this.isWhole = false;
  }

  /** Read a text; returns false if it is the one that is being read already. */
  read(model, q) {
    const key = JSON.stringify([model.name, q]);
    if (key === this.key) return false;
    this.key = key;
    this.model = model;
    this.q = q;
    this.close();
    this.#begin();
    if (mayBeSeveral(q)) this.translateAll();
    else if (q) this.#add([{ text: q, gap: "" }]);
    return true;
  }

  /** Let the server split and translate the whole text. */
  async translateAll() {
    const abort = new AbortController();
    this.abort.abort();
    this.abort = abort;
    this.#begin();
    this.isWhole = true;
    try {
      await translateText({ q: this.q, model: this.model.name }, {
        signal: abort.signal,
        onSentences: (sentences) => this.#add(sentences),
        onFound: (from, found) => {
          this.found.splice(from, found.length, ...found);
          this.listeners.onFound();
        },
      });
    } catch (error) {
      if (!abort.signal.aborted) this.listeners.onError(error);
    }
  }

  #add(sentences) {
    this.sentences = [...this.sentences, ...sentences];
    this.found = [...this.found, ...sentences.map(() => null)];
    this.listeners.onSentences();
  }

  /** Whether all sentences have their translations. */
  get isComplete() {
    return this.sentences.length > 0 && this.isWhole && !this.found.includes(null);
  }

  /** Note an answer of the server to one sentence. */
  put(place, ids, answer) {
    this.made.set(`${place}:${keyOf(ids)}`, { text: answer.text, unknown: answer.unknown ?? [] });
  }

  /** The translations, each as it was forced to be. @returns {import("./whole.js").Found[]} */
  shown(forces) {
    return this.found.map((found, place) =>
      this.made.get(`${place}:${keyOf(forces[place])}`) ?? (forces[place] ? null : found));
  }

  /** Ask for the forced translations that are not known yet, as after a page was opened. */
  async complete(forces, chosen) {
    const { signal } = this.abort;
    for (const [name, ids] of Object.entries(forces)) {
      const place = Number(name);
      const sentence = this.sentences[place];
      if (place === chosen || !sentence || this.made.has(`${place}:${keyOf(ids)}`)) continue;
      this.made.set(`${place}:${keyOf(ids)}`, null); // asked for
      try {
        const request = { q: sentence.text, model: this.model.name, prefix_tokens: ids };
        this.put(place, ids, await translate(request, { onText: () => {}, signal }));
      } catch {
        if (signal.aborted) return;
        this.made.delete(`${place}:${keyOf(ids)}`); // shown again when the sentence is chosen
      }
      this.listeners.onFound();
    }
  }

  /** Stop all requests. */
  close() {
    this.abort.abort();
    this.abort = new AbortController();
  }
}
