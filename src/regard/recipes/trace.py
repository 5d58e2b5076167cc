"""A trace: every value on the way from one input to the output, with names for the axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.base.errors import RegardError

# Wider arrays are cut in a table; JSON and npz hold them in full.
SHOWN_COLUMNS = 6


@dataclass(frozen=True)
class TracedArray:
    """One named value: its axes, and the formula that it comes from."""

    name: str
    axes: tuple[str, ...]
    values: np.ndarray
    formula: str = ""


@dataclass(frozen=True)
class TraceTable:
    """Arrays that share their first axis, side by side, as a person reads them."""

    axis: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Trace:
    """All values of one input: named ones first, then what each part of the model returned."""

    family: str
    source: str
    output: str
    arrays: list[TracedArray]
    labels: Mapping[str, Sequence[str]]
    parts: list[TracedArray] = field(default_factory=list)

    def __getitem__(self, name: str) -> np.ndarray:
        for array in (*self.arrays, *self.parts):
            if array.name == name:
                return array.values
        raise KeyError(name)

    def tables(self) -> Iterator[TraceTable]:
        """Yield a table for each first axis, in the order in which data passes them."""
        for axis in dict.fromkeys(array.axes[0] for array in self.arrays):
            together = [array for array in self.arrays if array.axes[0] == axis]
            columns = [column for array in together for column in self._columns(array)]
            labels = self._labels(axis, len(together[0].values))
            yield TraceTable(
                axis,
                [axis, *(heading for heading, _ in columns)],
                [
                    [label, *(cells[row] for _, cells in columns)]
                    for row, label in enumerate(labels)
                ],
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "family": self.family,
            "input": self.source,
            "output": self.output,
            "labels": {axis: list(labels) for axis, labels in self.labels.items()},
            "values": {array.name: _record(array) for array in self.arrays},
            "parts": {array.name: _record(array) for array in self.parts},
        }

    def save(self, path: Path) -> None:
        """Write all arrays, and the labels of the axes, to an .npz file."""
        if path.suffix != ".npz":
            raise RegardError(f"{path}: a trace is written as .npz; choose such a name.")
        arrays = {array.name: array.values for array in (*self.arrays, *self.parts)}
        labels = {f"labels.{axis}": np.array(list(names)) for axis, names in self.labels.items()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays, **labels)
        except OSError as error:
            raise RegardError(f"{path}: cannot be written ({error.strerror}).") from error

    def _labels(self, axis: str, count: int) -> list[str]:
        return list(self.labels.get(axis, [str(place) for place in range(1, count + 1)]))

    def _columns(self, array: TracedArray) -> Iterator[tuple[str, list[str]]]:
        """Yield headings with their cells: all of a narrow array, the first few of a wide one."""
        if array.values.ndim == 1:
            yield array.name, [_number(value) for value in array.values]
            return
        wide = array.values.reshape(len(array.values), -1)
        named = self.labels.get(array.axes[1]) if len(array.axes) == 2 else None
        if array.axes[-1] == "vocab" and named:
            yield array.name, [_most_likely(row, named) for row in wide]
            return
        for place in range(min(SHOWN_COLUMNS, wide.shape[1])):
            heading = f"{array.name}[{named[place] if named else place + 1}]"
            yield heading, [_number(value) for value in wide[:, place]]
        if wide.shape[1] > SHOWN_COLUMNS:
            yield f"... {array.name}, norm", [_number(np.linalg.norm(row)) for row in wide]


def _number(value: Any) -> str:
    return f"{float(value):.4g}"


def _most_likely(row: np.ndarray, names: Sequence[str], *, count: int = 3) -> str:
    best = np.argsort(-row, kind="stable")[:count]
    return "  ".join(f"{names[place]} {row[place]:.3f}" for place in best)


def _record(array: TracedArray) -> dict[str, Any]:
    return {
        "axes": list(array.axes),
        "shape": list(array.values.shape),
        **({"formula": array.formula} if array.formula else {}),
        "values": array.values.tolist(),
    }
