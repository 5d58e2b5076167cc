/** A text of several sentences: its translation as flowing text, in which a sentence can be chosen. */

import { element } from "./element.js";

/**
 * @typedef {{text: string, gap: string}} SourceSentence  a sentence and the white space after it
 * @typedef {{text?: string, error?: string} | null} Found  its translation, why there is none, or
 *   null while it is being made
 */

// A mark that may end a sentence, with something after it, or a line break.
const SEVERAL = /[.!?…؟।॥۔։។][^\s\p{L}\p{N}]*\s+\S|[。｡！？．][”’」』）】》〉]*\S|\n/u;

/** Whether a text may have more than one sentence; the server decides where they end. */
export const mayBeSeveral = (text) => SEVERAL.test(text);

// Scripts that are written without spaces between sentences.
const WIDE = /[\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]$/;

/**
 * The translations with the white space of the original between them; a sentence without a
 * translation stays as it was.
 * @param {SourceSentence[]} sentences
 * @param {Found[]} found
 */
export function joined(sentences, found) {
  return sentences.map(({ text }, place) =>
    (found[place]?.text ?? text) + glueOf(sentences, found, place)).join("");
}

/** The white space after a sentence; none between sentences of scripts without spaces. */
function glueOf(sentences, found, place) {
  const { text, gap } = sentences[place];
  if (gap || place === sentences.length - 1) return gap;
  return WIDE.test(found[place]?.text ?? text) ? "" : " ";
}

/**
 * @param {{onChoose: (place: number) => void}} options  gets the place of the chosen sentence
 */
export function createWhole({ onChoose }) {
  const flow = element("p", { class: "flow", role: "group", "aria-label": "Translated sentences", dir: "auto" });
  const section = element("section", { class: "whole", hidden: true },
    element("h3", {}, "Whole translation"), flow);
  let spans = [];
  let seen = -1; // the chosen sentence that was last scrolled to

  const scrollTo = (place, top) => {
    flow.scrollTop = top; // as the reader left it
    if (place === seen || !spans[place]) return;
    seen = place;
    const above = spans[place].offsetTop - flow.offsetTop;
    const isVisible = above >= top && above + spans[place].offsetHeight <= top + flow.clientHeight;
    if (!isVisible) flow.scrollTop = above - flow.clientHeight / 3;
  };
  const placeOf = (target) => spans.indexOf(target.closest?.(".sentence"));
  const moveTo = (place) => spans[Math.max(0, Math.min(spans.length - 1, place))]?.focus();
  flow.addEventListener("click", (event) => {
    if (placeOf(event.target) >= 0) onChoose(placeOf(event.target));
  });
  flow.addEventListener("keydown", (event) => {
    const place = placeOf(event.target);
    const goal = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: spans.length - 1 };
    if (event.key in goal) moveTo(goal[event.key]);
    else if (event.key === "Enter" || event.key === " ") onChoose(place);
    else return;
    event.preventDefault();
  });

  return {
    element: section,
    /** Show the translations found so far; null hides the text. */
    show(sentences, found, { chosen, lang }) {
      section.hidden = !sentences;
      if (!sentences) { seen = -1; return; }
      const top = flow.scrollTop;
      const focused = spans.indexOf(document.activeElement);
      // The same elements again: a click on one that is replaced meanwhile would be lost.
      if (spans.length !== sentences.length) {
        spans = sentences.map(() => element("span", { role: "button" }));
      }
      sentences.forEach(({ text }, place) => {
        const [one, span] = [found[place], spans[place]];
        span.className = `sentence ${one ? "" : "pending"} ${one?.error ? "failed" : ""}`;
        span.tabIndex = place === chosen ? 0 : -1;
        span.setAttribute("aria-pressed", String(place === chosen));
        span.title = one?.error ?? text;
        if (one?.text && lang) span.lang = lang; else span.removeAttribute("lang");
        const shown = one?.text || (one ? text : "…");
        if (span.textContent !== shown) span.textContent = shown;
      });
      const parts = spans.flatMap((span, place) => [span, glueOf(sentences, found, place)]);
      flow.replaceChildren(...parts);
      flow.setAttribute("aria-busy", String(found.length === 0 || found.includes(null)));
      if (focused >= 0) moveTo(focused);
      scrollTo(chosen, top);
    },
  };
}
