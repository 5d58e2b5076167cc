"""A trained forecaster as picture and report."""

from collections.abc import Iterator
from pathlib import Path

from regard.corpora.series import FIBONACCI
from regard.models.inspection import parameter_count
from regard.pictures.report import Heading, Paragraph, Picture, Section, Table, write_page
from regard.pictures.series import ForecastPicture, FutureBand, draw_forecast, forecast_svg
from regard.runs.report import learning_section, making_section, minutes
from regard.scoring.measures import ForecastScore
from regard.tasks.forecasting.model import TrainedForecaster
from regard.tasks.forecasting.seeds import SeedStudy
from regard.training.progress import read_metrics

LONGEST_SHOWN = 20_000  # values that a picture shows from the beginning of the series


def draw_trained(trained: TrainedForecaster, path: Path) -> None:
    """Draw the series, the forecasts of the test windows and the attention behind them."""
    draw_forecast(_picture(trained), path)


def trained_svg(trained: TrainedForecaster) -> str:
    """Return the same picture as SVG text, to stand in a page."""
    return forecast_svg(_picture(trained))


def _picture(trained: TrainedForecaster) -> ForecastPicture:
    """Return what the picture is drawn from."""
    windows, recipe = trained.windows, trained.model.recipe
    found = trained.tested()
    series = windows.series
    # The Fibonacci numbers are too large to read off an axis: they are shown scaled.
    scaled = series.name == FIBONACCI
    unit = (1.0, 0.0) if scaled else (series.high - series.low, series.low)
    score = trained.score
    seasonal = "" if score.seasonal_mse is None else f", seasonal {score.seasonal_mse:.3g}"
    future = None
    if recipe.data.split == "time" and not scaled:
        ahead = trained.future()
        future = FutureBand(ahead.values, ahead.low, ahead.high, ahead.times)
    places = trained.shown + recipe.data.window
    # Of a long series, what the shown windows lie in.
    first = 0 if len(series) <= LONGEST_SHOWN else max(0, int(places[0]) - recipe.data.window)
    return ForecastPicture(
        series=unit[1] + unit[0] * series.scaled[first:],
        places=places - first,
        forecast=unit[1] + unit[0] * found.values.numpy(),
        weights=None if found.weights is None else found.weights.numpy(),
        name=f"{series.name}, scaled to [0, 1]" if scaled else series.name,
        joined=recipe.data.split == "time",
        title=f"test MSE {score.mse:.3g}, naive {score.naive_mse:.3g}{seasonal} (scaled units)",
        times=None if series.times is None else series.times[first:],
        future=future,
    )


def write_report(trained: TrainedForecaster, path: Path, *, title: str) -> None:
    """Write one HTML file about a trained forecaster."""
    write_page(path, title=title, sections=list(_sections(trained)))


def _seasonal_row(score: ForecastScore) -> list[list[str]]:
    if score.seasonal_mse is None:
        return []
    name = f"seasonal: the values {score.season} steps before"
    return [[name, f"{score.seasonal_mse:.4g}", f"{score.seasonal_rmse:.4g}"]]


def _next_section(trained: TrainedForecaster) -> Iterator[Section]:
    """Yield the forecast of the future, where the series has one."""
    if trained.model.recipe.data.split != "time":
        return
    future = trained.future()
    yield Table(
        "What comes next: 90 % of the errors on the test part would stay within the interval",
        ["at", "forecast", "from", "to"],
        [
            [label, f"{value:.6g}", f"{low:.6g}", f"{high:.6g}"]
            for label, value, low, high in zip(
                future.labels(), future.values, future.low, future.high, strict=True
            )
        ],
    )


def _seeds_section(study: SeedStudy) -> Iterator[Section]:
    """Yield the errors of all seeds, with and without attention."""
    yield Heading(f"{len(study.tests)} seeds, for weights and split")
    yield Table(
        study.meaning,
        ["test MSE", "median", "lower quartile", "upper quartile"],
        [
            [label, *(f"{value:.3g}" for value in (median, low, high))]
            for label, (low, median, high) in study.rows()
        ],
    )


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
            *_seasonal_row(score),
        ],
    )
    size = parameter_count(trained.model.model)
    yield Paragraph(f"{size:,} parameters; {minutes(history):.2f} minutes of training.")
    if trained.study is not None:
        yield from _seeds_section(trained.study)
    attends = trained.model.attends
    yield Heading("The series and its forecast")
    yield Picture(
        "What happened, what was forecast" + (", and what was attended to" if attends else ""),
        trained_svg(trained),
    )
    yield from _next_section(trained)
    yield from learning_section({name: history})
    yield from making_section(name, trained.model.model, trained.model.recipe)
