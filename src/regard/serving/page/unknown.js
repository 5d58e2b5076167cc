/** A note of the words that are not in the vocabulary of a model. */

import { element } from "./element.js";

const NAMED = 12;

export function createUnknown() {
  const note = element("p", { class: "hint unknown-note", hidden: true });
  return {
    element: note,
    /** Name the unknown words of all translations. */
    show(found, lang) {
      const words = [...new Set(found.flatMap((one) => one?.unknown ?? []))];
      note.hidden = words.length === 0;
      const named = words.slice(0, NAMED).flatMap((word, place) => [
        place > 0 ? ", " : "", element("bdi", { class: "unknown-word", lang }, word),
      ]);
      const more = words.length - NAMED;
      note.replaceChildren(
        `The model does not know ${words.length === 1 ? "this word" : `these ${words.length} words`}: `,
        ...named, more > 0 ? ` and ${more} more` : "");
    },
  };
}
