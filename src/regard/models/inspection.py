"""Looking into a model: its layers and their sizes, what each part returned, and traces."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from html import escape
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.base.errors import RegardError, SettingsError
from regard.base.files import whole_file
from regard.base.shapes import Tensor


@dataclass(frozen=True)
class LayerRow:
    """A part of the model that owns parameters, with the shapes of its weights."""

    name: str
    kind: str
    shape: str
    parameters: int


def layer_table(model: nn.Module) -> list[LayerRow]:
    """Return every part that owns parameters; one shared between two parts counts once."""
    seen: set[int] = set()
    rows = [_row(name, part, seen) for name, part in model.named_modules()]
    return [row for row in rows if row.parameters]


def parameter_count(model: nn.Module) -> int:
    """Return how many numbers the model has learned or will learn."""
    return sum(p.numel() for p in model.parameters())


def _row(name: str, part: nn.Module, seen: set[int]) -> LayerRow:
    """Return the row of one part, counting only the parameters that no row has had."""
    own = [p for p in part.parameters(recurse=False) if id(p) not in seen]
    seen.update(id(p) for p in own)
    return LayerRow(
        name=name,
        kind=type(part).__name__,
        shape=", ".join("x".join(str(size) for size in p.shape) for p in own),
        parameters=sum(p.numel() for p in own),
    )


@contextmanager
def recorded(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Yield a dictionary that fills with the outputs of every part, one tensor a call.

    A part that returns several tensors has one entry for each, as `decoder.lookup.weights`.
    """
    outputs: dict[str, list[Tensor]] = {}
    handles = [
        part.register_forward_hook(partial(_keep_output, outputs, name))
        for name, part in model.named_modules()
        if name
    ]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def join_calls(calls: list[Tensor]) -> list[Tensor]:
    """Return what a part gave in all its calls: steps of a sequence side by side, others apart."""
    joined: list[Tensor] = []
    for shape in dict.fromkeys(call.shape for call in calls):
        alike = [call for call in calls if call.shape == shape]
        steps = len(shape) >= 3 and shape[1] == 1
        joined += [torch.cat(alike, dim=1)] if steps else alike
    return joined


def _keep_output(
    outputs: dict[str, list[Tensor]], name: str, part: nn.Module, inputs: Any, output: Any
) -> None:
    for path, tensor in _tensors(output, name):
        calls = outputs.setdefault(path, [])
        # What is only handed on from step to step, such as a memory, is one value.
        if not any(call.data_ptr() == tensor.data_ptr() for call in calls[-1:]):
            calls.append(tensor.detach())


