"""The report of a forecaster: its errors beside the naive ones, and the series with forecasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from regard.models.inspection import parameter_count
from regard.pictures.report import Heading, Paragraph, Picture, Section, Table, write_report
from regard.recipes.forecast import TrainedForecaster
from regard.recipes.forecast_picture import trained_svg
from regard.recipes.report_parts import learning, making, minutes
from regard.training.progress import read_metrics


def report_forecaster(trained: TrainedForecaster, path: Path, *, title: str) -> None:
    """Write one HTML file about a trained forecaster."""
    write_report(path, title=title, sections=list(_sections(trained)))


def _sections(trained: TrainedForecaster) -> Iterator[Section]:
    name, score = trained.run.folder.name, trained.score
    history = read_metrics(trained.run.metrics)
    yield Heading("Error on the test windows")
    yield Table(
        f"{score.windows} windows of {trained.windows.series.name}; naive: the last value repeated",
        ["forecast", "MSE, scaled to [0, 1]", "typical error"],
        [
            ["model", f"{score.mse:.4g}", f"{score.rmse:.4g}"],
            ["naive", f"{score.naive_mse:.4g}", f"{score.naive_rmse:.4g}"],
        ],
    )
    size = parameter_count(trained.model.model)
    yield Paragraph(f"{size:,} parameters; {minutes(history):.2f} minutes of training.")
    attends = trained.model.attends
    yield Heading("The series and its forecast")
    yield Picture(
        "What happened, what was forecast" + (", and what was attended to" if attends else ""),
        trained_svg(trained),
    )
    yield from learning({name: history})
    yield from making(name, trained.model.model, trained.model.recipe)
