/** Which sentence of a text is looked at: the one before, the one after. */

import { button, element } from "./element.js";

/**
 * @param {{onChoose: (place: number) => void}} options
 */
export function createChooser({ onChoose }) {
  const bar = document.getElementById("chooser");
  const count = element("span", { class: "count" });
  let place = 0;
  const before = button("‹ Previous", () => onChoose(place - 1), { "aria-label": "Previous sentence" });
  const after = button("Next ›", () => onChoose(place + 1), { "aria-label": "Next sentence" });
  bar.append(before, count, after);

  return {
    /** Show the place of the chosen sentence among `total`. */
    show(chosen, total) {
      place = chosen;
      bar.hidden = total < 2;
      count.textContent = `Sentence ${chosen + 1} of ${total}`;
      before.disabled = chosen <= 0;
      after.disabled = chosen >= total - 1;
    },
  };
}
