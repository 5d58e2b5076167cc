/**
 * The panels under an answer: each shows one more thing about it, and asks only while it is open.
 *
 * A panel is a module that exports an object of this form and a line in PANELS:
 *
 *   export const lens = {
 *     name: "lens",                          // in the address
 *     title: "What each layer would say",
 *     suits: ({ model, answer }) => model.task === "translate" && model.family === "transformer",
 *     create: ({ change }) => {
 *       const box = element("div");
 *       return { element: box, show(subject) { ... }, close() {} };
 *     },
 *   };
 *
 * `show` is called while the panel is open, whenever the subject has changed; `create` once.
 */

import { arithmetic } from "./arithmetic.js";
import { change } from "./change.js";
import { element } from "./element.js";
import { film } from "./film.js";
import { lens } from "./lens.js";
import { where } from "./where.js";

/**
 * @typedef {object} Subject  what is looked at
 * @property {object} model  as /models describes it; `task` is "translate", "language-model", ...
 * @property {string} q  the sentence, text, window or node
 * @property {object} answer  what the server said of it
 * @property {number[]} [tokens]  the ids of the translation
 * @property {{view: string, layer: string, head: string, byPiece: boolean}} look  what is shown of it
 */

/** All panels, in the order in which they are shown. */
export const PANELS = [arithmetic, change, lens, where, film];

/** Names in the address that are panels. */
export const openOf = (text) => (text ? text.split(",") : []);

/**
 * @param {{onOpen: (name: string, isOpen: boolean) => void, onChange: (changes: object) => void}} options
 */
export function createPanels({ onOpen, onChange }) {
  const holder = element("div", { class: "panels" });
  const made = PANELS.map((panel) => {
    const body = element("div", { class: "panel-body" });
    const frame = element("details", { class: "panel", "data-panel": panel.name, hidden: true },
      element("summary", {}, panel.title), body);
    const one = { panel, frame, body, inside: null, seen: null };
    frame.addEventListener("toggle", () => {
      if (frame.open) refresh(one);
      onOpen(panel.name, frame.open);
    });
    return one;
  });
  holder.append(...made.map((one) => one.frame));
  let subject = null;

  const refresh = (one) => {
    if (!subject || one.frame.hidden || one.seen === subject) return;
    if (!one.inside) {
      one.inside = one.panel.create({ change: onChange });
      one.body.append(one.inside.element);
    }
    one.seen = subject;
    one.inside.show(subject);
  };

  return {
    element: holder,
    /** Show a subject in the open panels; null hides them all. @param {Subject | null} given */
    show(given, open = []) {
      subject = given;
      holder.hidden = !given;
      for (const one of made) {
        one.frame.hidden = !given || !one.panel.suits(given);
        if (!one.frame.hidden && open.includes(one.panel.name)) one.frame.open = true;
        if (one.frame.open) refresh(one);
      }
    },
    /** Open a panel and show it something of its own, as a cell of the heat map. */
    tell(name, what) {
      const one = made.find((each) => each.panel.name === name);
      if (!one || one.frame.hidden) return;
      one.frame.open = true;
      refresh(one);
      one.inside.tell?.(what);
    },
    /** Let go of all panels. */
    close() {
      for (const { inside } of made) inside?.close?.();
    },
  };
}
