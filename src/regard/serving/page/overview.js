/** An overview of all heads: a small map for each; a click shows it large. */

import { element, button } from "./element.js";

/**
 * @param {{onChoose: (choice: {layer: string, head: string}) => void}} options
 */
export function createOverview({ onChoose }) {
  const grid = element("div", { class: "overview-grid" });
  const section = element("section", { class: "overview", hidden: true },
    element("h3", {}, "All heads"),
    element("p", { class: "hint" }, "The stronger the colour, the more attention; choose a head to see it large."),
    grid);
  let drawn = [];

  const paint = () => {
    const colour = getComputedStyle(section).getPropertyValue("--cell").trim().split(/\s+/).map(Number);
    const most = Math.max(...drawn.map(({ weights }) => Math.max(...weights.flat()))) || 1;
    for (const { canvas, weights } of drawn) paintMap(canvas, weights, { colour, most });
  };
  document.addEventListener("themechange", paint);

  return {
    element: section,
    /** Show the maps of all layers and heads; `chosen` is the one that is shown large. */
    show(layers, chosen) {
      const heads = Math.max(0, ...layers.map((layer) => layer.length));
      section.hidden = layers.length * heads < 2;
      drawn = [];
      if (section.hidden) return;
      grid.style.setProperty("--heads", heads);
      grid.replaceChildren(...layers.map((layer, place) => element("div", { class: "overview-layer" },
        element("span", { class: "caption" }, `Layer ${place}`),
        ...layer.map((weights, head) => {
          const canvas = element("canvas", { width: weights[0].length, height: weights.length });
          drawn.push({ canvas, weights });
          const isChosen = chosen.layer === place && chosen.head === head;
          return button(canvas, () => onChoose({ layer: `${place}`, head: `${head}` }), {
            "aria-label": `Layer ${place}, head ${head}`,
            "aria-pressed": String(isChosen),
          });
        }))));
      paint();
    },
    /** Stop listening when the pane is closed. */
    close: () => document.removeEventListener("themechange", paint),
  };
}

/** Paint a map, a pixel for each weight; all heads share one scale, so an even one stays pale. */
function paintMap(canvas, weights, { colour: [red, green, blue], most }) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  weights.flat().forEach((weight, place) => {
    image.data.set([red, green, blue, 255 * (0.05 + (0.95 * weight) / most)], 4 * place);
  });
  context.putImageData(image, 0, 0);
}
