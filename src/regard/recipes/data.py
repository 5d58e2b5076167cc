"""The sentence pairs of a recipe, from users' files or from the built-in grammar."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.grammar import generate
from regard.corpora.parallel import SentencePair, read_pairs
from regard.settings.translation import DataSettings, GrammarSettings


@dataclass(frozen=True)
class Splits:
    """The three parts of a corpus; the test part may be missing."""

    train: list[SentencePair]
    valid: list[SentencePair]
    test: list[SentencePair]

    def fingerprint(self) -> str:
        """Return a short digest of all pairs, which tells one corpus from another."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.train, self.valid, self.test):
            for pair in part:
                digest.update(f"{pair.source}\t{pair.target}\n".encode())
        return digest.hexdigest()


def read_splits(settings: DataSettings) -> Splits:
    """Return the pairs that the settings name."""
    if not settings.train:
        return grammar_splits(settings.grammar)
    train = _read(settings.train, max_words=settings.max_words)
    test = _read(settings.test, max_words=settings.max_words) if settings.test else []
    if settings.valid:
        return Splits(train, _read(settings.valid, max_words=settings.max_words), test)
    if len(train) < 10:
        raise DataError(
            f"{len(train)} pairs are too few to hold some out for validation",
            path=settings.train[0],
            remedy="Give data.valid=[source,target], or more pairs.",
        )
    held = min(settings.hold_out, max(1, len(train) // 10))
    return Splits(train[:-held], train[-held:], test)


def read_valid(settings: DataSettings) -> list[SentencePair]:
    """Return the validation pairs alone, without a look at the others where that can be."""
    if not settings.train:
        return _generated(settings.grammar, "valid")
    if settings.valid:
        return _read(settings.valid, max_words=settings.max_words)
    return read_splits(settings).valid


def grammar_splits(settings: GrammarSettings) -> Splits:
    """Return the pairs of the built-in grammar."""
    train, valid, test = (_generated(settings, split) for split in ("train", "valid", "test"))
    return Splits(train, valid, test)


def _generated(settings: GrammarSettings, split: str) -> list[SentencePair]:
    sizes = {"train": settings.size, "valid": settings.valid_size, "test": settings.test_size}
    return generate(
        pair=settings.pair,
        split=split,  # type: ignore[arg-type]
        size=sizes[split],
        min_words=settings.min_words,
        max_words=settings.max_words,
        words=settings.words,
        seed=settings.seed,
    )


def _read(files: Sequence[str], *, max_words: int) -> list[SentencePair]:
    return read_pairs([Path(file) for file in files], max_words=max_words)
