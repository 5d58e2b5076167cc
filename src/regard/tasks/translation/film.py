"""The frames of a translator's film: what it writes for a few sentences, and what it looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.corpora.parallel import SentencePair
from regard.engines.torch_engine import attention_over
from regard.runs.film import FILM, FilmLog
from regard.runs.run import Run
from regard.tasks.translation.model import LoadedTranslator

SENTENCES = 3
FEWEST_WORDS, MOST_WORDS = 3, 12


def film_log(
    run: Run, translator: LoadedTranslator, pairs: Sequence[SentencePair], *, wanted: bool
) -> list[FilmLog]:
    """Return what writes the film of a training; nothing where none is wanted or none can be."""
    filmed = filmed_pairs(pairs)
    if not (wanted and translator.attends and filmed):
        return []
    return [FilmLog(run.folder / FILM, translator.model, lambda: frame_of(translator, filmed))]


def filmed_pairs(pairs: Sequence[SentencePair]) -> list[SentencePair]:
    """Return a few pairs of growing length that are fit to be shown."""
    fit = [
        pair
        for pair in pairs[:200]
        if all(
            FEWEST_WORDS <= len(side.split()) <= MOST_WORDS for side in (pair.source, pair.target)
        )
    ]
    ordered = sorted(fit, key=lambda pair: len(pair.source.split()))
    step = max(1, len(ordered) // SENTENCES)
    return ordered[step // 2 :: step][:SENTENCES]


def frame_of(translator: LoadedTranslator, pairs: Sequence[SentencePair]) -> list[dict[str, Any]]:
    """Return the model's translation of each sentence with its attention, as `look` has it.

    `reference` has the attention while the gold translation is written: its words stay the same
    from frame to frame. Each sentence is translated by itself, for equality in every digit.
    """
    found = []
    for pair in pairs:
        said = translator.translate(pair.source)
        source = translator.source_tokenizer.encode(pair.source)
        target = translator.target_tokenizer.encode(pair.target)
        weights = attention_over(translator.model, [source], [target])[0]
        gold = translator.attention_map(source, target, weights)
        found.append(
            {
                "text": pair.source,
                "said": said.text,
                "attention": said.by_word().to_dict() if said.text.split() else None,
                "gold": pair.target,
                "reference": gold.by_word(pair.source, pair.target).to_dict(),
            }
        )
    return found
