/** Models in words for people. */

const FAMILIES = { transformer: "Transformer", recurrent: "recurrent" };

/** A language's English name; what has none is named by its code. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code; // not a code of any standard
  }
}

/** A code that a browser may be told, or null: "xx" is no language. */
export function languageTag(code) {
  return languageName(code) === code ? null : code;
}

/** "English to German · Transformer · 3.1 million parameters" */
export function factsOf(model) {
  const size = new Intl.NumberFormat("en", {
    notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2,
  }).format(model.parameters);
  const family = FAMILIES[model.family] ?? model.family;
  return [
    `${languageName(model.source)} to ${languageName(model.target)}`,
    model.attends ? family : `${family}, without attention`,
    `${size} parameters`,
  ].join(" · ");
}

/** The model of a name, or the first. */
export const modelNamed = (models, name) => models.find((model) => model.name === name) ?? models[0];

/** The models that read the same language: those that can stand beside a model. */
export const companionsOf = (models, model) =>
  models.filter((other) => other !== model && other.source === model.source);

/** Titles by which models can be told apart, in their order. */
export function titlesOf(models) {
  const count = (title) => models.filter((model) => model.title === title).length;
  return models.map((model) =>
    count(model.title) > 1 ? `${model.title} (${model.name})` : model.title);
}
