"""Served models: runs loaded with a name, a language pair and the fastest engine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.corpora.grammar import generate
from regard.engines.choice import EngineName, choose_engine
from regard.models.inspection import parameter_count
from regard.runs.report import EXAMPLE_COUNT, FEWEST_WORDS, MOST_WORDS, kept_examples
from regard.serving.languages import Pair, pair_of, read_pair
from regard.settings.models import TransformerSettings
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import DataSettings


@dataclass(frozen=True)
class ServedModel:
    """A translator with its name, language pair and example sentences."""

    name: str
    pair: Pair
    translator: LoadedTranslator
    examples: tuple[str, ...] = ()

    def description(self) -> dict[str, Any]:
        """Return the name, languages, size and examples, as plain values for JSON."""
        settings = self.translator.recipe.model
        attends = self.translator.attends
        layers = heads = 1 if attends else 0
        encoder_layers = 0
        if isinstance(settings, TransformerSettings):
            layers, heads = settings.decoder_layers or settings.layers, settings.heads
            encoder_layers = settings.layers if settings.encoder == "attention" else 0
        return {
            "name": self.name,
            "title": self.translator.recipe.title or self.name,
            "source": self.pair.source,
            "target": self.pair.target,
            "family": settings.family,
            "parameters": parameter_count(self.translator.model),
            "attends": attends,
            "layers": layers,
            "heads": heads,
            "encoder_layers": encoder_layers,
            "examples": list(self.examples),
        }


def load_models(
    runs: Sequence[Path],
    *,
    pairs: Sequence[str] = (),
    engine: EngineName = "auto",
    threads: int | None = None,
    examples: bool = True,
    report: Callable[[str], None] | None = None,
) -> list[ServedModel]:
    """Load runs; `pairs` has one pair for all, one for each, or none: then the data decide."""
    if len(pairs) not in (0, 1, len(runs)):
        raise SettingsError(
            f"--pair was given {len(pairs)} times for {len(runs)} runs: give it once for all of "
            "them, or once for each, in their order."
        )
    given = [read_pair(pair) for pair in pairs]
    given = given * len(runs) if len(given) == 1 else given
    names = _names(runs)
    models = []
    for number, run in enumerate(runs):
        translator = load(run)
        data = translator.recipe.data
        pair = given[number] if given else pair_of(data)
        translator.engine = choose_engine(
            translator, folder=run, engine=engine, threads=threads, report=report
        )
        shown = example_sentences(run, data) if examples else ()
        translator.translate(shown[:1] or ["a"])  # warm up: the first call is slow
        models.append(ServedModel(names[number], pair, translator, shown))
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
