"""The line of the lectures as recipes: from no attention to the Transformer, under one budget."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe


@dataclass(frozen=True)
class Entry:
    """A model of the story: how pictures call it, and the shipped recipe that it comes from."""

    title: str
    recipe: str


# By the names of their folders, in the order of the story; another model is another line.
ENTRIES = {
    "plain": Entry("no attention", "seq2seq"),
    "dot": Entry("dot attention", "seq2seq-attention"),
    "bilinear": Entry("bilinear attention", "luong"),
    "additive": Entry("additive attention", "bahdanau"),
    "convolutional": Entry("convolutional encoder", "convolutional-tiny"),
    "transformer": Entry("Transformer", "transformer-tiny"),
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large the story is told: what all models share, and what each family of them shares."""

    minutes: float
    everyone: tuple[str, ...]
    families: Mapping[str, tuple[str, ...]]


# For the limits of time alone to end a training, and for no model to get a treat of its own.
FAIR = (
    "training.steps=1000000",
    "training.optimizer=adam",
    "training.average=0",
    "training.label_smoothing=0.1",
)

# The sizes of `regard demo`, at which all learn the small corpus in a minute or two.
BUILT_IN = Scale(
    minutes=1.7,
    everyone=(
        *FAIR,
        "data.grammar.words=small",
        "data.grammar.size=20000",
        "data.grammar.valid_size=200",
        "data.grammar.test_size=500",
        "data.grammar.max_words=24",
        "tokenizer.kind=word",
        "tokenizer.shared=false",
        "batches.tokens=2048",
        "training.validate_every=300",
        "training.validate_sentences=100",
        "training.checkpoint_every=300",
    ),
    families={
        "recurrent": (
            "model.cell=lstm",
            "model.hidden=128",
            "model.embedding=64",
            "model.dropout=0.1",
            "batches.short_first=true",
            "training.learning_rate=0.004",
        ),
        "transformer": (
            "model.layers=2",
            "model.model_dim=128",
            "model.feed_forward=256",
            "model.dropout=0.05",
            "model.tie=target",
            "training.learning_rate=0.003",
            "training.warmup=150",
        ),
    },
)
# Sizes at which a word costs every model about two million multiplications, projection included.
# Batches are small because minutes are few and updates should be many; larger ones were not tried.
FROM_FILES = Scale(
    minutes=20.0,
    everyone=(
        *FAIR,
        "tokenizer.kind=sentencepiece",
        "tokenizer.shared=true",
        "tokenizer.size=6000",
        "batches.tokens=2048",
        "training.validate_every=500",
        "training.validate_sentences=100",
        "training.checkpoint_every=250",
    ),
    families={
        "recurrent": (
            "model.cell=lstm",
            "model.hidden=256",
            "model.embedding=128",
            "model.dropout=0.2",
            "training.learning_rate=0.002",
        ),
        "transformer": ("model.dropout=0.2", "training.learning_rate=0.003"),
    },
)


def series_recipes(
    files: Mapping[str, tuple[Path, Path]] | None = None,
    *,
    pair: str = "en-de",
    minutes: float | None = None,
    overrides: Sequence[str] = (),
) -> dict[str, TranslationRecipe]:
    """Return the recipe of every chapter, for these files or for the built-in corpus.

    All get the same data, vocabulary and minutes; the overrides are for all as well.
    """
    scale = BUILT_IN if files is None else FROM_FILES
    data = [f"data.grammar.pair={json.dumps(pair)}"]
    if files is not None:
        data = [
            f"data.{part}={json.dumps([str(path) for path in both], ensure_ascii=False)}"
            for part, both in files.items()
        ]
    shared = [*scale.everyone, *data, f"training.minutes={minutes or scale.minutes}"]
    return {
        name: _recipe(chapter, shared, scale.families, overrides)
        for name, chapter in ENTRIES.items()
    }


def series_runs(folder: Path) -> dict[str, Path]:
    """Return where the story's runs are, by the names that pictures call them."""
    return {chapter.title: folder / name for name, chapter in ENTRIES.items()}


def _recipe(
    chapter: Entry,
    shared: Sequence[str],
    families: Mapping[str, Sequence[str]],
    overrides: Sequence[str],
) -> TranslationRecipe:
    """Return a chapter's recipe; what is asked for last wins."""
    family = expect(find_recipe(chapter.recipe), TranslationRecipe).model.family
    settings = [*families[family], *shared, *overrides]
    recipe = expect(find_recipe(chapter.recipe, overrides=settings), TranslationRecipe)
    return recipe.model_copy(update={"title": chapter.title})
