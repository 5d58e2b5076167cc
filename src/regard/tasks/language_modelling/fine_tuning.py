"""Fine-tuning a language model: the recipe that goes on from a run with other text or answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from regard.base.errors import SettingsError
from regard.corpora.parallel import read_pairs
from regard.runs.run import Run
from regard.settings.language_models import RecurrentLanguageModelSettings
from regard.tasks.language_modelling import data as task_data
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.planning import AutoChoice, gentle_reasons, gentle_training
from regard.text.tokenizers import RunningText, load_tokenizer

SAMPLE = 100  # prompts, or chunks of text, from which the length of all is estimated


def fine_tune(
    folder: Path,
    recipe: LanguageModelRecipe | None,
    data: Any,
    *,
    change: Callable[[Any], Any],
    learned: str = "continue",
) -> AutoChoice:
    """Return the recipe that goes on from a run, the data from memory if it is, and the reasons.

    `recipe` is one that the user has named: it decides all but model, tokenizer and generation.
    `learned` is "answer" where the data are prompts with answers.
    """
    before = Run.open(folder).recipe(LanguageModelRecipe)
    first = change(_going_on(before, folder, recipe))
    if learned == "answer":
        first, data = _with_answers(first, data), None
    first, texts = task_data.given_text(first, data)
    data = data if texts is not None else None
    model = f"model and tokenizer are those of {folder}"
    if recipe is not None:
        return AutoChoice(first, data, (model,))
    settings = first.training
    tokens = _tokens(first, texts, RunningText(load_tokenizer(folder, task_data.TOKENIZER)))
    size = first.model.context * settings.batch_size * settings.accumulate
    training = gentle_training(
        settings,
        width=_width(first),
        updates_per_epoch=max(1, math.ceil(tokens / size)),
    )
    chosen = change(first.model_copy(update={"training": training}))
    chosen = chosen.model_copy(update={"data": first.data})
    what, length = gentle_reasons(chosen.training)
    shown = f"about {tokens:,.0f} tokens in batches of {size:,}: {length}"
    return AutoChoice(chosen, data, (model, what, shown))


def _going_on(
    before: LanguageModelRecipe, folder: Path, recipe: LanguageModelRecipe | None
) -> LanguageModelRecipe:
    """Return a recipe with the model, the tokenizer and the generation of a run."""
    tables: dict[str, Any] = {} if recipe is None else dict(recipe)
    for name in ("tokenizer", "model", "decoding"):
        tables[name] = getattr(before, name)
    training = before.training if recipe is None else recipe.training
    fresh = {"start_from": str(folder), "freeze": (), "adapter_rank": 0, "minutes": None}
    kept = {"start_from": str(folder)} if recipe is not None else fresh
    tables["training"] = training.model_copy(update=kept)
    return LanguageModelRecipe.model_validate(tables)


def _with_answers(recipe: LanguageModelRecipe, data: Any) -> LanguageModelRecipe:
    """Return the recipe with files of prompts and answers in place of text."""
    parts = dict(data) if isinstance(data, Mapping) else {"train": data}
    named = {
        "pairs" if part == "train" else part: [given] if isinstance(given, str | Path) else given
        for part, given in parts.items()
    }
    files = [file for given in named.values() for file in given or []]
    if not all(isinstance(file, str | Path) for file in files):
        raise SettingsError("Answers are learned from files: name one with --data.")
    changes = {part: tuple(map(str, given)) for part, given in named.items()}
    return recipe.model_copy(update={"data": recipe.data.model_copy(update=changes)})


def _tokens(recipe: LanguageModelRecipe, texts: task_data.Texts | None, text: RunningText) -> float:
    """Return about how many tokens there are to train on."""
    if recipe.data.pairs:
        pairs = read_pairs([Path(file) for file in recipe.data.pairs], columns=recipe.data.columns)
        some = pairs[:: max(1, len(pairs) // SAMPLE)]
        return len(pairs) * fmean(len(text.encode(f"{p.source}\n{p.target}\n")) for p in some)
    parts = task_data.Parts(recipe.data, texts, None)
    chunks = list(islice(parts.train(), SAMPLE))
    return parts.characters * sum(map(len, map(text.encode, chunks))) / sum(map(len, chunks))


def _width(recipe: LanguageModelRecipe) -> int:
    """Return the width of the network."""
    model = recipe.model
    return model.hidden if isinstance(model, RecurrentLanguageModelSettings) else model.model_dim
