/** Texts in and out: buttons that copy or save a text, and a text file that is opened or dropped. */

import { button, element } from "./element.js";

const SHOWN = 2000; // milliseconds for which a button shows the result
const MOST_BYTES = 4_000_000;

/** Show a result on a button for a moment. */
export function tell(target, result) {
  const usual = target.dataset.usual ?? target.textContent;
  target.dataset.usual = usual;
  target.textContent = result;
  clearTimeout(Number(target.dataset.timer));
  target.dataset.timer = String(setTimeout(() => { target.textContent = usual; }, SHOWN));
}

/**
 * Buttons that copy and save the text that they are given when they are pressed.
 * @param {{textOf: () => string, nameOf: () => string}} options  `nameOf` names the saved file
 */
export function createOutlets({ textOf, nameOf }) {
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(textOf());
      tell(copy, "Copied");
    } catch {
      tell(copy, "Not allowed"); // by the browser, as without https
    }
  }, { class: "quiet", title: "Copy the translation" });
  const save = button("Save", () => {
    const address = URL.createObjectURL(new Blob([`${textOf()}\n`], { type: "text/plain;charset=utf-8" }));
    element("a", { href: address, download: nameOf() }).click();
    setTimeout(() => URL.revokeObjectURL(address), SHOWN);
    tell(save, "Saved");
  }, { class: "quiet", title: "Save the translation as a text file" });
  const box = element("div", { class: "outlets", hidden: true }, copy, save);
  return {
    element: box,
    /** Show or hide the buttons. */
    show(isReady) { box.hidden = !isReady; },
  };
}

/**
 * Open text files that are chosen with an input or dropped on a box.
 * @param {{input: HTMLInputElement, box: HTMLElement, onText: (text: string) => void,
 *   onProblem: (message: string) => void}} options
 */
export function openTexts({ input, box, onText, onProblem }) {
  const open = async (file) => {
    try {
      onText(await readText(file));
    } catch (error) {
      onProblem(error.message);
    }
  };
  input.addEventListener("change", () => {
    if (input.files[0]) open(input.files[0]);
    input.value = ""; // so that the same file can be opened again
  });
  box.addEventListener("dragover", (event) => {
    if (event.dataTransfer.types.includes("Files")) event.preventDefault();
  });
  box.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    if (!file) return;
    event.preventDefault();
    open(file);
  });
}

/** The text of a file, or an error that says what is wrong with it. */
export async function readText(file) {
  if (file.size > MOST_BYTES) {
    throw new Error(`“${file.name}” has ${Math.round(file.size / 1e6)} MB, too much for this page. “regard translate --input” takes files of any size.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch { /* not UTF-8 */ }
  throw new Error(`“${file.name}” is not a text file in UTF-8.`);
}
