"""Tuning of the length penalty on sentences with references.

A penalty replaces the run's own only if its BLEU is significantly higher: the best of many is
always a little better on the sentences that it was chosen on, and may be worse on others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.base.errors import SettingsError
from regard.corpora.parallel import SentencePair, read_pairs
from regard.engines.choice import PlannedSearch, choose_engine
from regard.engines.preparation import prepare_patience
from regard.engines.torch_engine import Engine
from regard.runs.run import Run
from regard.scoring.bleu import corpus_bleu
from regard.scoring.bootstrap import paired_bootstrap
from regard.scoring.measures import Score
from regard.settings.decoding import DecodingSettings
from regard.tasks.translation.data import read_valid
from regard.tasks.translation.model import LoadedTranslator, load

LENGTH_PENALTIES = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
SIGNIFICANCE = 0.01  # low, since it is the best of several penalties that is tested


@dataclass(frozen=True)
class TriedPenalty:
    """A length penalty and its BLEU."""

    length_penalty: float
    score: Score
    texts: tuple[str, ...] = field(repr=False)

    @property
    def length_ratio(self) -> float:
        """Words of the outputs for each word of the references."""
        words, wanted = (self.score.detail[f"{x}_length"] for x in ("system", "reference"))
        return float(words / wanted)

    def __str__(self) -> str:
        return (
            f"length penalty {self.length_penalty:<4g} BLEU {self.score.value:6.2f}   "
            f"length {self.length_ratio:6.1%}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "length_penalty": self.length_penalty,
            "length_ratio": self.length_ratio,
            "score": self.score.to_dict(),
        }


@dataclass(frozen=True)
class ChosenPenalty:
    """The penalty to use, the best of those tried, and the p-value of its gain."""

    chosen: TriedPenalty
    best: TriedPenalty
    p_value: float | None
    present: TriedPenalty
    """What the run had."""
    tried: tuple[TriedPenalty, ...]

    @property
    def gain(self) -> float:
        """How much more BLEU the best one has than the run's own."""
        return self.best.score.value - self.present.score.value

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "chosen": self.chosen.to_dict(),
            "best": self.best.to_dict(),
            "p_value": self.p_value,
            "tried": [one.to_dict() for one in self.tried],
        }

    def __str__(self) -> str:
        lines = [str(one) for one in self.tried]
        sure = "no sure gain" if self.chosen is self.present else f"p = {self.p_value:.3f}"
        return "\n".join([*lines, f"chosen: {self.chosen.length_penalty:g} ({sure})"])


def tune(
    run: str | Path,
    *,
    pairs: Sequence[SentencePair] | None = None,
    files: tuple[str | Path, str | Path] | None = None,
    penalties: Sequence[float] = LENGTH_PENALTIES,
    tokenize: str = "13a",
    keep: bool = True,
    watch: Callable[[TriedPenalty], None] = lambda tried: None,
) -> ChosenPenalty:
    """Find the length penalty with the best BLEU, and keep it in the run if the gain is sure.

    The sentences are those that the training validated on, or `pairs`, or those of two files. Do
    not give the sentences of your test: its result would be too good. `watch` hears of each
    penalty when it has been tried.
    """
    folder = Path(run)
    model = load(folder)
    if pairs is None and files is not None:
        pairs = read_pairs([Path(file) for file in files])
    elif pairs is None:
        pairs = read_valid(model.recipe.data)
    sources = [pair.source for pair in pairs]
    prepare_patience(model, folder, sources)
    tried = []
    for one in try_length_penalties(
        model,
        pairs,
        penalties=penalties,
        tokenize=tokenize,
        engine_for=lambda settings: choose_engine(model, PlannedSearch(settings), folder=folder),
    ):
        tried.append(one)
        watch(one)
    present = model.recipe.decoding.length_penalty
    found = choose_penalty(tried, pairs, present=present, tokenize=tokenize)
    if keep and found.chosen is not found.present:
        decoding = model.decoding(length_penalty=found.chosen.length_penalty)
        model.recipe = model.recipe.model_copy(update={"decoding": decoding})
        Run.open(folder).rewrite(model.recipe)
        prepare_patience(model, folder, sources)
    return found


def try_length_penalties(
    model: LoadedTranslator,
    pairs: Sequence[SentencePair],
    *,
    penalties: Sequence[float] = LENGTH_PENALTIES,
    tokenize: str = "13a",
    engine_for: Callable[[DecodingSettings], Engine] | None = None,
) -> Iterator[TriedPenalty]:
    """Translate the pairs' sources with each length penalty and the run's own; yield its BLEU.

    The pairs should be those that chose the model, and not those that will test it. `engine_for`
    returns the model's engine for a search; it is called again when that lacks a later one.
    """
    settings = model.recipe.decoding
    if settings.method != "beam" or settings.beam == 1 or settings.length_penalty_kind == "none":
        raise SettingsError(
            "A length penalty matters to a beam search alone: this run has "
            f'decoding.method = "{settings.method}", beam = {settings.beam}, '
            f'length_penalty_kind = "{settings.length_penalty_kind}".'
        )
    if not pairs:
        raise SettingsError("There are no sentence pairs to choose a length penalty on.")
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    chosen = False
    for penalty in sorted({*penalties, settings.length_penalty}):
        search = model.decoding(length_penalty=penalty)
        if engine_for is not None and (not chosen or model.engine.lacks(search)):
            model.engine, chosen = engine_for(search), True
        found = model.translate(sources, attention=False, length_penalty=penalty)
        texts = tuple(one.text for one in found)
        yield TriedPenalty(penalty, corpus_bleu(texts, references, tokenize=tokenize), texts)


def choose_penalty(
    tried: Sequence[TriedPenalty],
    pairs: Sequence[SentencePair],
    *,
    present: float,
    tokenize: str = "13a",
) -> ChosenPenalty:
    """Return the penalty with the highest BLEU if it is significantly better than the present."""
    own = next(one for one in tried if one.length_penalty == present)
    best = max(tried, key=lambda one: (one.score.value, one is own))
    if best is own:
        return ChosenPenalty(own, own, None, present=own, tried=tuple(tried))
    compared = paired_bootstrap(
        {"present": own.texts, "best": best.texts},
        [pair.target for pair in pairs],
        baseline="present",
        tokenize=tokenize,
    )
    p_value = compared["best"].p_value
    significant = p_value is not None and p_value < SIGNIFICANCE
    chosen = best if significant else own
    return ChosenPenalty(chosen, best, p_value, present=own, tried=tuple(tried))
