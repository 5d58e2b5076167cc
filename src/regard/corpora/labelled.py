"""Readers of labelled texts: `label text` lines, TSV or JSON lines."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.base.errors import DataError
from regard.corpora.lines import read_lines
from regard.settings.recipe import suggestion

EXPECTED = "one label and one text per line"
TEXT_NAMES, LABEL_NAMES = ("text", "sentence", "review", "question"), ("label", "class", "category")


class LabelledText(NamedTuple):
    """A text and its label."""

    label: str
    text: str


class LabelledParts(NamedTuple):
    """Texts to learn from, and others to validate on."""

    train: list[LabelledText]
    valid: list[LabelledText]


def read_labelled(path: Path) -> list[LabelledText]:
    """Return the labelled texts of a file; its ending names the format (.tsv, .jsonl).

    In any other file the label is the first word of each line.
    """
    name = path.name.removesuffix(".gz")
    kind = name.rpartition(".")[2]
    reader = READERS.get(kind, _read_words)
    found = reader(path, read_lines(path, expected=EXPECTED))
    for number, one in found:
        if not one.text.strip() or not one.label.strip():
            raise DataError(
                f"there is no {'text' if one.label.strip() else 'label'}",
                path=path,
                line=number,
                remedy=f"There should be {EXPECTED}.",
            )
    if not found:
        raise DataError("there is no labelled text", path=path, remedy=f"Give {EXPECTED}.")
    return [one for _, one in found]


Numbered = list[tuple[int, LabelledText]]


def _read_words(path: Path, lines: Sequence[str]) -> Numbered:
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            label, _, text = line.strip().partition(" ")
            found.append((number, LabelledText(label, text.strip())))
    return found


def _read_tsv(path: Path, lines: Sequence[str]) -> Numbered:
    rows = [(n, line.split("\t")) for n, line in enumerate(lines, 1) if line.strip()]
    for number, row in rows:
        if len(row) != 2:
            raise DataError(
                f"there are {len(row)} columns instead of 2",
                path=path,
                line=number,
                remedy="Each line should be a text and a label with a tab between them.",
            )
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    if sorted(cell in LABEL_NAMES for cell in header) == [False, True]:
        label = next(place for place, cell in enumerate(header) if cell in LABEL_NAMES)
        rows = rows[1:]
    else:  # labels repeat more often than texts, and are shorter
        cells = [[row[place] for _, row in rows] for place in (0, 1)]
        first, second = ((len(set(column)), sum(map(len, column))) for column in cells)
        label = 0 if first <= second else 1
    return [(n, LabelledText(row[label].strip(), row[1 - label].strip())) for n, row in rows]


def _read_json(path: Path, lines: Sequence[str]) -> Numbered:
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise DataError(
                "this is not a JSON object", path=path, line=number, remedy="Give one per line."
            )
        cells = []
        for names in (LABEL_NAMES, TEXT_NAMES):
            key = next((name for name in names if name in row), None)
            if key is None:
                raise DataError(
                    f"the object has no {names[0]!r}",
                    path=path,
                    line=number,
                    remedy='Each should be like {"label": "good", "text": "a fine film"}.',
                )
            cells.append(str(row[key]))
        found.append((number, LabelledText(*cells)))
    return found


READERS: dict[str, Callable[[Path, Sequence[str]], Numbered]] = {
    "tsv": _read_tsv,
    "jsonl": _read_json,
}


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
