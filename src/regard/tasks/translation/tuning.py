"""Tuning of the length penalty on sentences with references.

A penalty replaces the run's own only if its BLEU is significantly higher: the best of many is
always a little better on the sentences that it was chosen on, and may be worse on others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.base.errors import SettingsError
from regard.corpora.parallel import SentencePair
from regard.engines.engine import Engine
from regard.scoring.bleu import corpus_bleu
from regard.scoring.bootstrap import paired_bootstrap
from regard.scoring.measures import Score
from regard.settings.decoding import DecodingSettings
from regard.tasks.translation.model import LoadedTranslator

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

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "chosen": self.chosen.to_dict(),
            "best": self.best.to_dict(),
            "p_value": self.p_value,
        }


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
        return ChosenPenalty(own, own, None)
    compared = paired_bootstrap(
        {"present": own.texts, "best": best.texts},
        [pair.target for pair in pairs],
        baseline="present",
        tokenize=tokenize,
    )
    p_value = compared["best"].p_value
    significant = p_value is not None and p_value < SIGNIFICANCE
    return ChosenPenalty(best if significant else own, best, p_value)
