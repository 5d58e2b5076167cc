/** The page: its state is kept in the address, and everything shown follows from the state. */

import { fetchModels, ServerError } from "./api.js";
import { createChooser } from "./chooser.js";
import { createComposer } from "./composer.js";
import { differences } from "./difference.js";
import { companionsOf, modelNamed } from "./models.js";
import { createNotice } from "./notice.js";
import { openOf } from "./panels.js";
import { Pane } from "./pane.js";
import { shareWith } from "./share.js";
import { fitsAddress, forcesOf, readState, writeForces, writeState } from "./state.js";
import { TaskPane } from "./taskpane.js";
import { createToolbar, showsPieces } from "./toolbar.js";

const TRANSLATE = "translate";
const FORCES = ["force", "forceWith"];

const composer = createComposer({
  onChange: (changes) => { notice.clear(); change(changes); },
  onProblem: (message) => notice.show(new ServerError(message, { status: 400 })),
});
const chooser = createChooser({ onChoose: choose });
const toolbar = createToolbar({ onChange: change });
const notice = createNotice(document.getElementById("notice"));
const announcement = document.getElementById("announcement");
const holder = document.getElementById("panes");
const panes = [];
let earlier = [{}, {}]; // what was forced before, for each pane and sentence
let models = [];
let state = readState(location.hash);

/** Change the state; another text or model also resets what was forced. */
function change(changes, { remember = false } = {}) {
  const next = { ...state, ...changes };
  if (next.q !== state.q) next.sentence = "0";
  if (next.q !== state.q || next.model !== state.model) next.force = "";
  if (next.q !== state.q || next.with !== state.with) next.forceWith = "";
  if (next.q !== state.q || next.model !== state.model || next.with !== state.with) {
    earlier = [{}, {}];
  }
  state = next;
  const address = writeState(state);
  if (remember) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
  show();
}

/** Look at another sentence of the text. */
function choose(place) {
  change({ sentence: `${place}` });
}

/** Remember in the address which panels are open. */
function rememberOpen(name, isOpen) {
  const others = openOf(state.open).filter((each) => each !== name);
  const names = (isOpen ? [...others, name] : others).sort().join(",");
  if (names !== state.open) change({ open: names });
}

/** Force the beginning of a sentence's translation; null undoes what was forced last. */
function force(pane, ids) {
  const name = FORCES[pane];
  const forces = forcesOf(state[name]);
  const { place } = panes[pane];
  const now = `${forces[place] ?? ""}`;
  const stack = (earlier[pane][place] ??= []);
  if (ids) {
    stack.push(now);
    // The browser's Back undoes it too.
    change({ [name]: writeForces({ ...forces, [place]: ids }) }, { remember: true });
  } else {
    // The browser's Back may have undone it already.
    const before = stack.findLast((each) => each !== now) ?? "";
    stack.splice(Math.max(0, stack.lastIndexOf(before)));
    const others = { ...forces };
    delete others[place];
    change({ [name]: writeForces(before ? { ...others, [place]: before.split(",").map(Number) } : others) });
  }
}

function show() {
  const model = modelNamed(models, state.model);
  const companion = companionsOf(models, model).find((other) => other.name === state.with);
  const shown = companion ? [model, companion] : [model];
  composer.show({ ...state, with: companion?.name ?? "" }, models);
  const isOther = (pane, place) => place >= shown.length || (pane.task ?? TRANSLATE) !== shown[place].task;
  while (panes.some(isOther)) panes.splice(panes.findIndex(isOther), 1)[0].close();
  while (panes.length < shown.length) addPane(panes.length, shown[panes.length].task);
  holder.classList.toggle("two", shown.length === 2);
  shown.forEach((each, place) =>
    panes[place].translate(each, {
      q: state.q, sentence: Number(state.sentence), forces: forcesOf(state[FORCES[place]]),
    }));
  showViews();
}

function addPane(place, task) {
  const options = {
    onForce: (ids) => force(place, ids),
    onChoose: change,
    onPoint: (word) => echo(place, word),
    onAnswer: () => { showViews(); announce(); },
    onSentence: choose,
    onOpen: rememberOpen,
  };
  const pane = task === TRANSLATE ? new Pane(options) : new TaskPane(options, task);
  panes.push(pane);
  holder.append(pane.element);
}

/** Highlight a source word that is pointed at in one pane in the other pane too. */
function echo(place, word) {
  const answers = panes.map((pane) => pane.answer).filter(Boolean);
  const isShared = word?.side === "source" && !showsPieces(state, answers);
  panes[1 - place]?.echo(isShared ? word.index : null);
}

/** Make the toolbar and all panes show the same layer and head. */
function showViews() {
  const answers = panes.map((pane) => pane.answer).filter((answer) => answer?.source);
  toolbar.show(panes[0].task ? { ...state, view: "encoder" } : state, answers);
  chooser.show(panes[0].place, panes[0].text.sentences.length);
  const byPiece = showsPieces(state, answers);
  const { view, layer, head } = state;
  panes.forEach((pane, place) => {
    const other = panes[1 - place]?.answer;
    const different = pane.answer && other && !byPiece
      ? differences(pane.answer.target.word_texts, other.target.word_texts)
      : undefined;
    pane.look({ view, layer, head, byPiece }, different, openOf(state.open));
  });
}

/** Announce the finished translations to screen readers. */
function announce() {
  const texts = panes.map((pane) => pane.announcement).filter(Boolean);
  announcement.textContent = texts.length === panes.length ? texts.join(". ") : "";
}

async function start() {
  try {
    models = await fetchModels();
  } catch (error) {
    notice.show(error, start);
    return;
  }
  if (!state.q) state = { ...state, q: modelNamed(models, state.model).examples[0] ?? "" };
  show();
}

window.addEventListener("popstate", () => { state = readState(location.hash); show(); });
shareWith(document.getElementById("share"), () => fitsAddress(state));
start();
