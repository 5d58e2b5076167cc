/** The button that copies the page's address, in which all that is shown stands. */

const SHOWN = 2000; // milliseconds that the button says what it did

/** @param {HTMLButtonElement} button */
export function shareWith(button) {
  const usual = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy it from the address bar"; // not allowed here
    }
    setTimeout(() => { button.textContent = usual; }, SHOWN);
  });
}
