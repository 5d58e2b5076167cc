"""What looks wrong in a corpus that can be read: warnings, since it may be right after all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.corpora.pair import SentencePair

LOOKED_AT = 50_000
FEWEST_PAIRS = 50
LOWEST_CORRELATION = 0.3
MOST_IDENTICAL = 0.1
WORDS_AN_ENTRY = 10


def suspicions(train: Sequence[SentencePair], valid: Sequence[SentencePair] = ()) -> list[str]:
    """Return a sentence about each thing that looks wrong with these pairs."""
    found = [_unrelated(train), _identical(train), _swapped(train, valid)]
    return [sentence for sentence in found if sentence]


def vocabulary_suspicion(pairs: Sequence[SentencePair], *, size: int, shared: bool) -> str:
    """Return a sentence if a vocabulary is larger than these pairs can teach, or an empty one."""
    sides = [sum(len(p.source.split()) for p in pairs), sum(len(p.target.split()) for p in pairs)]
    words = sum(sides) if shared else min(sides)
    if size * WORDS_AN_ENTRY <= words:
        return ""
    return (
        f"A vocabulary of {size:,} entries is large for {words:,} words of text: most entries "
        f"will hardly be seen. At most {max(1, words // WORDS_AN_ENTRY):,} are advisable; lower "
        "tokenizer.size, or leave it out."
    )


def _unrelated(pairs: Sequence[SentencePair]) -> str:
    """Translations of long sentences are long: where they are not, the lines do not match."""
    lengths = np.array([(len(p.source), len(p.target)) for p in pairs[:LOOKED_AT]], dtype=float)
    if len(lengths) < FEWEST_PAIRS or (lengths.std(axis=0) == 0).any():
        return ""
    correlation = float(np.corrcoef(lengths.T)[0, 1])
    if correlation >= LOWEST_CORRELATION:
        return ""
    return (
        f"The lengths of source and target lines hardly go together (correlation "
        f"{correlation:.2f}; of translations it is 0.7 and more). Are the two files line by line "
        "translations of each other, in the same order?"
    )


def _identical(pairs: Sequence[SentencePair]) -> str:
    same = sum(pair.source == pair.target for pair in pairs)
    if same <= MOST_IDENTICAL * len(pairs):
        return ""
    return (
        f"{same:,} of {len(pairs):,} lines are the same in source and target. Was one file named "
        "twice, or is a part of it not translated?"
    )


def _swapped(train: Sequence[SentencePair], valid: Sequence[SentencePair]) -> str:
    """Say so if the source words of one part are the target words of the other."""
    if len(train) < FEWEST_PAIRS or not valid:
        return ""
    source, target = ({w for text in side for w in text.split()} for side in _sides(train))
    counts = [
        (sum(w in source for w in words), sum(w in target for w in words))
        for words in ([w for text in side for w in text.split()] for side in _sides(valid))
    ]
    (source_right, source_wrong), (target_wrong, target_right) = counts
    if source_wrong <= 2 * source_right or target_wrong <= 2 * target_right:
        return ""
    return (
        "Source and target seem to be swapped between data.train and data.valid: the source "
        "words of one are the target words of the other. Check the order of the files."
    )


def _sides(pairs: Sequence[SentencePair]) -> tuple[list[str], list[str]]:
    seen = pairs[:LOOKED_AT]
    return [pair.source for pair in seen], [pair.target for pair in seen]
