"""Pictures of what length costs and of laws of scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from regard.pictures.scaling import ScalingPanel, draw_scaling
from regard.pictures.studies import LengthPanel, draw_by_length
from regard.studies.efficiency import LengthCosts
from regard.studies.scaling import ScaledRun, ScalingLaw, fit_law

LOSS = "validation loss (nats a token)"
PLACES = 40  # where a line is drawn through


def draw_costs(found: Sequence[LengthCosts], path: Path) -> None:
    """Draw time, memory and path length against the length of texts."""
    panels = {
        "ms for the same tokens": {
            one.name: {n: 1e3 * s for n, s in one.seconds.items()} for one in found
        },
        "MB kept for the gradient": {
            one.name: {n: b / 1e6 for n, b in one.kept_bytes.items()} for one in found
        },
        "steps from first to last": {
            one.name: {n: float(p) for n, p in one.path.items() if p is not None} for one in found
        },
    }
    draw_by_length(
        [LengthPanel(label=label, curves=curves, powers=True) for label, curves in panels.items()],
        path,
    )


def draw_runs(runs: Sequence[ScaledRun], path: Path) -> None:
    """Draw losses against parameters, data and compute, with the law that is fitted to them."""
    law = fit_law(runs)
    draw_scaling([_by_size(runs, law), _by_tokens(runs, law), _by_compute(runs, law)], path)


def _by_size(runs: Sequence[ScaledRun], law: ScalingLaw) -> ScalingPanel:
    counts = sorted({run.tokens for run in runs})
    across = _between([run.parameters for run in runs])
    return ScalingPanel(
        across="parameters N",
        up=LOSS,
        points={
            f"{n:,} tokens": _points(runs, lambda run: run.parameters, tokens=n) for n in counts
        },
        lines={f"{n:,} tokens": _line(across, law.loss(across, n)) for n in counts},
    )


def _by_tokens(runs: Sequence[ScaledRun], law: ScalingLaw) -> ScalingPanel:
    sizes = sorted({run.parameters for run in runs})
    across = _between([run.tokens for run in runs])
    return ScalingPanel(
        across="tokens D",
        up=LOSS,
        points={
            f"{n:,} parameters": _points(runs, lambda run: run.tokens, parameters=n) for n in sizes
        },
        lines={f"{n:,} parameters": _line(across, law.loss(n, across)) for n in sizes},
    )


def _by_compute(runs: Sequence[ScaledRun], law: ScalingLaw) -> ScalingPanel:
    sizes = sorted({run.parameters for run in runs})
    across = _between([run.compute for run in runs])
    best = law.best_size(across)
    return ScalingPanel(
        across="compute C = 6 N D",
        up=LOSS,
        points={
            f"{n:,} parameters": _points(runs, lambda run: run.compute, parameters=n) for n in sizes
        },
        lines={"compute-optimal": _line(across, law.loss(best, across / 6 / best))},
    )


def _points(
    runs: Sequence[ScaledRun], place: Callable[[ScaledRun], float], **wanted: int
) -> list[tuple[float, float]]:
    """Return the losses of runs with these properties."""
    return [
        (float(place(run)), run.loss)
        for run in runs
        if all(getattr(run, name) == value for name, value in wanted.items())
    ]


def _between(values: Sequence[float] | Sequence[int]) -> np.ndarray:
    return np.geomspace(float(min(values)), float(max(values)), PLACES)


def _line(across: np.ndarray, up: np.ndarray) -> list[tuple[float, float]]:
    return list(zip(across.tolist(), up.tolist(), strict=True))
