/** A notice of what went wrong, with a way to try again, at once or automatically after a while. */

import { useKey } from "./api.js";
import { button, element } from "./element.js";

const REFUSED = [400, 404, 413]; // the same request would be refused again

/**
 * @param {HTMLElement} box  hidden while there is no notice
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
      box.hidden = false;
      if (error.status === 403) {
        box.append(`${error.message} `, keyForm(again));
        return;
      }
      if (REFUSED.includes(error.status)) {
        box.append(error.message);
        return;
      }
      const remedy = button("Try again", again);
      box.append(`${error.message} `, remedy);
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

/** The form for the API key that the server requires. */
function keyForm(onGiven) {
  const key = element("input", { type: "password", autocomplete: "off", "aria-label": "API key", placeholder: "API key" });
  const form = element("form", {}, key, element("button", { type: "submit" }, "Use it"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    useKey(key.value.trim());
    onGiven();
  });
  return form;
}
