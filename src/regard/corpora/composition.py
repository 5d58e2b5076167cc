"""Corpora made of others: mixtures with weights, and splits for training, validation and test."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.base.errors import DataError, RunError, SettingsError
from regard.corpora.blocks import (
    Digests,
    ResumableOutput,
    digests_of,
    in_blocks,
    mapped,
    output_files,
    state_of,
)
from regard.corpora.filters import TextPair
from regard.corpora.parallel import iterate_pairs
from regard.corpora.sources import LeftOut, locate

CopyProgress = Callable[[int], None]


@dataclass(frozen=True)
class Mixture:
    """How many pairs of each corpus are in a mixture."""

    corpora: dict[str, int]
    """Pairs of each corpus."""
    taken: dict[str, int]
    """Pairs of the mixture that come from it."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"corpora": self.corpora, "taken": self.taken, "pairs": sum(self.taken.values())}

    def __str__(self) -> str:
        total = sum(self.taken.values())
        lines = [f"{total:,} pairs"]
        for name, count in self.taken.items():
            size = self.corpora[name]
            lines.append(f"{count:>10,}  {count / total:6.1%}  {name} (of {size:,})")
        return "\n".join(lines)


def mix_corpora(
    corpora: Sequence[str | Path],
    *,
    out: str | Path,
    pair: str | None = None,
    weights: Sequence[float] = (),
    temperature: float = 1.0,
    size: int | None = None,
    seed: int = 1,
    progress: CopyProgress = lambda written: None,
) -> Mixture:
    """Write a mixture of corpora, and return how many pairs it has of each.

    A corpus is a table, a folder, or two line files with a comma between them. The share of one is
    its weight times n^(1/T) of its n pairs, so a higher temperature T gives more to small corpora.
    `size` is the number of pairs; without it, the corpus of the largest n / share is used once. A
    corpus that must give more than it has is repeated; one that gives less gives a random choice.
    At every place, the mixture is as close to the shares as whole pairs allow.
    """
    if len(corpora) < 2:
        raise SettingsError("A mixture needs two corpora or more.")
    if weights and len(weights) != len(corpora):
        raise SettingsError(
            f"There are {len(corpora)} corpora and {len(weights)} weights: give one for each."
        )
    if any(weight <= 0 for weight in weights) or temperature <= 0:
        raise SettingsError("Weights and the temperature must be above 0.")
    files = {str(one): corpus_files(str(one), pair) for one in corpora}
    if len(files) < len(corpora):
        raise SettingsError("A corpus is named twice: give it a weight instead.")
    counts = {name: sum(1 for _ in _pairs(paths, pair)) for name, paths in files.items()}
    wanted = quotas_of(list(counts.values()), list(weights), temperature, size)
    taken = dict(zip(files, wanted, strict=True))
    job = {
        "data": [state_of(paths) for paths in files.values()],
        "pair": pair,
        "taken": taken,
        "seed": seed,
    }
    streams = [
        _chosen(paths, pair, count=counts[name], wanted=taken[name], seed=f"{seed} {place}")
        for place, (name, paths) in enumerate(files.items())
    ]
    with ResumableOutput(output_files(Path(out), pair), job=job) as output:
        written = int(output.state.get("written", 0))
        for number, row in enumerate(_interleaved(streams, wanted), 1):
            if number > written:
                output.write(row)
                if not number % 1000:
                    output.commit(lambda number=number: {"written": number})  # type: ignore[misc]
                    progress(number)
    return Mixture(counts, taken)


def corpus_files(name: str, pair: str | None) -> list[Path]:
    """Return the files of a corpus that is named in one word."""
    paths = tuple(name.split(",")) if not Path(name).exists() else (name,)
    return [Path(one) for one in locate({"train": paths}, records="pairs", pair=pair)["train"]]


def _pairs(paths: Sequence[Path], pair: str | None) -> Iterator[TextPair]:
    for one in iterate_pairs(paths, pair=pair, left_out=LeftOut()):
        yield TextPair(one.source, one.target)


def quotas_of(
    counts: Sequence[int], weights: Sequence[float], temperature: float, size: int | None
) -> list[int]:
    """Return how many pairs each corpus gives."""
    shares = np.array(counts, dtype=float) ** (1 / temperature)
    shares *= np.array(weights if weights else [1.0] * len(counts))
    shares /= shares.sum()
    total = size or round(float((np.array(counts) / shares).max()))
    exact = shares * total
    quotas = np.floor(exact).astype(int)
    for place in np.argsort(quotas - exact, kind="stable")[: total - int(quotas.sum())]:
        quotas[place] += 1  # the largest remainders
    return [int(quota) for quota in quotas]


