/** Where else does this head do this: training examples in which a word attends to a word. */

import { ask } from "./api.js";
import { sizesOf } from "./arithmetic.js";
import { fill } from "./composer.js";
import { element } from "./element.js";
import { placeOf, unitsOf } from "./maps.js";
import { createNotice } from "./notice.js";

const PARTS = { cross: ["target", "source"], encoder: ["source", "source"], decoder: ["target", "target"] };
const TITLES = { cross: "translation to source", encoder: "within the source", decoder: "within the translation" };

export const where = {
  name: "where",
  title: "Where else a head does this",
  suits: ({ model }) => model.task === "translate" && model.attends && model.built_in,
  create: () => createWhere(),
};

function createWhere() {
  const [part, layer, head] = ["part", "layer", "head"].map((name) => element("select", { "aria-label": `${name} to search` }));
  const from = element("input", { type: "text", name: "attends", "aria-label": "word that attends", size: "12", maxlength: "100" });
  const to = element("input", { type: "text", name: "attended", "aria-label": "word attended to", size: "12", maxlength: "100" });
  const form = element("form", { class: "field" },
    element("label", {}, "From ", from), element("label", {}, "to ", to),
    element("label", {}, "in ", part), element("label", {}, "layer ", layer), element("label", {}, "head ", head),
    element("button", { type: "submit" }, "Search"));
  const notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
  const count = element("p", { class: "hint", role: "status" }, "Searches the training examples; weights of 0.3 and more count.");
  const list = element("ol", { class: "places" });
  const box = element("div", { class: "where" }, form, count, notice.element, list);
  let subject = null;
  let sizes = {};
  let abort = new AbortController();

  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  part.addEventListener("change", () => { offer(); suggest(); });

  /** Offer the layers and heads of the chosen part. */
  function offer() {
    const [layers, heads] = sizes[part.value];
    const { look } = subject;
    fill(layer, numbered(layers), `${look.layer === "mean" ? layers - 1 : placeOf(look.layer, layers)}`);
    fill(head, [["", "mean"], ...numbered(heads)], look.head === "mean" ? "" : `${placeOf(look.head, heads)}`);
    [layer, head].forEach((one, at) => { one.parentNode.hidden = [layers, heads][at] < 2; });
  }

  /** Begin with the first word of the translation and what it attends to most. */
  function suggest() {
    const [rows, columns] = PARTS[part.value].map((side) => unitsOf(subject.answer[side], false).filter((unit) => !unit.mark));
    if (rows.length === 0 || columns.length === 0) return;
    const row = rows[0];
    const weights = part.value === "cross" ? subject.answer.mean?.[row.pieces[0]] : null;
    const best = weights ? columns.findIndex((unit) => unit.pieces.includes(weights.indexOf(Math.max(...weights)))) : 0;
    from.value = row.label;
    to.value = (columns[best] ?? columns[0]).label;
  }

  async function search() {
    abort.abort();
    abort = new AbortController();
    const { signal } = abort;
    const [attends, attended] = [from.value.trim(), to.value.trim()];
    if (!attends || !attended) { count.textContent = "Give both words."; return; }
    box.setAttribute("aria-busy", "true");
    count.textContent = "Searching …";
    try {
      const found = await ask("where", {
        model: subject.model.name, attends, attended, part: part.value, layer: Number(layer.value),
        head: head.value === "" ? null : Number(head.value),
      }, { signal });
      notice.clear();
      draw(found, attends, attended);
    } catch (error) {
      if (error.name === "AbortError") return;
      count.textContent = "";
      list.replaceChildren();
      notice.show(error, search);
    }
    if (!signal.aborted) box.removeAttribute("aria-busy");
  }

  function draw({ searched, count: number, places }, attends, attended) {
    count.textContent = number === 0 ? `It never attends from “${attends}” to “${attended}” in ${searched} training examples.`
      : `${number} ${number === 1 ? "place" : "places"} in ${searched} training examples; the strongest are below.`;
    const [rows, columns] = PARTS[part.value];
    list.replaceChildren(...places.map((place) => {
      const marked = (side) => place[side].split(/\s+/).flatMap((word, at) => {
        const isHere = (side === rows && at === place.attends) || (side === columns && at === place.attended);
        return [isHere ? element("mark", {}, word) : word, " "];
      });
      return element("li", { "data-weight": String(place.weight) },
        element("span", { class: "share" }, place.weight.toFixed(2)),
        element("span", {}, element("span", { dir: "auto" }, ...marked("source")), element("br"),
          element("span", { class: "faint", dir: "auto" }, ...marked("target"))));
    }));
  }

  return {
    element: box,
    show(given) {
      const isNew = given.answer !== subject?.answer;
      subject = given;
      ({ sizes } = sizesOf(given));
      const parts = Object.keys(sizes);
      fill(part, parts.map((name) => [name, TITLES[name]]), parts.includes(given.look.view) ? given.look.view : parts[0]);
      part.parentNode.hidden = parts.length < 2;
      offer();
      if (isNew) suggest();
    },
    close() {
      abort.abort();
      notice.clear();
    },
  };
}

const numbered = (count) => Array.from({ length: count }, (_, at) => [`${at}`, `${at}`]);
