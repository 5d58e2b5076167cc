/** The button that copies the page's address, which holds the page's state. */

import { tell } from "./transfer.js";

/**
 * @param {HTMLButtonElement} button
 * @param {() => boolean} isWhole  whether the address holds the text too
 */
export function shareWith(button, isWhole) {
  button.addEventListener("click", async () => {
    if (!isWhole()) {
      tell(button, "Too long for a link");
      return;
    }
    try {
      await navigator.clipboard.writeText(location.href);
      tell(button, "Copied");
    } catch {
      tell(button, "Copy it from the address bar"); // the clipboard is not allowed here
    }
  });
}
