"""Positional encodings as pictures: of a kind as the papers give it, or as a run has learned it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.attention import places, positions
from regard.base.errors import SettingsError
from regard.pictures.positions import (
    draw_position_curves,
    draw_position_vectors,
    position_curves_svg,
    position_vectors_svg,
)
from regard.pictures.svg import notebook_picture
from regard.runs.run import Run
from regard.settings.recipe import require_known
from regard.tasks import load, task_of

OWN = "own"
SHOWN_WAVES = 4


@dataclass(frozen=True)
class Subject:
    """What a picture is made of: sizes, and the model whose vectors are wanted if there is one."""

    width: int = 128
    heads: int = 8
    length: int = 64
    layer: int = 0
    model: nn.Module | None = None


@dataclass(frozen=True)
class PositionVectors:
    """A vector for each position or distance."""

    title: str
    what: str
    places: Sequence[int]
    vectors: Float[np.ndarray, "places width"]

    def save(self, path: Path) -> None:
        """Draw the vectors, or write them as data."""
        draw_position_vectors(
            self.vectors, places=self.places, path=path, what=self.what, title=self.title
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "title": self.title,
            self.what: list(self.places),
            "vectors": np.round(self.vectors.astype(float), 6).tolist(),
        }

    def svg(self) -> str:
        """Return the picture as SVG text, for a page."""
        return position_vectors_svg(
            self.vectors, places=self.places, what=self.what, title=self.title
        )

    def _repr_html_(self) -> str:
        return notebook_picture(self.svg(), label=self.title)


@dataclass(frozen=True)
class PositionCurves:
    """What the distance of query and key does to their score, a curve a head or a wave."""

    title: str
    label: str
    distances: Sequence[int]
    curves: dict[str, list[float]]

    def save(self, path: Path) -> None:
        """Draw the curves, or write them as data."""
        draw_position_curves(
            self.curves, distances=self.distances, path=path, label=self.label, title=self.title
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"title": self.title, "distances": list(self.distances), "curves": self.curves}

    def svg(self) -> str:
        """Return the picture as SVG text, for a page."""
        return position_curves_svg(
            self.curves, distances=self.distances, label=self.label, title=self.title
        )

    def _repr_html_(self) -> str:
        return notebook_picture(self.svg(), label=self.title)


def positions_of(
    kind: str, run: Path | None = None, *, layer: int | None = None
) -> PositionVectors | PositionCurves:
    """Return the positions of a kind; `own` are those that a run was trained with."""
    if run is None:
        if kind == OWN or kind in _learned_kinds():
            drawn = [
                name for name in positions.POSITIONS if name not in ("none", *_learned_kinds())
            ]
            raise SettingsError(
                f"Positions of the kind {kind!r} belong to a trained run: name its folder. "
                f"Without one there are: {', '.join(drawn)}."
            )
        return picture(kind, Subject(layer=layer or 0))
    settings, model = _model_of(run)
    has = getattr(settings, "positions", "none")
    if kind == OWN:
        kind = has
    if kind == "none":
        raise SettingsError(f"The model of {run} has no positional encoding to look at.")
    if kind in _learned_kinds() and kind != has:
        raise SettingsError(f"The model of {run} has no {kind} positions; its kind is {has!r}.")
    subject = Subject(
        width=getattr(settings, "model_dim", Subject.width),
        heads=getattr(settings, "heads", Subject.heads),
        layer=layer or 0,
        model=model if kind == has else None,
    )
    return picture(kind, subject)


def picture(kind: str, subject: Subject) -> PositionVectors | PositionCurves:
    """Return what there is to see of a kind of positions, which depends on where they act."""
    require_known(kind, positions.POSITIONS, what="kind of positions")
    parts = [fresh(kind, subject)] if subject.model is None else _parts(subject.model, kind)
    if not 0 <= subject.layer < len(parts):
        raise SettingsError(
            f"There is no layer {subject.layer}: the layers are 0 to {len(parts) - 1}."
        )
    part = parts[subject.layer if isinstance(parts[0], places.PairPositions) else 0]
    for place, draw in PICTURES.items():
        if isinstance(part, place):
            return draw(part, kind, subject)
    raise SettingsError(f"There is nothing to see of positions of the kind {kind!r}.")


def fresh(kind: str, subject: Subject) -> places.Positions:
    """Return positions of a kind that no training has changed."""
    return positions.POSITIONS[kind].build(
        places.PositionOptions(model_dim=subject.width, heads=subject.heads)
    )


def _learned_kinds() -> list[str]:
    """Return the kinds that have parameters, of which there is nothing to see before training."""
    return [
        kind
        for kind in positions.POSITIONS
        if any(True for _ in fresh(kind, Subject()).parameters())
    ]


def _model_of(run: Path) -> tuple[Any, nn.Module]:
    """Return the model of a run with its settings."""
    task = Run.open(run).task
    recipe: Any = Run.open(run).recipe(task_of(task).schema)
    if not hasattr(recipe.model, "family"):  # neither recurrent nor a Transformer
        raise SettingsError(f"A run of the task {task!r} has no positions to look at.")
    loaded = load(run)
    return loaded.recipe.model, loaded.model


def _added(part: places.AddedPositions, kind: str, subject: Subject) -> PositionVectors:
    end = part.max_length
    length = subject.length if end is None else min(end, 2 * subject.length)
    values = part(length).detach().cpu().numpy()
    title = f"{kind} positions, width {values.shape[1]}"
    return PositionVectors(title, "position", range(length), values)


def _pairs(part: places.PairPositions, kind: str, subject: Subject) -> PositionVectors:
    distances, vectors = part.by_distance()
    title = f"{kind} positions, keys of layer {subject.layer}"
    return PositionVectors(title, "distance", distances, vectors.detach().cpu().numpy())


def _rotated(part: places.RotatedPositions, kind: str, subject: Subject) -> PositionCurves:
    """Return by how much two equal vectors still agree at every distance."""
    waves = part.agreement(subject.length, head_dim=subject.width // subject.heads)
    count = waves.shape[1]
    shown = np.unique(np.linspace(0, count - 1, SHOWN_WAVES).round().astype(int))
    curves = {"mean of all waves": waves.mean(dim=1).tolist()}
    curves |= {f"wave {number}": waves[:, number].tolist() for number in shown.tolist()}
    title = f"{kind} positions, {count} waves a head"
    return PositionCurves(title, "agreement of equal vectors", range(subject.length), curves)


def _biased(part: places.DistanceBias, kind: str, subject: Subject) -> PositionCurves:
    distances = torch.arange(subject.length)
    bias = part(distances[None], dtype=torch.float32)[:, 0]  # [head, distance]
    curves = {f"head {head}": row.tolist() for head, row in enumerate(bias)}
    title = f"{kind} positions, {len(bias)} heads"
    return PositionCurves(title, "added to the score", range(subject.length), curves)


def _parts(model: nn.Module, kind: str) -> list[places.Positions]:
    """Return the positions of a model, in the order of its layers."""
    return [part for part in model.modules() if type(part) is positions.POSITIONS[kind]]


# What is drawn of the positions that act in each place.
PICTURES: dict[
    type[places.Positions], Callable[[Any, str, Subject], PositionVectors | PositionCurves]
] = {
    places.AddedPositions: _added,
    places.PairPositions: _pairs,
    places.RotatedPositions: _rotated,
    places.DistanceBias: _biased,
}
