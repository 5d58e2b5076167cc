/** The button that copies the page's address, which holds the page's state. */

const SHOWN = 2000; // milliseconds for which the button shows the result

/** @param {HTMLButtonElement} button */
export function shareWith(button) {
  const usual = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Copy it from the address bar"; // the clipboard is not allowed here
    }
    setTimeout(() => { button.textContent = usual; }, SHOWN);
  });
}
