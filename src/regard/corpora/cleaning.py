"""A corpus through filters, and the account of how many pairs each of them dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.corpora.blocks import (
    Digests,
    DigestSet,
    ResumableOutput,
    digests_of,
    in_blocks,
    mapped,
    output_files,
    state_of,
)
from regard.corpora.filters import Filters, FilterSettings, TextPair, choose_filters
from regard.corpora.parallel import iterate_pairs
from regard.corpora.sources import LeftOut
from regard.settings.recipe import parse_table, validate

EXAMPLES = 3  # of dropped pairs, for each filter
SHOWN = 60  # characters of an example

Scorer = Callable[[Sequence[TextPair]], Sequence[bool]]


@dataclass
class Account:
    """How many pairs were read, kept and dropped, with examples of what each filter dropped."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[TextPair]] = field(default_factory=dict)

    def add(self, pair: TextPair, reason: str | None) -> None:
        """Count a pair that was kept, or dropped for this reason."""
        self.read += 1
        if reason is None:
            self.kept += 1
            return
        self.dropped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append(pair)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "read": self.read,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "examples": {
                name: [list(pair) for pair in found] for name, found in self.examples.items()
            },
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Account:
        """Return the account of `to_dict`."""
        examples = {
            name: [TextPair(*pair) for pair in found] for name, found in record["examples"].items()
        }
        return cls(record["read"], record["kept"], Counter(record["dropped"]), examples)

    def __str__(self) -> str:
        share = self.kept / self.read if self.read else 0.0
        lines = [f"{self.read:,} pairs read, {self.kept:,} kept ({share:.1%})"]
        for name, count in self.dropped.most_common():
            lines.append(f"{count:>10,}  {name}")
            for pair in self.examples[name][:1]:
                lines.append(f"{'':>12}{_short(pair.source)} ||| {_short(pair.target)}")
        return "\n".join(lines)


def _short(text: str) -> str:
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


class Verdicts(NamedTuple):
    """Why pairs are dropped, and the digests of those that are not."""

    reasons: list[str | None]
    digests: dict[str, Digests]


def judged(
    pairs: Iterable[TextPair],
    filters: Filters,
    *,
    processes: int | None = None,
    known: Mapping[str, DigestSet] | None = None,
) -> Iterator[tuple[list[TextPair], Verdicts]]:
    """Yield the pairs in blocks, with the reason for which each is dropped, or None.

    Pairs are judged by themselves in several processes, and as copies of earlier ones here, where
    their digests are `known`. The digests of a block are of what it has added to those.
    """
    seen = {name: DigestSet() for name in filters.copies} if known is None else known
    for block, (reasons, digests) in mapped(
        partial(_judge, filters), in_blocks(pairs), processes=processes
    ):
        rows = np.array([row for row, reason in enumerate(reasons) if reason is None], np.int64)
        added: dict[str, Digests] = {}
        for name in filters.copies:
            new = seen[name].add(digests[name])
            added[name] = digests[name][new]
            for row in rows[~new].tolist():
                reasons[row] = name
            rows = rows[new]
            digests = {other: found[new] for other, found in digests.items()}
        for name, score in filters.scored.items():
            keeps = np.array(score([block[row] for row in rows.tolist()]), dtype=bool)
            for row in rows[~keeps].tolist():
                reasons[row] = name
            rows = rows[keeps]
        yield block, Verdicts(reasons, added)


def _judge(filters: Filters, block: list[TextPair]) -> Verdicts:
    """Filter each pair of a block by itself: the work of one process."""
    reasons = [filters.reason(pair) for pair in block]
    kept = [pair for pair, reason in zip(block, reasons, strict=True) if reason is None]
    return Verdicts(
        reasons, {name: digests_of(map(key, kept)) for name, key in filters.copies.items()}
    )


def filter_pairs(
    pairs: Iterable[TextPair],
    filters: Filters,
    account: Account,
    *,
    processes: int | None = None,
) -> Iterator[TextPair]:
    """Yield the pairs that all filters keep, and count the others in the account."""
    for block, verdicts in judged(pairs, filters, processes=processes):
        for pair, reason in zip(block, verdicts.reasons, strict=True):
            account.add(pair, reason)
            if reason is None:
                yield pair


def filter_corpus(
    data: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    pair: str | None = None,
    columns: Sequence[str] = (),
    set: Mapping[str, Any] | Sequence[str] = (),
    scored: Callable[[Sequence[TextPair]], Scorer] | None = None,
    scored_by: str = "",
    processes: int | None = None,
    progress: Callable[[int], None] = lambda read: None,
) -> Account:
    """Write the pairs that all filters keep, and return the account of what was dropped.

    `data` is a file of pairs or two line files. `out` names a TSV file, or without that ending two
    line files: with `pair` "en-de", `clean` becomes `clean.en` and `clean.de`. `set` changes
    settings of the filters, as `{"max_words": 80}`. `scored` makes a filter from a sample of the
    corpus, which replaces the word alignment; `scored_by` says what it is. What was stopped goes
    on when it is called again.
    """
    given = [data] if isinstance(data, str | Path) else data
    paths = [Path(one) for one in given]
    settings = filter_settings(set)
    job = {
        "data": state_of(paths),
        "columns": list(columns),
        "pair": pair,
        "settings": settings.model_dump(),
        "scored_by": scored_by,
    }

    def pairs() -> Iterator[TextPair]:
        found = iterate_pairs(paths, columns=columns, pair=pair, left_out=LeftOut())
        return (TextPair(one.source, one.target) for one in found)

    outputs = output_files(Path(out), pair)
    if scored is not None:
        settings = settings.model_copy(update={"alignment": False})
    filters = choose_filters(settings, pairs(), pair=pair)
    if scored is not None:
        sample = islice((one for one in pairs() if filters.reason(one) is None), SCORED_SAMPLE)
        filters = Filters(filters.single, filters.copies, {"alignment": scored(list(sample))})
    with ResumableOutput(outputs, job=job, temporary=list(filters.copies)) as output:
        account = Account.from_dict(output.state) if output.state else Account()
        known = {
            name: DigestSet(np.frombuffer(output.read(name), np.uint64)) for name in filters.copies
        }
        left = islice(pairs(), account.read, None)
        for block, verdicts in judged(left, filters, processes=processes, known=known):
            for one, reason in zip(block, verdicts.reasons, strict=True):
                account.add(one, reason)
                if reason is None:
                    output.write(one)
            for name, digests in verdicts.digests.items():
                output.files[name].write(digests.tobytes())
            output.commit(account.to_dict)
            progress(account.read)
    return account


SCORED_SAMPLE = 1_000  # pairs from which a model learns what random pairs score


def filter_settings(changes: Mapping[str, Any] | Sequence[str]) -> FilterSettings:
    """Return the settings of the filters with these changes."""
    if isinstance(changes, Mapping):
        return validate(dict(changes), FilterSettings, origin="filter")
    table = parse_table("", overrides=list(changes), origin="filter")
    return validate(table, FilterSettings, origin="filter")