def _tensors(value: Any, path: str) -> Iterator[tuple[str, Tensor]]:
    """Yield the floating-point tensors inside a value, with the path that leads to each."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield path, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from _tensors(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple | list):
        names = getattr(value, "_fields", range(len(value)))
        for key, item in zip(names, value, strict=True):
            yield from _tensors(item, f"{path}.{key}")


# Wider arrays are cut in a table; JSON and npz hold them in full.
SHOWN_COLUMNS = 6
LAYER_COLUMNS = 8  # that fit into 80 characters, with two digits each


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
    inside: list[TracedArray] = field(default_factory=list)
    """What happens inside each layer, as `encoder.0.Q`."""

    def __getitem__(self, name: str) -> np.ndarray:
        for array in (*self.arrays, *self.inside, *self.parts):
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

    def layer_tables(
        self,
        *,
        layer: int,
        part: str | None = None,
        head: int = 0,
        step: int | None = None,
    ) -> Iterator[tuple[str, TraceTable]]:
        """Yield a title and a table for each value inside a layer, for one head where it has heads.

        With a step, only its row of what attends; keys and values keep all their rows.
        """
        places = {array.name.split(".")[0] for array in self.inside}
        if part is not None and part not in places:
            known = ", ".join(sorted(places)) or "no layers"
            raise SettingsError(f"There is no part {part!r} in this trace: it has {known}.")
        found = [array for array in self.inside if _is_of(array.name, part, layer)]
        if not found:
            most = max((int(array.name.split(".")[1]) for array in self.inside), default=-1)
            raise SettingsError(
                f"There is no layer {layer} in this trace: "
                f"{f'the layers are 0 to {most}' if most >= 0 else 'it shows no layers'}."
            )
        for array in found:
            axes, values = array.axes, array.values
            if axes[0] == "head":
                if not 0 <= head < len(values):
                    raise SettingsError(
                        f"There is no head {head}: {array.name} has {len(values)}, counted from 0."
                    )
                axes, values = axes[1:], values[head]
            labels = self._labels(axes[0], len(values))
            fixed = array.name.endswith((".K", ".V"))
            rows = range(len(values))
            if step is not None and not fixed and axes[0] != "source":
                if not 0 <= step < len(values):
                    raise SettingsError(
                        f"There is no step {step}: the last one is {len(values) - 1}."
                    )
                rows = range(step, step + 1)
            columns = self._labels(axes[1], values.shape[1])[:LAYER_COLUMNS]
            more = ["..."] if values.shape[1] > LAYER_COLUMNS else []
            cells = [
                [labels[row], *(f"{value:.2f}" for value in values[row, :LAYER_COLUMNS]), *more]
                for row in rows
            ]
            of_head = f", head {head}" if array.axes[0] == "head" else ""
            yield (
                f"{array.name} = {array.formula}{of_head}",
                TraceTable(axes[0], [axes[0], *columns, *more], cells),
            )

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.source)} &rarr; {escape(self.output)}</p>"]
        for table in self.tables():
            head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
            rows = "".join(
                "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                for row in table.rows
            )
            parts.append(f"<table><tr>{head}</tr>{rows}</table>")
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "family": self.family,
            "input": self.source,
            "output": self.output,
            "labels": {axis: list(labels) for axis, labels in self.labels.items()},
            "values": {array.name: _record(array) for array in self.arrays},
            "layers": {array.name: _record(array) for array in self.inside},
            "parts": {array.name: _record(array) for array in self.parts},
        }

    def save(self, path: Path) -> None:
        """Write all arrays, and the labels of the axes, to an .npz file."""
        if path.suffix != ".npz":
            raise RegardError(f"{path}: a trace is written as .npz; choose such a name.")
        every = (*self.arrays, *self.inside, *self.parts)
        arrays = {array.name: array.values for array in every}
        labels = {f"labels.{axis}": np.array(list(names)) for axis, names in self.labels.items()}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
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
        if array.axes[1:] == ("vocab",) and "vocab" in self.labels:
            yield array.name, [_most_likely(row, self.labels["vocab"]) for row in wide]
            return
        labels = map(self._labels, array.axes[1:], array.values.shape[1:])
        for place, names in enumerate(islice(product(*labels), SHOWN_COLUMNS)):
            heading = f"{array.name}[{', '.join(names)}]"
            yield heading, [_number(value) for value in wide[:, place]]
        if wide.shape[1] > SHOWN_COLUMNS:
            yield f"... {array.name}, norm", [_number(np.linalg.norm(row)) for row in wide]


def _is_of(name: str, part: str | None, layer: int) -> bool:
    """Return whether a value as encoder.0.Q belongs to a layer, of a part or of any."""
    first, number, *_ = name.split(".")
    return part in (None, first) and int(number) == layer


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


def traced_parts(outputs: Mapping[str, list[Tensor]]) -> list[TracedArray]:
    """Return what each part of the model returned, by its place in the model."""
    arrays = []
    for name, calls in outputs.items():
        for number, values in enumerate(join_calls(calls), 1):
            title = f"part.{name}" if number == 1 else f"part.{name}#{number}"
            axes = ("batch", *(f"axis {place}" for place in range(1, values.dim())))
            arrays.append(TracedArray(title, axes, values.cpu().numpy()))
    return arrays
