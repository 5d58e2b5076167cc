/** What went wrong, kindly, with a way on: try again at once, or by itself after a while. */

import { button } from "./element.js";

/**
 * @param {HTMLElement} box  stays hidden while there is nothing to say
 */
export function createNotice(box) {
  let timer = null;

  const clear = () => {
    clearInterval(timer);
    box.hidden = true;
    box.replaceChildren();
  };

  return {
    element: box,
    clear,
    /** @param {import("./api.js").ServerError} error */
    show(error, retry) {
      clear();
      const again = () => { clear(); retry(); };
      const remedy = button("Try again", again);
      box.append(`${error.message} `, remedy);
      box.hidden = false;
      if (!error.retryAfter) return;
      let seconds = Math.min(60, Math.ceil(error.retryAfter));
      const count = () => {
        if (seconds <= 0) again();
        else remedy.textContent = `Trying again in ${seconds}\u00a0s`;
        seconds -= 1;
      };
      count();
      timer = setInterval(count, 1000);
    },
  };
}
