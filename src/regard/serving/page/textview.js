/** A text that looks at itself: its tokens, the heat map of a head, arcs, and all heads. */

import { createArcs } from "./arcs.js";
import { element, percent } from "./element.js";
import { createHeatMap } from "./heatmap.js";
import { DARK, lightOf } from "./lighting.js";
import { placeOf, shownMap, unitsOf } from "./maps.js";
import { createOverview } from "./overview.js";
import { createWordRow } from "./words.js";

/**
 * @param {{onChoose: (choice: object) => void, onCell: (cell: object) => void,
 *   onSelect: (index: number | null) => void, label: string}} options
 */
export function createTextView({ onChoose, onCell, onSelect, label }) {
  const row = createWordRow({
    label,
    onPoint: (index) => point(index === null ? null : { side: "source", index }),
    onSelect: (index) => {
      selected = index === selected ? null : index;
      point(null);
      onSelect(selected);
    },
  });
  const heatMap = createHeatMap({
    onPoint: (cell) => point(cell && { side: "source", index: cell.row, column: cell.column }),
    onChoose: onCell,
  });
  const overview = createOverview({ onChoose });
  const arcs = createArcs();
  const reading = element("p", { class: "reading" });
  const attention = element("section", { class: "attention" }, element("h3", {}, "Attention"), heatMap.element);
  let map = null;
  let selected = null;
  let shown = null;

  function point(place) {
    const at = place ?? (selected === null ? null : { side: "source", index: selected });
    const light = at ? lightOf(map, at) : DARK;
    row.light(light.source, map?.most);
    row.mark({ pointed: at?.index ?? null, selected });
    heatMap.point(light);
    arcs.point(at?.index ?? null);
    reading.replaceChildren(...(light.reading ? [element("bdi", {}, light.reading.label), ` ${light.reading.arrow} `,
      light.reading.others.map((other) => `${other.label} ${percent(other.weight)}`).join(", ") || "nothing"] : []));
  }

  return {
    row, reading, attention, overview: overview.element, arcs: arcs.element,
    /** Show a text; `options` are those of a row of words. */
    show(answer, look, options = {}) {
      if (answer.text !== shown) selected = null;
      shown = answer.text;
      const units = unitsOf(answer.source, true);
      if (selected !== null && selected >= units.length) selected = null;
      row.show(units, options);
      map = answer.encoder ? shownMap(answer, look) : null;
      attention.hidden = !map;
      if (map) heatMap.show(map, "Attention");
      arcs.show(map);
      const layers = answer.encoder ?? [];
      overview.show(layers, {
        layer: look.layer === "mean" ? -1 : placeOf(look.layer, layers.length),
        head: look.head === "mean" ? -1 : placeOf(look.head, layers[0]?.length ?? 0),
      });
      point(null);
    },
    select(index) {
      selected = index;
      point(null);
    },
    get selected() { return selected; },
    close: () => overview.close(),
  };
}
