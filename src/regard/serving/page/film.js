/** A film of the training: what the model looked at, from the first update to the last. */

import { ask } from "./api.js";
import { fill } from "./composer.js";
import { button, element } from "./element.js";
import { createHeatMap } from "./heatmap.js";
import { bare } from "./maps.js";
import { createNotice } from "./notice.js";

const PACE = 350; // milliseconds that a frame is shown

export const film = {
  name: "film",
  title: "A film of the training",
  suits: ({ model }) => Boolean(model.film),
  create: () => createFilm(),
};

const unitOf = (label) => ({ label: bare(label), pieces: [], mark: false, glued: false });

function createFilm() {
  const time = element("input", { type: "range", min: "0", step: "1", "aria-label": "frame" });
  const name = element("output");
  const text = element("select", { "aria-label": "text" });
  const kind = element("select", { "aria-label": "what is shown" });
  const play = button("Play", () => (timer === null ? start() : stop()));
  const said = element("p", { class: "output" });
  const heatMap = createHeatMap({ onPoint: () => {} });
  const notice = createNotice(element("div", { class: "notice", role: "alert", hidden: true }));
  const box = element("div", { class: "film" },
    element("div", { class: "field" }, element("label", {}, "Text ", text), element("label", {}, "Shown ", kind)),
    element("div", { class: "field film-time" }, play, time, name), said,
    element("div", { class: "attention" }, heatMap.element), notice.element);
  let frames = [];
  let model = null;
  let timer = null;

  time.addEventListener("input", () => { stop(); draw(); });
  for (const one of [text, kind]) one.addEventListener("change", () => draw());

  function start() {
    if (Number(time.value) >= frames.length - 1) time.value = "0";
    play.textContent = "Stop";
    draw();
    timer = setInterval(() => {
      time.value = `${Number(time.value) + 1}`;
      draw();
      if (Number(time.value) >= frames.length - 1) stop();
    }, PACE);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }

  async function load() {
    try {
      ({ frames } = await ask("film", { model: model.name }));
    } catch (error) {
      notice.show(error, load);
      return;
    }
    notice.clear();
    const { texts } = frames.at(-1);
    fill(text, texts.map((one, at) => [`${at}`, one.text]), "0");
    const { heads } = texts[0];
    fill(kind, heads
      ? heads.flatMap((layer, at) => [[`${at}.mean`, `layer ${at}, mean`], ...layer.map((_, head) => [`${at}.${head}`, `layer ${at}, head ${head}`])])
      : [["reference", "of the reference translation"], ["attention", "of its own translation"]],
    heads ? `${heads.length - 1}.mean` : "reference");
    text.parentNode.hidden = texts.length < 2;
    time.max = `${frames.length - 1}`;
    time.value = time.max;
    draw();
  }

  function draw() {
    const frame = frames[Number(time.value)];
    if (!frame) return;
    const one = frame.texts[Number(text.value)];
    name.textContent = `update ${frame.step} of ${frames.at(-1).step}`;
    const map = one.heads ? headOf(one, kind.value) : one[kind.value];
    said.replaceChildren(one.heads ? "" : `after ${frame.step} updates it says: `, element("b", { dir: "auto" }, one.said ?? ""));
    said.hidden = Boolean(one.heads);
    heatMap.element.hidden = !map;
    if (!map) return;
    box.dataset.frame = `${frame.step}`;
    heatMap.show({ rows: map.target.map(unitOf), columns: map.source.map(unitOf), weights: map.weights, most: 1 }, "Attention");
  }

  return {
    element: box,
    show(subject) {
      if (subject.model === model) return;
      model = subject.model;
      stop();
      load();
    },
    close() {
      stop();
      notice.clear();
    },
  };
}

/** The map of a head, or the mean of a layer's heads. */
function headOf({ tokens, heads }, chosen) {
  const [layer, head] = chosen.split(".");
  const maps = heads[Number(layer)];
  const weights = head === "mean"
    ? maps[0].map((row, at) => row.map((_, column) => maps.reduce((sum, map) => sum + map[at][column], 0) / maps.length))
    : maps[Number(head)];
  return { source: tokens, target: tokens, weights };
}
