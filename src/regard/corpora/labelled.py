"""Readers of labelled texts: `label text` lines, and tables of any kind and size."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import DataError
from regard.corpora import store
from regard.corpora.lines import empty_file, stream_lines
from regard.corpora.sources import DOCUMENTS, kind_of
from regard.corpora.tables import LABELLED, RECORDS, read_rows, rows_of
from regard.settings.recipe import suggestion

EXPECTED = "one label and one text per line"
FEW_ROWS = 10  # up to so many, a label that occurs once may be a class of its own


class LabelledText(NamedTuple):
    """A text and its label."""

    label: str
    text: str


class LabelledParts(NamedTuple):
    """Texts to learn from, and others to validate on."""

    train: list[LabelledText]
    valid: list[LabelledText]


Numbered = Iterator[tuple[int, LabelledText]]


def read_labelled(path: Path, *, columns: Sequence[str] = ()) -> list[LabelledText]:
    """Return the labelled texts of a file in memory; see `iterate_labelled`."""
    return list(iterate_labelled(path, columns=columns))


def iterate_labelled(path: Path, *, columns: Sequence[str] = ()) -> Iterator[LabelledText]:
    """Yield the labelled texts of a table; in any other file a label begins each line.

    `columns` are those of text and label. Without them known names are looked for; in a table
    of two columns without a header, the one that repeats most is the label.
    """
    kind = kind_of(path)
    if kind in DOCUMENTS.values():
        raise DataError(
            f"a {kind.upper()} file has no labels", path=path, remedy=f"Give {EXPECTED}."
        )
    if kind in RECORDS or columns:
        rows = read_rows(path, LABELLED.named(columns=columns, path=path))
        cells = ((n, _cell(label), _cell(text)) for n, (text, label) in rows)
        found: Numbered = ((n, LabelledText(label, text)) for n, label, text in cells)
    elif kind:
        found = _from_cells(path, kind)
    else:
        found = _from_words(path)
    number = 0
    for number, one in found:
        if not one.text or not one.label:
            raise DataError(
                f"there is no {'text' if one.label else 'label'}",
                path=path,
                line=number,
                remedy=f"There should be {EXPECTED}.",
            )
        yield one
    if not number:
        raise DataError("there is no labelled text", path=path, remedy=f"Give {EXPECTED}.")


def _cell(value: Any) -> str:
    """Return a cell as text on one line; labels may be numbers."""
    return "" if value is None else " ".join(str(value).split())


def _from_words(path: Path) -> Numbered:
    number = 0
    for number, line in enumerate(stream_lines(path, expected=EXPECTED), 1):
        if line.strip():
            label, _, text = line.strip().partition(" ")
            yield number, LabelledText(label, text.strip())
    if not number:
        raise empty_file(path, expected=EXPECTED)


def _from_cells(path: Path, kind: str) -> Numbered:
    """Yield the labelled texts of TSV or CSV; a label is found by its name, or as it repeats.

    Of a large table, the first rows say which column repeats.
    """
    every = ((n, [_cell(cell) for cell in row]) for n, row in rows_of(path, kind) if any(row))
    rows = list(islice(every, store.MOST_IN_MEMORY))
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    names = [[name for name in names if name in header] for names in LABELLED.names]
    exactly, first = False, 1
    if all(names):
        text, label = (header.index(found[0]) for found in names)
    elif len(header) == 2 and names[1]:
        label = header.index(names[1][0])
        text = 1 - label
    else:  # labels repeat more often than texts, and are shorter
        exactly = True
        for n, row in rows:
            _require_cells(n, row, 2, path, exactly=True)
        cells = [[row[place] for _, row in rows] for place in (0, 1)]
        one, other = ((len(set(column)), sum(map(len, column))) for column in cells)
        label, text = (0, 1) if one <= other else (1, 0)
        first = _headed(cells[label], rows[0][1][text]) if rows else 0
    for n, row in chain(rows[first:], every):
        _require_cells(n, row, 2 if exactly else max(label, text) + 1, path, exactly=exactly)
        yield n, LabelledText(row[label], row[text])


def _headed(labels: Sequence[str], text: str) -> bool:
    """Say whether the first row names the columns: its label is no label, its text a word."""
    counts = Counter(labels)
    alone = counts.pop(labels[0]) == 1
    repeated = len(labels) > FEW_ROWS and min(counts.values(), default=0) > 1
    return alone and repeated and " " not in text


def _require_cells(
    number: int, row: Sequence[str], count: int, path: Path, *, exactly: bool
) -> None:
    if len(row) < count or (exactly and len(row) != count):
        raise DataError(
            f"there are {len(row)} columns instead of {count}",
            path=path,
            line=number,
            remedy="Each line should hold a text and a label. Where there are more columns, "
            "choose two, as --columns text,label.",
        )


def labels_of(found: Iterable[str], *, path: Path) -> list[str]:
    """Return the labels in alphabetical order; refuse fewer than two."""
    labels = sorted(set(found))
    if len(labels) < 2:
        raise DataError(
            f"every text has the label {labels[0]!r}",
            path=path,
            remedy="Give texts of at least two classes.",
        )
    return labels


def require_labels(found: Iterable[str], known: Sequence[str], *, path: Path) -> None:
    """Refuse a label that the training texts do not have."""
    for label in found:
        if label not in known:
            raise DataError(
                f"no training text has the label {label!r}",
                path=path,
                remedy=suggestion(label, known),
            )


def hold_out(texts: Sequence[LabelledText], *, share: float, seed: int) -> LabelledParts:
    """Split off a share of every class for validation; at least one text of each class remains."""
    place = {label: number for number, label in enumerate({one.label for one in texts})}
    numbers = np.array([place[one.label] for one in texts], dtype=np.int32)
    held = set(held_rows(numbers, share=share, seed=seed).tolist())
    return LabelledParts(
        [one for place, one in enumerate(texts) if place not in held],
        [one for place, one in enumerate(texts) if place in held],
    )


def held_rows(
    labels: NDArray[np.int32], *, share: float, seed: int, most: int | None = None
) -> NDArray[np.int64]:
    """Return the rows of `hold_out`, given their labels as numbers, at most about `most`."""
    # PCG64's raw stream stays the same in all versions of NumPy.
    order = np.argsort(np.random.PCG64([seed]).random_raw(len(labels)), kind="stable")
    if most is not None:
        share = min(share, most / max(1, len(labels)))
    shuffled, chosen = labels[order], []
    for label, count in enumerate(np.bincount(labels).tolist()):
        wanted = min(count - 1, max(1, round(share * count)))
        chosen.append(order[shuffled == label][: max(0, wanted)])
    return np.sort(np.concatenate(chosen)).astype(np.int64)


def single_example_warnings(counts: Mapping[str, int]) -> list[str]:
    """Return a sentence about each class with one example, which nothing can be validated on."""
    return [
        f"The class {label!r} has only one example: it is used for training and never validated."
        for label, count in sorted(counts.items())
        if count == 1
    ]
