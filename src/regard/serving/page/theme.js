"use strict";
// Light or dark: the system's theme, until the reader chooses one. A plain script in the head, not a
// module, so that it runs before anything is painted.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  const remembered = () => {
    try { return localStorage.getItem("theme"); } catch { return null; } // storage may be forbidden
  };
  const remember = (theme) => {
    try { localStorage.setItem("theme", theme); } catch { /* then it lasts for this visit only */ }
  };
  const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";

  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    // Canvases have colours of their own and must be drawn again.
    const changed = () => { show(); document.dispatchEvent(new Event("themechange")); };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      changed();
    });
    system.addEventListener("change", changed);
    show();
  });
})();
