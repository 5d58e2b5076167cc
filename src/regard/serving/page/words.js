/** A row of words that can be pointed at, reached with the arrow keys, and selected. */

import { element } from "./element.js";

/**
 * @param {{label: string, onPoint: (index: number | null) => void,
 *   onSelect: (index: number | null) => void}} options
 *   `onPoint` gets the word under the pointer or the focus, null when there is none; `onSelect`
 *   gets the selected word, null when it is deselected
 */
export function createWordRow({ label, onPoint, onSelect }) {
  const row = element("div", { class: "words", role: "group", "aria-label": label, dir: "auto" });
  let words = [];

  const indexOf = (target) => words.indexOf(target.closest?.("button.word"));
  const isAt = (among = words) => among.indexOf(document.activeElement);
  const makeReachable = (index) =>
    words.forEach((word, place) => word.setAttribute("tabindex", place === index ? "0" : "-1"));
  const moveTo = (index) => words[Math.max(0, Math.min(words.length - 1, index))]?.focus();

  row.addEventListener("pointerover", (event) => {
    const index = indexOf(event.target);
    if (index >= 0) onPoint(index);
  });
  row.addEventListener("pointerleave", () => onPoint(isAt() >= 0 ? isAt() : null));
  row.addEventListener("focusin", (event) => {
    const index = indexOf(event.target);
    makeReachable(index);
    onPoint(index);
  });
  row.addEventListener("focusout", () => onPoint(null));
  row.addEventListener("click", (event) => {
    const index = indexOf(event.target);
    if (index >= 0) onSelect(index);
  });
  row.addEventListener("keydown", (event) => {
    const index = isAt();
    const forward = getComputedStyle(row).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = forward === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
    const goal = { [forward]: index + 1, [back]: index - 1, Home: 0, End: words.length - 1 };
    if (event.key in goal) moveTo(goal[event.key]);
    else if (event.key === "Escape") onSelect(null);
    else return;
    event.preventDefault();
  });

  return {
    element: row,
    /** Show units as words; `classOf` may give each a class of its own. */
    show(units, { lang, classOf = () => "", describe = () => null } = {}) {
      const before = words;
      words = units.map((unit, index) => element("button", {
        type: "button",
        class: `word ${unit.mark ? "mark" : ""} ${unit.glued ? "glued" : ""} ${classOf(index)}`,
        tabindex: index === 0 ? 0 : -1,
        "aria-pressed": "false",
        "aria-label": unit.mark ? `${unit.label} of the sentence` : null,
        title: describe(index),
      }, unit.label));
      setLanguage(row, lang);
      const at = isAt(before);
      row.replaceChildren(...words);
      if (at >= 0) moveTo(at); // the words are new, but the reader has not moved
    },
    /** Show a text whose pieces are not known yet; a caret marks it as unfinished. */
    write(text, { lang, unfinished = true }) {
      words = [];
      setLanguage(row, lang);
      row.replaceChildren(
        ...text.split(/\s+/).filter(Boolean).map((word) => element("span", { class: "word" }, word)),
        ...(unfinished ? [element("span", { class: "caret", "aria-hidden": "true" })] : []),
      );
    },
    /** Highlight each word by its weight relative to `most`; null removes the highlights. */
    light(weights, most = 1) {
      row.classList.toggle("lit", weights !== null);
      words.forEach((word, index) => {
        const weight = weights?.[index] ?? 0;
        word.style.setProperty("--w", most > 0 ? (weight / most).toFixed(4) : "0");
        if (weights) word.dataset.weight = weight.toFixed(4);
        else delete word.dataset.weight;
      });
    },
    /** Mark the word that is pointed at and the selected one. */
    mark({ pointed, selected }) {
      words.forEach((word, index) => {
        word.classList.toggle("pointed", index === pointed);
        word.setAttribute("aria-pressed", String(index === selected));
      });
    },
    /** Give the focus to a word. */
    focus: moveTo,
  };
}

function setLanguage(row, lang) {
  if (lang) row.setAttribute("lang", lang);
  else row.removeAttribute("lang");
}
