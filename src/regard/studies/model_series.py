"""The model series: recipes from no attention to the Transformer with the same training time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe


@dataclass(frozen=True)
class Entry:
    """A model of the series: its name in pictures, and the shipped recipe it is based on."""

    title: str
    recipe: str


# By the names of their folders, in the order in which they are shown.
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
    """The size of the experiment: settings of all models, and settings of each model family."""

    minutes: float
    shared: tuple[str, ...]
    families: Mapping[str, tuple[str, ...]]


# Training ends when the time is up, and no model has an optimiser or a loss of its own.
FAIR = (
    "training.steps=1000000",
    "training.optimizer=adam",
    "training.average=0",
    "training.label_smoothing=0.1",
)

# The sizes of `regard demo`: every model learns the small corpus in a minute or two.
BUILT_IN = Scale(
    minutes=1.7,
    shared=(
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
# At these sizes a word costs every model about two million multiplications, output layer included.
# Small batches give many updates in a short training; larger ones were not tried.
FROM_FILES = Scale(
    minutes=20.0,
    shared=(
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
    """Return the recipe of every model, for these files or for the built-in corpus.

    All models get the same data, vocabulary, training time and overrides.
    """
    scale = BUILT_IN if files is None else FROM_FILES
    data = [f"data.grammar.pair={json.dumps(pair)}"]
    if files is not None:
        data = [
            f"data.{part}={json.dumps([str(path) for path in both], ensure_ascii=False)}"
            for part, both in files.items()
        ]
    shared = [*scale.shared, *data, f"training.minutes={minutes or scale.minutes}"]
    return {
        name: _recipe(entry, shared, scale.families, overrides) for name, entry in ENTRIES.items()
    }


def series_runs(folder: Path) -> dict[str, Path]:
    """Return the run folders of the series by the titles of the models."""
    return {entry.title: folder / name for name, entry in ENTRIES.items()}


def _recipe(
    entry: Entry,
    shared: Sequence[str],
    families: Mapping[str, Sequence[str]],
    overrides: Sequence[str],
) -> TranslationRecipe:
    """Return the recipe of a model; later settings override earlier ones."""
    family = expect(find_recipe(entry.recipe), TranslationRecipe).model.family
    settings = [*families[family], *shared, *overrides]
    recipe = expect(find_recipe(entry.recipe, overrides=settings), TranslationRecipe)
    return recipe.model_copy(update={"title": entry.title})
