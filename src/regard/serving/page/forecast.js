/** A forecaster: its window, what it attends to over time, and the values that should follow. */

import { short } from "./arithmetic.js";
import { element, percent } from "./element.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, BARS, LEFT, TOP] = [720, 220, 70, 84, 14];

const drawn = (tag, attributes, ...children) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
};

export function createForecast() {
  const verdict = element("p", { class: "verdict" });
  const picture = drawn("svg", { class: "series", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT + BARS + 30}` });
  const legend = element("p", { class: "hint" });
  const slider = element("input", { type: "range", min: "0", step: "1", "aria-label": "time" });
  const reading = element("p", { class: "reading", role: "status" });
  const table = element("table", { class: "kept" });
  const box = element("div", { class: "forecast" }, verdict, picture, legend,
    element("div", { class: "field" }, element("label", {}, "Time ", slider), reading),
    element("details", {}, element("summary", {}, "Every step in numbers"), table));
  let found = null;
  let marks = [];

  const point = (at) => {
    slider.value = `${at}`;
    marks.forEach((mark) => mark.classList.toggle("here", Number(mark.dataset.at) === at));
    const weight = found.weights?.[at];
    reading.textContent = `step ${at}: ${short(found.window[at][0])}${weight === undefined ? "" : `, weight ${found.isShare ? percent(weight) : short(weight)}`}`;
  };
  slider.addEventListener("input", () => point(Number(slider.value)));
  picture.addEventListener("pointerover", (event) => {
    const at = event.target.dataset?.at;
    if (at !== undefined) point(Number(at));
  });

  return {
    element: box,
    announcement: ({ forecast }) => `Forecast: ${forecast.map(short).join(", ")}`,
    show(answer) {
      const weights = answer.weights;
      const total = weights?.reduce((sum, each) => sum + each, 0) ?? 0;
      found = { ...answer, isShare: weights !== null && weights.every((each) => each >= 0) && Math.abs(total - 1) < 1e-3 };
      const values = answer.window.map((row) => row[0]);
      verdict.replaceChildren("Next: ", element("b", {}, answer.forecast.map(short).join(", ")));
      const all = [...values, ...answer.forecast];
      const [low, high] = [Math.min(...all), Math.max(...all)];
      const x = (at) => LEFT + (at / Math.max(1, all.length - 1)) * (WIDTH - LEFT - 16);
      const y = (value) => TOP + (1 - (value - low) / (high - low || 1)) * (HEIGHT - 2 * TOP);
      const most = Math.max(1e-12, ...(weights ?? []).map(Math.abs));
      const step = Math.min(36, (WIDTH - LEFT - 16) / Math.max(1, all.length - 1));
      const line = values.map((value, at) => `${at ? "L" : "M"} ${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join(" ");
      const points = values.map((value, at) => drawn("circle", { cx: x(at), cy: y(value), r: values.length > 60 ? 2 : 4, class: "value", "data-at": at }));
      const bars = (weights ?? []).map((weight, at) => drawn("rect", {
        x: x(at) - Math.max(1, step * 0.35), width: Math.max(2, step * 0.7), "data-at": at, "data-value": weight,
        y: HEIGHT + BARS - (Math.abs(weight) / most) * BARS, height: Math.max(0.5, (Math.abs(weight) / most) * BARS),
        class: weight < 0 ? "weight below" : "weight",
      }));
      marks = [...points, ...bars];
      const next = answer.forecast.map((value, at) => drawn("circle", { cx: x(values.length + at), cy: y(value), r: 5, class: "forecast-value" }));
      picture.replaceChildren(
        drawn("text", { x: LEFT - 8, y: y(high) + 4, "text-anchor": "end" }, short(high)),
        drawn("text", { x: LEFT - 8, y: y(low) + 4, "text-anchor": "end" }, short(low)),
        drawn("path", { d: line, class: "line" }), ...points, ...next, ...bars,
        ...(weights ? [drawn("text", { x: LEFT - 8, y: HEIGHT + BARS, "text-anchor": "end" }, "weight")] : []));
      picture.setAttribute("aria-label", `A window of ${values.length} values, and ${answer.forecast.length} forecast`);
      legend.textContent = weights
        ? "The line is the window, the ring what should follow; the bars are the attention to each step."
        : "The line is the window, the ring what should follow. This model has no attention.";
      slider.max = `${values.length - 1}`;
      table.replaceChildren(
        element("thead", {}, element("tr", {}, ...["step", ...answer.names, ...(answer.scores ? ["score"] : []), ...(weights ? ["weight"] : [])].map((name) =>
          element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...answer.window.map((row, at) => element("tr", {}, element("th", { scope: "row" }, `${at}`),
          ...[...row, ...(answer.scores ? [answer.scores[at]] : []), ...(weights ? [weights[at]] : [])].map((value) => element("td", { "data-value": String(value) }, short(value)))))));
      point(weights ? weights.indexOf(Math.max(...weights)) : values.length - 1);
    },
  };
}
