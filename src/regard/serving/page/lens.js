/** The layer lens: what each layer would have said at each step, had the model ended there. */

import { ask } from "./api.js";
import { button, element, percent } from "./element.js";
import { bare } from "./maps.js";
import { createNotice } from "./notice.js";

const MARKS = { "</s>": "end" };
const named = (token) => MARKS[token] ?? bare(token);

export const lens = {
  name: "lens",
  title: "What each layer would have said",
  suits: ({ model }) => model.family === "transformer" && ["translate", "language-model"].includes(model.task),
  create: () => createLens(),
};

function createLens() {
  const hint = element("p", { class: "hint" },
    "Each row reads off what the model would write if it ended after that layer; the last row is its output.");
  const notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
  const table = element("table", { class: "lens" });
  const guesses = element("p", { class: "lens-guesses", role: "status" });
  const box = element("div", {}, hint, notice.element,
    element("div", { class: "wide", role: "group", "aria-label": "guesses by layer" }, table), guesses);
  let key = "";
  let abort = new AbortController();

  async function load(request) {
    abort.abort();
    abort = new AbortController();
    const { signal } = abort;
    box.setAttribute("aria-busy", "true");
    try {
      const found = await ask("lens", request, { signal });
      notice.clear();
      draw(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      table.replaceChildren();
      notice.show(error, () => load(request));
    }
    if (!signal.aborted) box.removeAttribute("aria-busy");
  }

  function draw({ said, layers }) {
    guesses.textContent = "Choose a cell to see all its guesses.";
    table.replaceChildren(
      element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "said"),
        ...said.map((token) => element("th", { scope: "col" }, named(token))))),
      element("tbody", {}, ...layers.map((layer) => element("tr", {},
        element("th", { scope: "row" }, layer.name),
        ...layer.guesses.map((step, at) => {
          const [best] = step;
          const isRight = best.token === said[at];
          const one = button(named(best.token), () => {
            guesses.replaceChildren(`${layer.name}, in place of “${named(said[at])}”: `,
              ...step.flatMap((guess, rank) => [rank > 0 ? ", " : "", element("bdi", {}, named(guess.token)), ` ${percent(guess.probability)}`]));
          }, {
            class: isRight ? "lens-guess right" : "lens-guess", "--p": best.probability.toFixed(4),
            "data-probability": String(best.probability), "data-said": String(layer.said[at]),
            "aria-label": `${layer.name}: ${named(best.token)} ${percent(best.probability)}`,
          });
          return element("td", {}, one);
        })))));
  }

  return {
    element: box,
    show({ model, q, tokens }) {
      const request = { q, model: model.name, ...(tokens ? { tokens } : {}) };
      if (JSON.stringify(request) === key) return;
      key = JSON.stringify(request);
      load(request);
    },
    close() {
      abort.abort();
      notice.clear();
    },
  };
}
