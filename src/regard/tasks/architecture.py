"""What a model is made of: its layers as a table, as Keras prints them, and as a diagram."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import SettingsError
from regard.base.results import Block, BlockDiagram
from regard.models.architecture import architecture
from regard.tasks import find_recipe, load, overrides_of, task_of

if TYPE_CHECKING:
    from torch import nn

    from regard.models.inspection import LayerRow
    from regard.settings.recipe import Recipe

BATCH = re.compile(r"\(batch, (?=\w+, )")
COLUMNS = ("layer (kind)", "output shape", "parameters", "bytes", "trainable", "connected to")


@dataclass(frozen=True)
class ModelSummary:
    """The plan of a model: a table of its layers, and a diagram."""

    name: str
    plan: BlockDiagram
    weights: tuple[LayerRow, ...]
    """Every part that owns weights, with their shapes."""

    def save(self, path: str | Path) -> None:
        """Draw the diagram to a PNG, SVG or PDF file."""
        from regard.pictures.architecture import draw_architecture

        draw_architecture(self.plan, Path(path), title=self.name)

    def svg(self) -> str:
        """Return the diagram as SVG text, for a page."""
        from regard.pictures.architecture import architecture_svg

        return architecture_svg(self.plan, title=self.name)

    def sections(self, *, with_batch: bool = True) -> dict[str, list[tuple[str, ...]]]:
        """Return the rows of the table for each half of the model; equal layers are one row.

        Each row has `COLUMNS`; in a narrow place, shapes can do without their batch.
        """
        from regard.pictures.layout import collapsed

        sections: dict[str, list[tuple[str, ...]]] = {}
        for side in dict.fromkeys(block.side for block in self.plan.layers):
            own = [block for block in self.plan.layers if block.side == side]
            shown, repeats, _ = collapsed(own)
            times = repeats[0].times if repeats else 1
            names = RowNames(side, {block.layer for block in shown}, times)
            rows = [self._row(block, names) for block in shown]
            if not with_batch:
                rows = [tuple(BATCH.sub("(", cell) for cell in row) for row in rows]
            sections[side] = rows
        return sections

    def _row(self, block: Block, names: RowNames) -> tuple[str, ...]:
        often = f"{names.times} × " if names.times > 1 and block.layer is not None else ""
        shared = block.shared and not block.parameters
        changed = "-" if not block.parameters else "yes" if block.trainable else "no"
        return (
            names.of(block.name) + (f"\n({block.kind})" if block.kind else ""),
            block.output_shape,
            "shared" if shared else f"{often if block.parameters else ''}{block.parameters:,}",
            _size(block.bytes) if block.bytes else "0",
            changed,
            "\n".join(dict.fromkeys(self._read(block, names))),
        )

    def totals(self) -> str:
        """Return the totals in one line."""
        found, trained = self.plan.parameters, self.plan.trainable
        return (
            f"{found:,} parameters ({_size(self.plan.bytes)}): {trained:,} trainable, "
            f"{found - trained:,} not"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plan = self.plan
        return {
            "parameters": {
                "total": plan.parameters,
                "trainable": plan.trainable,
                "bytes": plan.bytes,
            },
            "layers": [
                {
                    "name": block.name,
                    "kind": block.kind,
                    "output_shape": block.output_shape,
                    "parameters": block.parameters,
                    "bytes": block.bytes,
                    "trainable": block.trainable,
                    "shared_with": block.shared,
                    "connected_to": self._read(block, RowNames()),
                    "note": block.note,
                }
                for block in plan.layers
            ],
            "weights": [
                {"name": row.name, "kind": row.kind, "shape": row.shape, "size": row.parameters}
                for row in self.weights
            ],
        }

    def _repr_html_(self) -> str:
        from regard.pictures.svg import escaped, notebook_picture

        head = "".join(f"<th>{escaped(name)}</th>" for name in COLUMNS)
        parts = [f"<table><tr>{head}</tr>"]
        for side, rows in self.sections().items():
            if side:
                parts.append(f"<tr><th colspan={len(COLUMNS)}>{escaped(side)}</th></tr>")
            for row in rows:
                cells = "".join(f"<td>{escaped(cell)}</td>" for cell in row)
                parts.append(f"<tr>{cells}</tr>")
        parts.append(f"</table><p>{escaped(self.totals())}</p>")
        return notebook_picture(self.svg(), label=f"Diagram of {self.name}") + "".join(parts)

    def _read(self, block: Block, names: RowNames) -> list[str]:
        """Return what feeds a block, as people name it."""
        found = []
        for link in block.inputs:
            source = self.plan[link.block]
            name = names.of(link.block)
            if source.role == "input":
                name = f"{source.title} {source.output_shape}" if not names.side else source.title
            found.append(f"{name} (step before)" if link.earlier else name)
        return found


@dataclass(frozen=True)
class RowNames:
    """How blocks are named in a table: without their half of the model, equal layers together."""

    side: str = ""
    layers: frozenset[int | None] | set[int | None] = frozenset()
    times: int = 1

    def of(self, name: str) -> str:
        """Return the name of a block, as 0-3.attention for four equal layers."""
        short = name.removeprefix(f"{self.side}.") if self.side else name
        first, _, rest = short.partition(".")
        period = len(self.layers - {None})
        if self.times == 1 or not first.isdecimal() or int(first) not in self.layers:
            return short
        every = [int(first) + period * time for time in range(self.times)]
        numbers = f"{every[0]}-{every[-1]}" if period == 1 else ",".join(map(str, every))
        return f"{numbers}.{rest}"


def summary(
    what: str | Path | Recipe, *, set: Mapping[str, Any] | Iterable[str] = ()
) -> ModelSummary:
    """Return the layers of a recipe's model, or of a run's: what `regard summary` shows.

    `set` changes settings of a recipe by their dotted names.

    >>> regard.summary("transformer-tiny", set={"model.heads": 8}).save("transformer.svg")
    """
    from regard.models.inspection import layer_table
    from regard.settings.recipe import Recipe

    overrides = overrides_of(set)
    if isinstance(what, str | Path) and Path(what).is_dir():
        if overrides:
            raise SettingsError("--set has no effect on a run that is already trained.")
        loaded = load(what)
        recipe, network, name = loaded.recipe, loaded.model, Path(what).name
        network.requires_grad_(True)
    else:
        given = isinstance(what, Recipe)
        recipe = what if isinstance(what, Recipe) else find_recipe(str(what), overrides=overrides)
        network = task_of(recipe.task).build(recipe)
        name = (recipe.title or recipe.task) if given else Path(str(what)).stem
    _freeze(network, recipe)
    return ModelSummary(name, architecture(network), tuple(layer_table(network)))


def _freeze(network: nn.Module, recipe: Recipe) -> None:
    """Mark what a training by this recipe would leave as it is."""
    from regard.models.pretrained import freeze

    frozen = getattr(getattr(recipe, "training", None), "freeze", ())
    if frozen:
        freeze(network, frozen)


def _size(count: int) -> str:
    """Return a number of bytes as people read it, in powers of 1024 as Keras has it."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:,.0f} B" if unit == "B" else f"{size:,.2f} {unit}"
        size /= 1024
    return f"{size:,.2f} GB"
