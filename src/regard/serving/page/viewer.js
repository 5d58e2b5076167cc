/** A sentence and its translation with the attention between them: words, heat map, all heads. */

import { element, percent } from "./element.js";
import { createHeatMap } from "./heatmap.js";
import { DARK, lightOf } from "./lighting.js";
import { layersOf, placeOf, shownMap, unitsOf } from "./maps.js";
import { languageTag } from "./models.js";
import { createOverview } from "./overview.js";
import { createWordRow } from "./words.js";

const UNSURE = 0.5; // words less probable than this are underlined
const BLIND = "This model has no attention: it reads the whole sentence into one vector, "
  + "so there is nothing to light up.";

export class Viewer {
  /**
   * @param {{onSelect: () => void, onPoint: (place: object | null) => void,
   *   onChoose: (choice: object) => void, onCell?: (cell: object) => void}} options  `onSelect` is called when another word is
   *   selected, `onPoint` gets the highlighted place, `onChoose` a layer and a head, `onCell`
   *   the pieces of a cell of the map that was clicked
   */
  constructor({ onSelect, onPoint, onChoose, onCell = () => {} }) {
    this.onSelect = onSelect;
    this.onPoint = onPoint;
    this.rows = {
      source: this.#row("source", "Source words"),
      target: this.#row("target", "Words of the translation"),
    };
    this.heatMap = createHeatMap({
      onPoint: (cell) => this.#pointed(cell && {
        side: this.map.rowSide, index: cell.row, column: cell.column,
      }),
      onChoose: (cell) => onCell({
        row: this.map.rows[cell.row].pieces[0], column: this.map.columns[cell.column].pieces[0],
      }),
    });
    this.overview = createOverview({ onChoose });
    this.reading = element("p", { class: "reading" });
    this.blind = element("p", { class: "hint", hidden: true }, BLIND);
    this.attention = element("section", { class: "attention" },
      element("h3", {}, "Attention"), this.heatMap.element);
    this.answer = null;
    this.map = null;
    this.units = { source: [], target: [] };
    this.selected = null; // {side, index}
  }

  #row(side, label) {
    return createWordRow({
      label,
      onPoint: (index) => this.#pointed(index === null ? null : { side, index }),
      onSelect: (index) => this.select(index === null ? null : { side, index }),
    });
  }

  /**
   * Show an answer of a model; `look` says which view, layer, head and units, and `classOf` may
   * give each unit of the translation a class of its own.
   */
  show(answer, model, look, classOf) {
    if (answer !== this.answer || look.byPiece !== this.byPiece) this.selected = null;
    this.answer = answer;
    this.written = null;
    this.byPiece = look.byPiece;
    this.map = shownMap(answer, look);
    this.units = {
      source: unitsOf(answer.source, look.byPiece),
      target: unitsOf(answer.target, look.byPiece),
    };
    const unknown = new Set(answer.source.unknown ?? []);
    const isUnknown = (index) => this.units.source[index].pieces.some((piece) => unknown.has(piece));
    this.rows.source.show(this.units.source, {
      lang: languageTag(model.source),
      classOf: (index) => (isUnknown(index) ? "unknown" : ""),
      describe: (index) => (isUnknown(index) ? "not in the vocabulary of the model" : null),
    });
    this.rows.target.show(this.units.target, {
      lang: languageTag(model.target),
      classOf: (index) => this.#classOf(index, classOf),
      describe: (index) => `${percent(this.certainty(this.units.target[index]))} sure`,
    });
    this.#showMaps(model, look);
    this.point(null);
  }

  #classOf(index, classOf) {
    const unit = this.units.target[index];
    const unsure = !unit.mark && this.certainty(unit) < UNSURE;
    return `${unsure ? "unsure" : ""} ${classOf(unit, index)}`;
  }

  #showMaps(model, look) {
    const layers = layersOf(this.answer, look.view);
    this.blind.hidden = model.attends;
    this.attention.hidden = !this.map;
    if (this.map) this.heatMap.show(this.map, "Attention");
    this.overview.show(layers, {
      layer: look.layer === "mean" ? -1 : placeOf(look.layer, layers.length),
      head: look.head === "mean" ? -1 : placeOf(look.head, layers[0]?.length ?? 0),
    });
  }

  /** Show a translation that is still being written. */
  write(source, text, model) {
    if (source !== this.written) {
      this.rows.source.write(source, { lang: languageTag(model.source), unfinished: false });
    }
    this.written = source;
    this.rows.target.write(text, { lang: languageTag(model.target) });
  }

  #pointed(place) {
    this.point(place);
    this.onPoint(place ?? this.selected);
  }

  /** Highlight what a place attends to; without a place, what the selected word attends to. */
  point(place) {
    const shown = place ?? this.selected;
    const light = shown ? lightOf(this.map, shown) : DARK;
    for (const [side, row] of Object.entries(this.rows)) {
      row.light(light[side], this.map?.most);
      row.mark({
        pointed: shown?.side === side ? shown.index : null,
        selected: this.selected?.side === side ? this.selected.index : null,
      });
    }
    this.heatMap.point(light);
    this.reading.replaceChildren(...(light.reading ? readingOf(light.reading) : []));
  }

  /** Select a word, so that it stays highlighted; the same word again, or null, deselects it. */
  select(place) {
    const again = place?.side === this.selected?.side && place?.index === this.selected?.index;
    this.selected = again ? null : place;
    this.#pointed(null);
    this.onSelect();
  }

  /** Select the word of the translation that holds a piece; `focus` also focuses it. */
  selectPiece(piece, { focus }) {
    const index = this.units.target.findIndex((unit) => unit.pieces.includes(piece));
    if (index < 0) return;
    this.select({ side: "target", index });
    if (focus) this.rows.target.focus(index);
  }

  /** The selected word of the translation, or null. */
  get selectedUnit() {
    return this.selected?.side === "target" ? this.units.target[this.selected.index] : null;
  }

  /** The least probable word of the translation from this piece on. */
  leastCertain(from) {
    const open = this.units.target.filter((unit) => unit.pieces.some((piece) => piece >= from));
    const least = Math.min(...open.map((unit) => this.certainty(unit)));
    return open.find((unit) => this.certainty(unit) === least) ?? null;
  }

  /** The probability of the least probable piece of a unit. */
  certainty(unit) {
    return Math.min(...unit.pieces.map((piece) => this.answer.steps[piece].probability));
  }
}

/** "alte ← old 96 %, dog 4 %"; <bdi> keeps the direction of each word. */
function readingOf({ label, arrow, others }) {
  const named = others.flatMap((other, place) => [
    place > 0 ? ", " : "", element("bdi", {}, other.label), ` ${percent(other.weight)}`,
  ]);
  return [element("bdi", {}, label), ` ${arrow} `, ...(named.length > 0 ? named : ["nothing"])];
}
