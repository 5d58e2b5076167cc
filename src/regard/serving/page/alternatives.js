/** The alternatives to a word with their probabilities; a click forces one of them. */

import { element, button, percent } from "./element.js";
import { bare } from "./maps.js";

const SHOWN = 8;
const FEWEST = 4;
const SLIGHT = 0.001; // less probable ones are shown only if there would be fewer than FEWEST

/**
 * @param {{onForce: (step: number, id: number) => void}} options  a step of the search and the id
 *   of the token to write there
 */
export function createAlternatives({ onForce }) {
  const heading = element("h3", {});
  const legend = element("p", { class: "hint" }, "How probable each word was at this place.");
  const lists = element("div", { class: "steps" });
  const section = element("section", { class: "alternatives", hidden: true }, heading, legend, lists);

  return {
    element: section,
    /** Show the alternatives at each step that wrote a unit. */
    show(answer, unit, { isSelected, lang }) {
      section.hidden = !unit;
      if (!unit) return;
      const label = unit.mark ? "the end" : `“${unit.label}”`;
      heading.textContent = isSelected ? `Instead of ${label}` : `Least certain: ${label}`;
      const subwords = answer.target.tokens.some((token) => token.startsWith("▁"));
      lists.replaceChildren(...unit.pieces.map((place) =>
        stepList(answer.steps[place], place, { subwords, lang, onForce })));
    },
  };
}

function stepList(step, place, { subwords, lang, onForce }) {
  const options = optionsOf(step).map((option) => {
    const chosen = option.id === step.id;
    const attributes = {
      class: `option ${chosen ? "chosen" : ""}`,
      "--p": option.probability.toFixed(4),
    };
    const content = [
      element("span", { class: isMark(option) ? "name mark" : "name", lang, dir: "auto" },
        nameOf(option, subwords)),
      element("span", { class: "share" }, percent(option.probability)),
    ];
    if (chosen) {
      return element("li", {}, element("span", { ...attributes, "aria-current": "true" }, ...content));
    }
    if (isMark(option)) return element("li", {}, element("span", attributes, ...content));
    const made = button("", () => onForce(place, option.id), attributes);
    made.replaceChildren(...content);
    return element("li", {}, made);
  });
  return element("ol", { class: "options" }, ...options);
}

/** The chosen token and its alternatives, most probable first. */
export function optionsOf(step) {
  const others = step.alternatives.filter(({ id }) => id !== step.id);
  const chosen = { token: step.token, id: step.id, probability: step.probability };
  return [chosen, ...others]
    .sort((one, other) => other.probability - one.probability)
    .filter((option, place) =>
      option === chosen || (place < SHOWN && (place < FEWEST || option.probability >= SLIGHT)));
}

const isMark = ({ token }) => token === "</s>";

/** A token as text; a piece that continues a word begins with a dot. */
function nameOf(option, subwords) {
  if (isMark(option)) return "end";
  if (option.token === "⇧") return "⇧ capital letter";
  const continues = subwords && !option.token.startsWith("▁");
  return continues ? `·${option.token}` : bare(option.token);
}
