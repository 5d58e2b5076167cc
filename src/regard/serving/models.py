"""Served models: runs with a name, a language pair and the fastest engine, in memory or not yet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import torch

from regard.base.errors import SettingsError
from regard.compute.device import computing_on, current_device
from regard.corpora.grammar import generate
from regard.engines.choice import EngineName, choose_engine
from regard.models.inspection import parameter_count
from regard.runs.film import film_of
from regard.runs.report import EXAMPLE_COUNT, FEWEST_WORDS, MOST_WORDS, kept_examples
from regard.runs.run import Run
from regard.serving.languages import Pair, pair_of, read_pair
from regard.serving.task_models import (
    TaskModel,
    bytes_needed_by,
    parameters_in,
    stored_task_model,
)
from regard.settings.models import TransformerSettings
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import DataSettings, TranslationRecipe

TRANSLATE = "translate"


@dataclass(frozen=True)
class ServedModel:
    """A translator with its name, language pair and example sentences."""

    kept: ClassVar[bool] = True
    """Whether it stays in memory: whoever made it holds the translator."""
    bytes_needed: ClassVar[int] = 0

    name: str
    pair: Pair
    translator: LoadedTranslator
    examples: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def recipe(self) -> TranslationRecipe:
        """The recipe of the model."""
        return self.translator.recipe

    def load(self) -> LoadedTranslator:
        """Return the translator."""
        return self.translator

    def description(self) -> dict[str, Any]:
        """Return the name, languages, size and examples, as plain values for JSON."""
        return _description(self, parameters=parameter_count(self.translator.model))


@dataclass(frozen=True)
class StoredModel:
    """A run that is loaded when it is first asked for."""

    kept: ClassVar[bool] = False
    translator: ClassVar[None] = None

    name: str
    pair: Pair
    folder: Path
    recipe: TranslationRecipe
    examples: tuple[str, ...] = ()
    engine: EngineName = "auto"
    threads: int | None = None
    report: Callable[[str], None] | None = None
    device: torch.device = field(default_factory=current_device)
    """Where it is to compute: it may be loaded by another thread."""

    @property
    def bytes_needed(self) -> int:
        """The memory that it is expected to take."""
        return bytes_needed_by(self.folder)

    def load(self, *, processes: bool = False) -> LoadedTranslator:
        """Return the translator with the fastest engine, ready to answer at once.

        A server that runs must not make processes: they would hold its connections open.
        """
        with computing_on(self.device):
            translator = load(self.folder)
        translator.engine = choose_engine(
            translator,
            folder=self.folder,
            engine=self.engine,
            threads=self.threads,
            processes=processes,
            report=self.report,
        )
        translator.translate(self.examples[:1] or ["a"])  # warm up: the first call is slow
        return translator

    def loaded(self) -> ServedModel:
        """Return the model in memory, to stay there."""
        return ServedModel(
            self.name, self.pair, self.load(processes=True), self.examples, self.folder
        )

    def description(self) -> dict[str, Any]:
        """Return what is known without loading the model."""
        return _description(self, parameters=self._parameters)

    @cached_property
    def _parameters(self) -> int | None:
        """The number of parameters by the heads of the files; None if these are damaged."""
        return parameters_in(self.folder)


AnyServedModel: TypeAlias = ServedModel | StoredModel


def _description(model: AnyServedModel, *, parameters: int | None) -> dict[str, Any]:
    settings = model.recipe.model
    attends = isinstance(settings, TransformerSettings) or settings.attention != "none"
    layers = heads = 1 if attends else 0
    encoder_layers = 0
    if isinstance(settings, TransformerSettings):
        layers, heads = settings.decoder_layers or settings.layers, settings.heads
        encoder_layers = settings.layers if settings.encoder == "attention" else 0
    return {
        "name": model.name,
        "title": model.recipe.title or model.name,
        "task": "translate",
        "source": model.pair.source,
        "target": model.pair.target,
        "family": settings.family,
        "parameters": parameters,
        "attends": attends,
        "layers": layers,
        "heads": heads,
        "encoder_layers": encoder_layers,
        "built_in": model.recipe.data.built_in,
        "film": model.folder is not None and bool(film_of(model.folder)),
        "examples": list(model.examples),
    }


def load_models(runs: Sequence[Path], **options: Any) -> list[ServedModel | TaskModel]:
    """Load runs, to stay in memory; the options are those of `stored_models`."""
    return [model.loaded() for model in stored_models(runs, **options)]


def stored_models(
    runs: Sequence[Path],
    *,
    pairs: Sequence[str] = (),
    engine: EngineName = "auto",
    threads: int | None = None,
    examples: bool = True,
    report: Callable[[str], None] | None = None,
) -> list[StoredModel | TaskModel]:
    """Return runs to load later.

    `pairs` has one pair for all, one for each, or none: then the data decide.
    """
    if len(pairs) not in (0, 1, len(runs)):
        raise SettingsError(
            f"--pair was given {len(pairs)} times for {len(runs)} runs: give it once for all of "
            "them, or once for each, in their order."
        )
    given = [read_pair(pair) for pair in pairs]
    given = given * len(runs) if len(given) == 1 else given
    names = _names(runs)
    models: list[StoredModel | TaskModel] = []
    for number, run in enumerate(runs):
        if Run.open(run).task != TRANSLATE:
            models.append(stored_task_model(run, names[number], examples=examples))
            continue
        recipe = Run.open(run).recipe(TranslationRecipe)
        models.append(
            StoredModel(
                name=names[number],
                pair=given[number] if given else pair_of(recipe.data),
                folder=run,
                recipe=recipe,
                examples=example_sentences(run, recipe.data) if examples else (),
                engine=engine,
                threads=threads,
                report=report,
            )
        )
    return models


def example_sentences(run: Path, data: DataSettings) -> tuple[str, ...]:
    """Return a few sentences like those that the model was made for; none if there are none."""
    return kept_examples(run) or (tuple(_from_grammar(data)) if data.built_in else ())


def _from_grammar(data: DataSettings) -> list[str]:
    grammar = data.grammar
    longest = min(grammar.max_words, MOST_WORDS)
    pairs = generate(
        pair=grammar.pair,
        split="test",
        size=EXAMPLE_COUNT,
        min_words=min(max(grammar.min_words, FEWEST_WORDS), longest),
        max_words=longest,
        words=grammar.words,
        style=grammar.style,
        seed=grammar.seed,
    )
    return [pair.source for pair in pairs]


def _names(runs: Sequence[Path]) -> list[str]:
    """Return the names of the folders; repeated names get a number."""
    names: list[str] = []
    for run in runs:
        base = name = run.resolve().name
        number = 1
        while name in names:
            number += 1
            name = f"{base}-{number}"
        names.append(name)
    return names
