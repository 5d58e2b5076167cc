"""The commands of the task `forecast`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from regard.cli.display import TrainingDisplay
from regard.models.forecaster import build_forecaster
from regard.models.inspection import LayerRow, layer_table
from regard.recipes.forecast import (
    TrainedForecaster,
    load_forecaster,
    train_forecaster,
)
from regard.recipes.forecast_picture import draw_trained
from regard.recipes.forecast_report import report_forecaster
from regard.recipes.resume import limits_of, open_run
from regard.recipes.series import read_windows
from regard.settings.forecast import ForecastRecipe
from regard.settings.schema import Recipe, expect


def train(recipe: Recipe, out: Path, *, name: str, resume: bool) -> dict[str, Any]:
    """Train a forecaster, test it and draw what it does."""
    trained, pictures = train_and_draw(
        expect(recipe, ForecastRecipe), out, name=name, resume=resume
    )
    console = Console(stderr=True)
    for line in [*result_lines(trained), f"Run: {out}   report: {out / 'report.html'}"]:
        console.print(line, highlight=False, soft_wrap=True)
    return {
        "run": str(out),
        "report": str(out / "report.html"),
        "pictures": [str(path) for path in pictures],
        **trained.score.to_dict(),
    }


def train_and_draw(
    recipe: ForecastRecipe, out: Path, *, name: str, resume: bool
) -> tuple[TrainedForecaster, list[Path]]:
    """Train into a folder, showing progress; draw the result there, and write the report."""
    windows = read_windows(recipe.data)
    run = open_run(out, recipe, resume=resume)
    limits = limits_of(recipe.training)
    with TrainingDisplay(Console(stderr=True), limits, title=name, unit="values") as display:
        trained = train_forecaster(recipe, run, windows=windows, observers=[display])
    pictures = [out / "forecast.png", out / "forecast.svg"]
    for path in pictures:
        draw_trained(trained, path)
    report_forecaster(trained, out / "report.html", title=recipe.title or name)
    return trained, pictures


def result_lines(trained: TrainedForecaster) -> list[str]:
    """Return the test of a forecaster as a few lines of text."""
    score, series = trained.score, trained.windows.series
    better = score.naive_mse / score.mse if score.mse else float("inf")
    return [
        f"{series.name}: tested on {score.windows} windows of {trained.model.recipe.data.window}",
        f"{'':<22}{'MSE (scaled to 0..1)':>22}{'typical error':>16}",
        f"{'model':<22}{score.mse:>22.4g}{score.rmse:>16.4g}",
        f"{'naive (last value)':<22}{score.naive_mse:>22.4g}{score.naive_rmse:>16.4g}",
        f"The model's squared error is {1 / better:.3g} times the naive one.",
    ]


def summarise_recipe(recipe: Recipe) -> list[LayerRow]:
    """Return the layers of the forecaster that a recipe builds."""
    settings = expect(recipe, ForecastRecipe)
    model = build_forecaster(
        settings.model, window=settings.data.window, horizon=settings.data.horizon
    )
    return layer_table(model)


def summarise_run(folder: Path) -> list[LayerRow]:
    """Return the layers of a trained forecaster."""
    return layer_table(load_forecaster(folder).model)
