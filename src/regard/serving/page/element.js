/** Helpers that create elements; text is never read as HTML. */

/**
 * Make an element. Children are nodes or text, and text is never read as HTML. Attributes that are
 * null, undefined or false are left out; those that begin with "--" become style properties.
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("--")) made.style.setProperty(name, String(value));
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

/** A button with a click handler. */
export function button(label, onClick, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", onClick);
  return made;
}

/** A probability or weight as a percentage: "93 %". */
export function percent(share) {
  if (share > 0 && share < 0.005) return "<\u20091\u00a0%";
  return `${Math.round(100 * share)}\u00a0%`;
}