def _chosen(
    paths: Sequence[Path], pair: str | None, *, count: int, wanted: int, seed: str
) -> Iterator[TextPair]:
    """Yield `wanted` pairs of a corpus, in its order: all of it as often as possible, then a part.

    A part is chosen row by row with the probability that the rest is needed (Knuth, algorithm S).
    """
    whole, part = divmod(wanted, count)
    for _ in range(whole):
        yield from islice(_pairs(paths, pair), count)
    draw = random.Random(seed)
    needed = part
    for row, one in enumerate(_pairs(paths, pair) if part else ()):
        if draw.random() * (count - row) < needed:
            needed -= 1
            yield one
        if not needed:
            return


def _interleaved(
    streams: Sequence[Iterator[TextPair]], wanted: Sequence[int]
) -> Iterator[TextPair]:
    """Yield from the stream that is furthest behind its share."""
    total, given = sum(wanted), [0] * len(wanted)
    for number in range(1, total + 1):
        behind = [number * one - done * total for one, done in zip(wanted, given, strict=True)]
        place = behind.index(max(behind))
        given[place] += 1
        yield next(streams[place])


def split_corpus(
    data: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    valid: int = 1_000,
    test: int = 1_000,
    pair: str | None = None,
    columns: Sequence[str] = (),
    seed: int = 1,
    processes: int | None = None,
    progress: CopyProgress = lambda written: None,
) -> dict[str, int]:
    """Write train, valid and test of a corpus into a folder, and return how many pairs each has.

    Pairs with the same source are in the same part. The choice is a function of seed and source
    sentence, and the one that a training makes by itself with `data.hold_out`. The files are
    TSV, or two line files each if `pair` names the languages.
    """
    given = [data] if isinstance(data, str | Path) else data
    paths = [Path(one) for one in given]
    folder = Path(out)
    sizes = {"valid": valid, "test": test}

    def pairs() -> Iterator[TextPair]:
        found = iterate_pairs(paths, columns=columns, pair=pair, left_out=LeftOut())
        return (TextPair(one.source, one.target) for one in found)

    keys = _SourceKeys(seed)
    lowest = LowestKeys(sum(sizes.values()))
    total = 0
    for block, found in mapped(keys, in_blocks(pairs()), processes=processes):
        lowest.add(found)
        total += len(block)
    if total <= valid + test:
        raise DataError(
            f"{total:,} pairs are too few to take {valid:,} for validation and {test:,} to test on",
            path=paths[0],
            remedy="Ask for smaller parts with --valid and --test.",
        )
    part_of = lowest.parts(sizes)
    names = ["train", *(part for part, size in sizes.items() if size)]
    files = {part: output_files(folder / (part if pair else f"{part}.tsv"), pair) for part in names}
    for path in (path for own in files.values() for path in own):
        if path.exists():
            raise RunError(f"{path} exists already. Choose another folder, or remove it first.")
    folder.mkdir(parents=True, exist_ok=True)
    job = {"data": state_of(paths), "sizes": sizes, "seed": seed, "pair": pair}
    outputs = [path for own in files.values() for path in own]
    with ResumableOutput(outputs, job={**job, "columns": list(columns)}) as output:
        counts: dict[str, int] = output.state or dict.fromkeys(names, 0)
        left = islice(pairs(), sum(counts.values()), None)
        for block, found in mapped(keys, in_blocks(left), processes=processes):
            for row, key in zip(block, found.tolist(), strict=True):
                part = part_of.get(key, "train")
                counts[part] += 1
                output.write(row, paths=files[part])
            output.commit(lambda: counts)
            progress(sum(counts.values()))
    return counts


@dataclass(frozen=True)
class _SourceKeys:
    """Digests of seed and source, by which `parallel.hold_out` chooses as well."""

    seed: int

    def __call__(self, block: list[TextPair]) -> Digests:
        return digests_of(f"{self.seed}\t{pair.source}" for pair in block)


SPARE = 10_000


class LowestKeys:
    """The lowest keys of a stream and how often each occurs, in memory that does not grow."""

    def __init__(self, size: int):
        self._most = size + SPARE
        self._keys = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)

    def add(self, keys: Digests) -> None:
        """Count some more keys."""
        joined = np.concatenate([self._keys, keys])
        counts = np.concatenate([self._counts, np.ones(len(keys), np.int64)])
        unique, place = np.unique(joined, return_inverse=True)
        summed = np.bincount(place, weights=counts, minlength=len(unique)).astype(np.int64)
        self._keys, self._counts = unique[: self._most], summed[: self._most]

    def parts(self, sizes: dict[str, int]) -> dict[int, str]:
        """Return the part of each chosen key: in their order, what still fits into the part."""
        waiting = list(zip(self._keys.tolist(), self._counts.tolist(), strict=True))
        found: dict[int, str] = {}
        for part, size in sizes.items():
            rest, left = [], size
            for key, count in waiting:
                if count <= left:
                    found[key] = part
                    left -= count
                else:
                    rest.append((key, count))
            waiting = rest
        return found
