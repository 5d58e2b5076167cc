"""Fibonacci with and without attention: test error over seeds of weights and of the split.

Only some 15 of the 1,200 scaled values exceed 1e-3, so a test part holds a handful of windows that
have anything to forecast; the figures say how much of the squared error lies in them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from regard.runs.run import Run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.forecasting.model import TrainedForecaster
from regard.tasks.forecasting.settings import ForecastRecipe
from regard.tasks.forecasting.training import train_forecaster
from result import write_result

MODELS = {
    "plain": "fibonacci-rnn",
    "attention": "fibonacci-attention",
    "lecture": "fibonacci-lecture",
}
LARGE = 1e-3
# The learning rate was settled with seeds 1 and 2 in view; the measured ones are others.
FIRST_SEED = 101


def train(name: str, seed: int) -> TrainedForecaster:
    """Train one model with one seed, for its weights and for the split."""
    overrides = [f"training.seed={seed}", f"data.seed={seed}", "training.checkpoint_every=1000000"]
    recipe = expect(find_recipe(name, overrides=overrides), ForecastRecipe)
    with tempfile.TemporaryDirectory() as folder:
        return train_forecaster(recipe, Run.create(Path(folder) / "run", recipe))


def squared_errors(trained: TrainedForecaster) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared error of every test window, and whether its answer is a large value."""
    rows = np.sort(trained.windows.test)
    expected = trained.windows.expected[rows, 0]
    return (trained.tested().values.numpy()[:, 0] - expected) ** 2, expected > LARGE


def main() -> None:
    """Train all models with all seeds and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    torch.set_num_threads(1)

    figures: dict[str, float] = {"seeds": seeds}
    naive: dict[int, float] = {}
    large: dict[int, int] = {}
    for kind, name in MODELS.items():
        errors, shares = [], []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            trained = train(name, seed)
            each, is_large = squared_errors(trained)
            errors.append(trained.score.mse)
            shares.append(float(each[is_large].sum() / each.sum()))
            naive[seed], large[seed] = trained.score.naive_mse, int(is_large.sum())
            print(
                f"{kind:<10} seed {seed:>2}  MSE {trained.score.mse:.3e}  naive "
                f"{trained.score.naive_mse:.3e}  {is_large.sum()} large windows hold "
                f"{shares[-1]:.1%} of the squared error",
                flush=True,
            )
        low, median, high = np.quantile(errors, [0.25, 0.5, 0.75])
        figures |= {
            f"median_mse_{kind}": float(median),
            f"quartile1_mse_{kind}": float(low),
            f"quartile3_mse_{kind}": float(high),
            f"least_mse_{kind}": min(errors),
            f"largest_mse_{kind}": max(errors),
            f"share_of_error_in_large_windows_{kind}": float(np.median(shares)),
        }
    figures |= {
        "median_mse_naive": float(np.median(list(naive.values()))),
        "large_test_windows_median": float(np.median(list(large.values()))),
        "large_test_windows_least": min(large.values()),
        "large_test_windows_most": max(large.values()),
        "test_windows": 354,
    }
    path = write_result(
        "fibonacci",
        figures,
        command=f"python bench/fibonacci.py --seeds {seeds}",
        details={
            "large": "a test window is large if the value after it exceeds 1e-3 of the largest",
            "seed": "draws both the weights and the 70/30 split",
        },
    )
    print(f"Wrote {path}")


if __name__ == "__main__":
    main()
