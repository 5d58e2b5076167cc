"""What a parallel corpus holds: sizes, lengths, words, scripts and copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.corpora.blocks import Digests, DigestSet, digest, digests_of, in_blocks, mapped
from regard.corpora.filters import TextPair, script_of
from regard.corpora.parallel import iterate_pairs
from regard.corpora.sources import LeftOut

LONGEST = 1_000  # words that are told apart in the distribution of lengths
SIDES = ("source", "target")


@dataclass
class SideStatistics:
    """The texts of one language."""

    words: int = 0
    characters: int = 0
    types: int = 0
    """Different words, as they are written between spaces."""
    longest: int = 0
    """Words of the longest sentence."""
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.zeros(LONGEST + 1, np.int64))
    """The number of sentences by their length in words; the last entry is for all longer ones."""
    scripts: Counter[str] = field(default_factory=Counter)

    def percentile(self, share: float) -> int:
        """Return the length that this share of the sentences does not exceed."""
        total = self.lengths.sum()
        return int(np.searchsorted(np.cumsum(self.lengths), share * total)) if total else 0

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        count = int(self.lengths.sum())
        letters = sum(self.scripts.values())
        return {
            "words": self.words,
            "characters": self.characters,
            "types": self.types,
            "mean_words": round(self.words / count, 2) if count else 0.0,
            "median_words": self.percentile(0.5),
            "percentile_99_words": self.percentile(0.99),
            "longest_words": self.longest,
            "scripts": {
                name: round(letters_of / letters, 4)
                for name, letters_of in self.scripts.most_common(3)
            },
        }


@dataclass
class CorpusStatistics:
    """The pairs of a corpus."""

    pairs: int = 0
    source: SideStatistics = field(default_factory=SideStatistics)
    target: SideStatistics = field(default_factory=SideStatistics)
    duplicates: int = 0
    """Pairs that came before."""
    repeated_sources: int = 0
    """Pairs whose source came before."""
    identical: int = 0
    """Pairs whose sides are the same."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        counts = ("pairs", "duplicates", "repeated_sources", "identical")
        return {
            **{name: getattr(self, name) for name in counts},
            **{side: getattr(self, side).to_dict() for side in SIDES},
        }

    def __str__(self) -> str:
        share = 100 / self.pairs if self.pairs else 0.0
        lines = [
            f"{self.pairs:,} pairs",
            f"{self.duplicates:,} ({share * self.duplicates:.1f} %) came before, "
            f"{self.repeated_sources:,} ({share * self.repeated_sources:.1f} %) with this source; "
            f"{self.identical:,} ({share * self.identical:.1f} %) have identical sides",
        ]
        for side in SIDES:
            found = getattr(self, side).to_dict()
            scripts = ", ".join(f"{k.title()} {v:.1%}" for k, v in found["scripts"].items())
            lines.append(
                f"{side}: {found['words']:,} words, {found['types']:,} of them different; a "
                f"sentence has {found['mean_words']:.1f} (median {found['median_words']}, 99 % up "
                f"to {found['percentile_99_words']}, longest {found['longest_words']:,}); {scripts}"
            )
        return "\n".join(lines)


def corpus_statistics(
    data: str | Path | Sequence[str | Path],
    *,
    pair: str | None = None,
    columns: Sequence[str] = (),
    processes: int | None = None,
    progress: Callable[[int], None] = lambda read: None,
) -> CorpusStatistics:
    """Count what a corpus holds, in memory of 8 bytes for each pair and each different word."""
    paths = [Path(one) for one in ([data] if isinstance(data, str | Path) else data)]
    found = iterate_pairs(paths, columns=columns, pair=pair, left_out=LeftOut())
    pairs = (TextPair(one.source, one.target) for one in found)
    total = CorpusStatistics()
    types, copies, sources = (DigestSet(), DigestSet()), DigestSet(), DigestSet()
    for block, counted in mapped(_count, in_blocks(pairs), processes=processes):
        total.pairs += len(block)
        total.identical += counted.identical
        total.duplicates += int((~copies.add(counted.pairs)).sum())
        total.repeated_sources += int((~sources.add(counted.sources)).sum())
        for side, part, words, known in zip(
            (total.source, total.target), counted.sides, counted.words, types, strict=True
        ):
            side.words += part.words
            side.characters += part.characters
            side.longest = max(side.longest, part.longest)
            side.lengths += part.lengths
            side.scripts.update(part.scripts)
            side.types += int(known.add(words).sum())
        progress(total.pairs)
    return total


@dataclass(frozen=True)
class _Counted:
    """The counts of one block."""

    sides: tuple[SideStatistics, SideStatistics]
    words: tuple[Digests, Digests]
    pairs: Digests
    sources: Digests
    identical: int


def _count(block: list[TextPair]) -> _Counted:
    """Count one block: the work of one process."""
    (source, source_words), (target, target_words) = (
        _count_side([pair[side] for pair in block]) for side in (0, 1)
    )
    return _Counted(
        sides=(source, target),
        words=(source_words, target_words),
        pairs=digests_of(f"{pair.source}\t{pair.target}" for pair in block),
        sources=digests_of(pair.source for pair in block),
        identical=sum(pair.source == pair.target for pair in block),
    )


def _count_side(texts: Sequence[str]) -> tuple[SideStatistics, Digests]:
    words = [text.split() for text in texts]
    lengths = np.array([len(one) for one in words], dtype=np.int64)
    letters: Mapping[str, int] = Counter("".join(texts))
    scripts: Counter[str] = Counter()
    for letter, count in letters.items():
        if script := script_of(letter):
            scripts[script] += count
    found = SideStatistics(
        words=int(lengths.sum()),
        characters=sum(map(len, texts)),
        longest=int(lengths.max()),
        lengths=np.bincount(np.minimum(lengths, LONGEST), minlength=LONGEST + 1),
        scripts=scripts,
    )
    types = {word for sentence in words for word in sentence}
    return found, np.array([digest(word) for word in types], dtype=np.uint64)
