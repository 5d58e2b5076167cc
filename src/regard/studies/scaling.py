"""Scaling laws in miniature: the loss of small language models against parameters, data, compute.

Models of several widths are trained on several numbers of tokens, each from scratch with a schedule
of its own, and a law is fitted to all of them:

    L(N, D) = E + A / N^alpha + B / D^beta    (Hoffmann et al. 2022, eq. 2)

N are the parameters without embeddings, D the tokens of training, and compute is C = 6 N D. For
each C the law has a best size, N_opt ~ C^(beta / (alpha + beta)) (eq. 4): the compute-optimal line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from torch import nn

from regard.base.errors import RegardError
from regard.settings.language_models import CausalTransformerSettings
from regard.studies.small_models import Characters, TrainingBudget, train_small

WIDTHS = (16, 32, 64, 128)
TOKENS = (65_536, 131_072, 262_144, 524_288)
LAYERS, CONTEXT, BATCH = 2, 64, 16
SAMPLES = 200  # of the bootstrap
EXPONENTS = np.geomspace(0.05, 2.5, 40)  # where alpha and beta are looked for


@dataclass(frozen=True)
class ScaledRun:
    """One training: its size, its tokens, its seed, and the validation loss that it reached."""

    width: int
    parameters: int
    tokens: int
    seed: int
    loss: float
    seconds: float

    @property
    def compute(self) -> float:
        """C = 6 N D, the operations of the training."""
        return 6.0 * self.parameters * self.tokens

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"compute": self.compute}


def scaled_runs(
    text: Characters,
    *,
    widths: Sequence[int] = WIDTHS,
    tokens: Sequence[int] = TOKENS,
    seeds: Sequence[int] = (1, 2, 3),
    learning_rate: float = 4e-3,
    on_run: Callable[[ScaledRun], None] = lambda run: None,
) -> list[ScaledRun]:
    """Train a model of every width on every number of tokens with every seed."""
    found = []
    for seed in seeds:
        for width in widths:
            for count in tokens:
                trained = train_small(
                    _settings(width),
                    text,
                    TrainingBudget(
                        updates=max(1, count // (BATCH * CONTEXT)),
                        batch_size=BATCH,
                        # Wider models want smaller steps.
                        learning_rate=learning_rate * (WIDTHS[0] / width) ** 0.5,
                        warmup=min(50, count // (BATCH * CONTEXT) // 4 + 1),
                        seed=seed,
                    ),
                )
                run = ScaledRun(
                    width=width,
                    parameters=inner_parameters(trained.model),
                    tokens=trained.last.tokens,
                    seed=seed,
                    loss=trained.last.loss,
                    seconds=trained.last.seconds,
                )
                on_run(run)
                found.append(run)
    return found


def _settings(width: int) -> CausalTransformerSettings:
    return CausalTransformerSettings.model_validate(
        {"layers": LAYERS, "model_dim": width, "heads": max(1, width // 16), "context": CONTEXT,
         "positions": "rotary"}
    )  # fmt: skip


def inner_parameters(model: nn.Module) -> int:
    """Return the number of parameters without those of tokens (Kaplan et al. 2020, section 2.1)."""
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    return sum(p.numel() for p in model.parameters() if id(p) not in tables)


@dataclass(frozen=True)
class ScalingLaw:
    """L = E + A / N^alpha + B / D^beta."""

    floor: float  # E
    size_factor: float  # A
    data_factor: float  # B
    alpha: float
    beta: float

    def loss(self, parameters: Any, tokens: Any) -> Any:
        """Return what the law expects."""
        return (
            self.floor
            + self.size_factor / np.asarray(parameters, float) ** self.alpha
            + self.data_factor / np.asarray(tokens, float) ** self.beta
        )

    @property
    def size_exponent(self) -> float:
        """The power of compute with which the best size grows: beta / (alpha + beta)."""
        return self.beta / (self.alpha + self.beta)

    def best_size(self, compute: Any) -> Any:
        """Return the size with the lowest loss for a compute (Hoffmann et al. 2022, eq. 4)."""
        ratio = self.alpha * self.size_factor / (self.beta * self.data_factor)
        return (
            ratio ** (1 / (self.alpha + self.beta))
            * (np.asarray(compute, float) / 6) ** self.size_exponent
        )

    def to_dict(self) -> dict[str, float]:
        """Return plain values for JSON."""
        return asdict(self) | {"size_exponent": self.size_exponent}


def fit_law(runs: Sequence[ScaledRun]) -> ScalingLaw:
    """Return the law with the least relative squared error.

    For given exponents the other three numbers are those of linear least squares, so only two have
    to be looked for, on a grid; laws with a negative number are none.
    """
    if len({run.parameters for run in runs}) < 3 or len({run.tokens for run in runs}) < 3:
        raise RegardError(
            "A scaling law needs models of at least 3 sizes and 3 numbers of tokens to be fitted."
        )
    sizes, tokens, losses = (
        np.array([getattr(run, name) for run in runs], float)
        for name in ("parameters", "tokens", "loss")
    )
    # In units of the smallest, so that the sums are well conditioned.
    small, few = sizes / sizes.min(), tokens / tokens.min()
    alphas = betas = EXPONENTS
    for _ in range(3):  # ever finer around the best
        numbers, alpha, beta = _best_exponents(alphas, betas, small, few, losses)
        alphas, betas = (_finer(grid, best) for grid, best in ((alphas, alpha), (betas, beta)))
    floor, size_factor, data_factor = (float(number) for number in numbers)
    return ScalingLaw(
        floor,
        size_factor * float(sizes.min()) ** alpha,
        data_factor * float(tokens.min()) ** beta,
        alpha,
        beta,
    )


def _finer(grid: Any, best: float) -> Any:
    """Return exponents between the neighbours of the best one."""
    step = float(grid[1] / grid[0])
    return np.geomspace(best / step, best * step, 15)


def _best_exponents(
    alphas: Any, betas: Any, sizes: Any, tokens: Any, losses: Any
) -> tuple[Any, float, float]:
    """Return E, A and B by least squares for the best alpha and beta of a grid, and those."""
    by_size = sizes ** -alphas[:, None, None] + 0 * betas[None, :, None]
    by_tokens = tokens ** -betas[None, :, None] + 0 * alphas[:, None, None]
    columns = np.stack([np.ones_like(by_size), by_size, by_tokens], axis=-1) / losses[:, None]
    squares = columns.swapaxes(-1, -2) @ columns  # [alphas, betas, 3, 3]
    sums = columns.sum(axis=-2)[..., None]
    found = np.linalg.solve(squares + 1e-12 * np.eye(3), sums)[..., 0]
    errors = np.square((columns @ found[..., None])[..., 0] - 1).sum(axis=-1)
    errors = np.where((found >= 0).all(axis=-1), errors, np.inf)
    if not np.isfinite(errors).any():
        raise RegardError(
            "No scaling law fits: the loss does not fall with size and data. Train for longer."
        )
    row, column = np.unravel_index(int(errors.argmin()), errors.shape)
    return found[row, column], float(alphas[row]), float(betas[column])


def slope(places: Sequence[float], losses: Sequence[float]) -> float:
    """Return the exponent of a power law without a floor: the slope between the logarithms."""
    return float(np.polyfit(np.log(places), np.log(losses), 1)[0])


def frontier(runs: Sequence[ScaledRun]) -> list[ScaledRun]:
    """Return the runs that no run with less compute has beaten, in the order of their compute."""
    best: list[ScaledRun] = []
    for run in sorted(runs, key=lambda one: (one.compute, one.loss)):
        if not best or run.loss < best[-1].loss:
            best.append(run)
    return best


def exponents(runs: Sequence[ScaledRun]) -> dict[str, float]:
    """Return all exponents: of the law, and of plain power laws along each axis."""
    law = fit_law(runs)
    most_tokens, largest = max(r.tokens for r in runs), max(r.parameters for r in runs)
    by_size = [run for run in runs if run.tokens == most_tokens]
    by_data = [run for run in runs if run.parameters == largest]
    best = frontier(runs)
    return {
        "alpha": law.alpha,
        "beta": law.beta,
        "floor": law.floor,
        "best_size_exponent": law.size_exponent,
        "parameters_slope": slope(
            [float(r.parameters) for r in by_size], [r.loss for r in by_size]
        ),
        "data_slope": slope([float(r.tokens) for r in by_data], [r.loss for r in by_data]),
        "compute_slope": slope([r.compute for r in best], [r.loss for r in best]),
    }


def exponent_intervals(
    runs: Sequence[ScaledRun], *, samples: int = SAMPLES, seed: int = 1
) -> dict[str, tuple[float, float]]:
    """Return 95 % intervals of all exponents, by drawing a run of each cell and seed anew."""
    generator = np.random.default_rng(seed)
    cells: dict[tuple[int, int], list[ScaledRun]] = {}
    for run in runs:
        cells.setdefault((run.parameters, run.tokens), []).append(run)
    drawn: dict[str, list[float]] = {}
    for _ in range(samples):
        chosen = [
            cell[number]
            for cell in cells.values()
            for number in generator.integers(len(cell), size=len(cell))
        ]
        try:
            found = exponents(chosen)
        except RegardError:
            continue
        for name, value in found.items():
            drawn.setdefault(name, []).append(value)
    return {
        name: (float(np.percentile(values, 2.5)), float(np.percentile(values, 97.5)))
        for name, values in drawn.items()
    }
