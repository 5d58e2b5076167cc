"""Readers of labelled texts: `label text` lines, and tables of any kind."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regard.base.errors import DataError
from regard.corpora.lines import read_lines
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


def read_labelled(path: Path, *, columns: Sequence[str] = ()) -> list[LabelledText]:
    """Return the labelled texts of a table; in any other file a label begins each line.

    `columns` are those of text and label. Without them known names are looked for; in a table
    of two columns without a header, the one that repeats most is the label.
    """
    kind = kind_of(path)
    if kind in DOCUMENTS.values():
        raise DataError(
            f"a {kind.upper()} file has no labels", path=path, remedy=f"Give {EXPECTED}."
        )
    if kind in RECORDS or columns:
        wanted = LABELLED.named(columns=columns, path=path)
        rows = read_rows(path, wanted)
        found = [(n, LabelledText(_cell(label), _cell(text))) for n, (text, label) in rows]
    elif kind:
        found = _read_cells(path, kind)
    else:
        found = _read_words(read_lines(path, expected=EXPECTED))
    for number, one in found:
        if not one.text or not one.label:
            raise DataError(
                f"there is no {'text' if one.label else 'label'}",
                path=path,
                line=number,
                remedy=f"There should be {EXPECTED}.",
            )
    if not found:
        raise DataError("there is no labelled text", path=path, remedy=f"Give {EXPECTED}.")
    return [one for _, one in found]


Numbered = list[tuple[int, LabelledText]]


def _cell(value: Any) -> str:
    """Return a cell as text on one line; labels may be numbers."""
    return "" if value is None else " ".join(str(value).split())


def _read_words(lines: Sequence[str]) -> Numbered:
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            label, _, text = line.strip().partition(" ")
            found.append((number, LabelledText(label, text.strip())))
    return found


def _read_cells(path: Path, kind: str) -> Numbered:
    """Return the labelled texts of TSV or CSV; a label is found by its name, or as it repeats."""
    rows = [(n, [_cell(cell) for cell in row]) for n, row in rows_of(path, kind) if any(row)]
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    names = [[name for name in names if name in header] for names in LABELLED.names]
    if all(names):
        text, label = (header.index(found[0]) for found in names)
        rows = rows[1:]
    elif len(header) == 2 and names[1]:
        label = header.index(names[1][0])
        text, rows = 1 - label, rows[1:]
    else:  # labels repeat more often than texts, and are shorter
        _require_cells(rows, 2, path, exactly=True)
        cells = [[row[place] for _, row in rows] for place in (0, 1)]
        first, second = ((len(set(column)), sum(map(len, column))) for column in cells)
        label, text = (0, 1) if first <= second else (1, 0)
        rows = rows[_headed(cells[label], rows[0][1][text]) :] if rows else rows
    _require_cells(rows, max(label, text) + 1, path)
    return [(n, LabelledText(row[label], row[text])) for n, row in rows]


def _headed(labels: Sequence[str], text: str) -> bool:
    """Say whether the first row names the columns: its label is no label, its text a word."""
    counts = Counter(labels)
    alone = counts.pop(labels[0]) == 1
    repeated = len(labels) > FEW_ROWS and min(counts.values(), default=0) > 1
    return alone and repeated and " " not in text


def _require_cells(
    rows: Sequence[tuple[int, list[str]]], count: int, path: Path, *, exactly: bool = False
) -> None:
    for number, row in rows:
        if len(row) < count or (exactly and len(row) != count):
            raise DataError(
                f"there are {len(row)} columns instead of {count}",
                path=path,
                line=number,
                remedy="Each line should hold a text and a label. Where there are more columns, "
                "choose two, as --columns text,label.",
            )


def labels_of(texts: Sequence[LabelledText], *, path: Path) -> list[str]:
    """Return the labels in alphabetical order; refuse fewer than two."""
    labels = sorted({one.label for one in texts})
    if len(labels) < 2:
        raise DataError(
            f"every text has the label {labels[0]!r}",
            path=path,
            remedy="Give texts of at least two classes.",
        )
    return labels


def require_labels(texts: Sequence[LabelledText], known: Sequence[str], *, path: Path) -> None:
    """Refuse a label that the training texts do not have."""
    for one in texts:
        if one.label not in known:
            raise DataError(
                f"no training text has the label {one.label!r}",
                path=path,
                remedy=suggestion(one.label, known),
            )


def hold_out(texts: Sequence[LabelledText], *, share: float, seed: int) -> LabelledParts:
    """Split off a share of every class for validation; at least one text of each class remains."""
    order = np.argsort(np.random.PCG64([seed]).random_raw(len(texts)), kind="stable").tolist()
    left = {
        label: min(count - 1, max(1, round(share * count)))
        for label, count in Counter(one.label for one in texts).items()
    }
    held = set()
    for place in order:
        if left[texts[place].label] > 0:
            left[texts[place].label] -= 1
            held.add(place)
    return LabelledParts(
        [one for place, one in enumerate(texts) if place not in held],
        [one for place, one in enumerate(texts) if place in held],
    )


def single_example_warnings(texts: Sequence[LabelledText]) -> list[str]:
    """Return a sentence about each class with one example, which nothing can be validated on."""
    counts = Counter(one.label for one in texts)
    return [
        f"The class {label!r} has only one example: it is used for training and never validated."
        for label, count in sorted(counts.items())
        if count == 1
    ]
