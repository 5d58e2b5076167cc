"""The length penalty of a search, chosen on sentences that have references."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from regard.base.errors import SettingsError
from regard.corpora.pair import SentencePair
from regard.recipes.loaded import LoadedTranslator
from regard.scoring.bleu import corpus_bleu
from regard.scoring.score import Score

LENGTH_PENALTIES = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


@dataclass(frozen=True)
class TriedPenalty:
    """A length penalty and what a search with it was worth."""

    length_penalty: float
    score: Score

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


def try_length_penalties(
    model: LoadedTranslator,
    pairs: Sequence[SentencePair],
    *,
    penalties: Sequence[float] = LENGTH_PENALTIES,
    tokenize: str = "13a",
) -> Iterator[TriedPenalty]:
    """Translate the pairs' sources with each length penalty, and yield its BLEU.

    The pairs should be those that chose the model, and not those that will test it.
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
    for penalty in penalties:
        found = model.translate(sources, attention=False, length_penalty=penalty)
        texts = [one.text for one in found]
        yield TriedPenalty(penalty, corpus_bleu(texts, references, tokenize=tokenize))


def best_penalty(tried: Sequence[TriedPenalty]) -> TriedPenalty:
    """Return the one with the highest BLEU; of equals the nearest to 1, the mean of all symbols."""
    return max(tried, key=lambda one: (one.score.value, -abs(one.length_penalty - 1)))
