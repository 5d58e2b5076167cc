/** Names and descriptions of models and languages. */

const TASKS = {
  "language-model": "language model", "classify-text": "text classifier", forecast: "forecaster", "classify-nodes": "node classifier",
};
const FAMILIES = { transformer: "Transformer", recurrent: "recurrent" };

/** A language's English name, or its code if it has none. */
export function languageName(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code; // not a code of any standard
  }
}

/** A code that browsers know, or null: "xx" is not a language. */
export function languageTag(code) {
  return languageName(code) === code ? null : code;
}

/** "English to German · Transformer · 3.1 million parameters" */
export function factsOf(model) {
  if (model.task !== "translate") return taskFacts(model);
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

function taskFacts(model) {
  const size = new Intl.NumberFormat("en", { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 });
  const family = FAMILIES[model.family];
  return [
    TASKS[model.task] ?? model.task, ...(family ? [family] : []), ...(model.attends ? [] : ["without attention"]),
    ...(model.parameters ? [`${size.format(model.parameters)} parameters`] : []),
  ].join(" · ");
}

/** The model of this name, or the first. */
export const modelNamed = (models, name) => models.find((model) => model.name === name) ?? models[0];

/** The other models with the same source language, which a model can be compared with. */
export const companionsOf = (models, model) =>
  models.filter((other) =>
    other !== model && other.task === "translate" && model.task === "translate" && other.source === model.source);

/** Titles of the models in order; repeated ones get the model's name. */
export function titlesOf(models) {
  const count = (title) => models.filter((model) => model.title === title).length;
  return models.map((model) =>
    count(model.title) > 1 ? `${model.title} (${model.name})` : model.title);
}
