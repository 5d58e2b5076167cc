"""Positional encodings as pictures: of a kind as the papers give it, or as a run has learned it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from regard.attention.positions import (
    LearnedPositions,
    RelativePositions,
    Rotary,
    Sinusoids,
    alibi_slopes,
)
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

    def _repr_html_(self) -> str:
        drawn = position_vectors_svg(
            self.vectors, places=self.places, what=self.what, title=self.title
        )
        return notebook_picture(drawn, label=self.title)


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

    def _repr_html_(self) -> str:
        drawn = position_curves_svg(
            self.curves, distances=self.distances, label=self.label, title=self.title
        )
        return notebook_picture(drawn, label=self.title)


def positions_of(
    kind: str, run: Path | None = None, *, layer: int | None = None
) -> PositionVectors | PositionCurves:
    """Return the positions of a kind; `own` are those that a run was trained with."""
    if run is None:
        if kind in (OWN, *LEARNED):
            raise SettingsError(
                f"Positions of the kind {kind!r} belong to a trained run: name its folder. "
                f"Without one there are: {', '.join(k for k in KINDS if k not in LEARNED)}."
            )
        require_known(kind, KINDS, what="kind of positions")
        return KINDS[kind](Subject(layer=layer or 0))
    settings, model = _model_of(run)
    has = getattr(settings, "positions", "none")
    if kind == OWN:
        kind = has
    require_known(kind, (*KINDS, "none"), what="kind of positions")
    if kind == "none":
        raise SettingsError(f"The model of {run} has no positional encoding to look at.")
    if kind in LEARNED and kind != has:
        raise SettingsError(f"The model of {run} has no {kind} positions; its kind is {has!r}.")
    return KINDS[kind](
        Subject(
            width=getattr(settings, "model_dim", Subject.width),
            heads=getattr(settings, "heads", Subject.heads),
            layer=layer or 0,
            model=model if kind == has else None,
        )
    )


def _model_of(run: Path) -> tuple[Any, nn.Module]:
    """Return the model of a run with its settings."""
    task = Run.open(run).task
    recipe: Any = Run.open(run).recipe(task_of(task).schema)
    if not hasattr(recipe.model, "family"):  # neither recurrent nor a Transformer
        raise SettingsError(f"A run of the task {task!r} has no positions to look at.")
    loaded = load(run)
    return loaded.recipe.model, loaded.model


def _sinusoidal(subject: Subject) -> PositionVectors:
    found = _parts(subject, Sinusoids)
    waves = found[0] if found else Sinusoids(subject.width)
    values = waves(subject.length).numpy()
    title = f"sinusoidal positions, width {values.shape[1]}"
    return PositionVectors(title, "position", range(subject.length), values)


def _learned(subject: Subject) -> PositionVectors:
    (table, *_) = _parts(subject, LearnedPositions)
    values = table.vectors.detach().numpy()[: 2 * subject.length]
    title = f"learned positions, width {values.shape[1]}"
    return PositionVectors(title, "position", range(len(values)), values)


def _relative(subject: Subject) -> PositionVectors:
    tables = _parts(subject, RelativePositions)
    if not 0 <= subject.layer < len(tables):
        raise SettingsError(
            f"There is no layer {subject.layer}: the layers are 0 to {len(tables) - 1}."
        )
    table = tables[subject.layer]
    distances = range(-table.reach, table.reach + 1)
    title = f"relative positions, keys of layer {subject.layer}"
    return PositionVectors(title, "distance", distances, table.keys.detach().numpy())


def _rotary(subject: Subject) -> PositionCurves:
    """Return the cosine by which two equal vectors still agree when they are so far apart."""
    rates = Rotary(subject.width // subject.heads).sinusoids.rates.double()
    distances = torch.arange(subject.length)
    waves = torch.cos(distances[:, None] * rates)  # [distance, wave]
    shown = np.unique(np.linspace(0, len(rates) - 1, SHOWN_WAVES).round().astype(int))
    curves = {"mean of all waves": waves.mean(dim=1).tolist()}
    curves |= {f"wave {number}": waves[:, number].tolist() for number in shown.tolist()}
    title = f"rotary positions, {len(rates)} waves a head"
    return PositionCurves(title, "agreement of equal vectors", distances.tolist(), curves)


def _alibi(subject: Subject) -> PositionCurves:
    distances = torch.arange(subject.length)
    curves = {
        f"head {head}": (-slope * distances).tolist()
        for head, slope in enumerate(alibi_slopes(subject.heads))
    }
    title = f"linear penalties (ALiBi), {subject.heads} heads"
    return PositionCurves(title, "added to the score", distances.tolist(), curves)


def _parts(subject: Subject, kind: type[Any]) -> list[Any]:
    """Return the parts of a kind in the model's order; there are none without a model."""
    if subject.model is None:
        return []
    return [part for part in subject.model.modules() if isinstance(part, kind)]


LEARNED = ("learned", "relative")
KINDS: dict[str, Callable[[Subject], PositionVectors | PositionCurves]] = {
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "relative": _relative,
    "rotary": _rotary,
    "alibi": _alibi,
}
