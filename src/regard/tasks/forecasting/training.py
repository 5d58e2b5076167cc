"""Training a forecaster: windows, model, loop and final test."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from regard.base.files import write_json
from regard.batching.batch import split_rows
from regard.batching.order import BatchPosition
from regard.compute.device import beside, placed
from regard.corpora.series import seasonal_forecast
from regard.models.forecaster import Forecaster
from regard.runs.display import Display, SilentDisplay
from regard.runs.report import EXAMPLE_COUNT, keep_inputs
from regard.runs.run import Run, limits_of, open_records, open_store, training_run
from regard.scoring.measures import ForecastScore, score_forecast
from regard.settings.recipe import Recipe, expect
from regard.tasks.forecasting import model as loaded_model
from regard.tasks.forecasting.data import (
    GivenSeries,
    WindowBatch,
    Windows,
    given_windows,
    iterate_windows,
    read_windows,
)
from regard.tasks.forecasting.report import draw_trained, write_report
from regard.tasks.forecasting.seeds import SeedStudy, SeedTest, top_share
from regard.tasks.forecasting.settings import ForecastRecipe
from regard.training.loop import fit
from regard.training.losses import LossSum
from regard.training.objective import Objective, Optimisation, Validation
from regard.training.optimisers import learning_rate
from regard.training.progress import Observer, Observers
from regard.training.update import Sharing


def train_forecaster(
    recipe: ForecastRecipe,
    run: Run,
    *,
    windows: Windows | None = None,
    observers: Sequence[Observer] = (),
) -> loaded_model.TrainedForecaster:
    """Train until the recipe's limits, from the newest checkpoint of the run if there is one."""
    windows = windows or read_windows(recipe.data)
    settings = recipe.training
    train = torch.from_numpy(windows.train)
    # Without validation windows, the training windows select the best model.
    valid = torch.from_numpy(windows.valid) if len(windows.valid) else train
    torch.manual_seed(settings.seed)
    model = placed(loaded_model.build(recipe))
    store = open_store(run, keep=settings.keep, fingerprint=windows.fingerprint())
    _save_scale(run, windows)
    objective = Objective(
        loss_sum=partial(squared_error, model),
        batches_from=lambda epoch, batch: iterate_windows(
            windows.all,
            rows=train,
            batch_size=settings.batch_size,
            seed=settings.seed,
            start=BatchPosition(epoch=epoch, batch=batch),
        ),
        validate=partial(_validate, model, windows.all, valid),
        read=partial(windows.facts, batch_size=settings.batch_size),
    )
    optimisation = Optimisation[WindowBatch](
        optimizer=torch.optim.Adam(model.parameters(), fused=True),
        learning_rate=partial(
            learning_rate,
            schedule=settings.schedule,
            peak=settings.learning_rate,
            warmup=settings.warmup,
        ),
        clip=settings.clip,
        sharing=Sharing(1, split_rows),
    )
    fit(
        model,
        objective,
        optimisation,
        limits=limits_of(settings),
        store=store,
        observer=Observers([*open_records(run, store), *observers]),
    )
    best = loaded_model.load(run.folder)
    score = measure_forecaster(best, windows)
    write_json(run.folder / "test.json", score.to_dict())
    _keep_windows(run, windows)
    return loaded_model.TrainedForecaster(run, best, windows, score)


def _with_seeds(
    recipe: ForecastRecipe,
    trained: loaded_model.TrainedForecaster,
    *,
    data: GivenSeries | None,
    display: Display,
) -> loaded_model.TrainedForecaster:
    """Return the training with the errors of the other seeds, which are trained here."""
    with display.waiting(f"Training with {recipe.training.seeds} seeds ..."):
        own, *without = [
            tuple(_seed_tests(recipe, attention, trained, data))
            for attention in dict.fromkeys((recipe.model.attention, "none"))
        ]
    study = SeedStudy(own, without[0] if without else (), windows=len(trained.windows.test))
    write_json(trained.run.folder / "test.json", trained.score.to_dict() | study.to_dict())
    return replace(trained, study=study)


def _seed_tests(
    recipe: ForecastRecipe,
    attention: str,
    trained: loaded_model.TrainedForecaster,
    data: GivenSeries | None,
) -> Iterator[SeedTest]:
    """Yield the test of each seed with this attention; the first one was trained already."""
    settings = recipe.training
    for offset in range(settings.seeds):
        found = trained
        if offset or attention != recipe.model.attention:
            changed = recipe.model_copy(
                update={
                    "model": recipe.model.model_copy(update={"attention": attention}),
                    "training": settings.model_copy(update={"seed": settings.seed + offset}),
                    "data": recipe.data.model_copy(update={"seed": recipe.data.seed + offset}),
                }
            )
            changed, windows = given_windows(changed, data)
            with tempfile.TemporaryDirectory() as folder:
                run = Run.create(Path(folder) / "run", changed)
                found = train_forecaster(changed, run, windows=windows)
        rows = np.sort(found.windows.test)
        errors = (found.model.values(found.windows, rows) - found.windows.expected[rows]) ** 2
        yield SeedTest(settings.seed + offset, found.score.mse, top_share(errors.sum(axis=1)))


def squared_error(model: Forecaster, batch: WindowBatch) -> LossSum:
    """Return the summed squared error of a batch."""
    batch = beside(model, batch)
    error = (model(batch.inputs).values - batch.expected).square().sum()
    return LossSum(error, error.detach())


def measure_forecaster(loaded: loaded_model.LoadedForecaster, windows: Windows) -> ForecastScore:
    """Return the error on the test windows, and those of repeating a value or a season."""
    values = windows.series.scaled
    places = windows.test + windows.window
    seasonal = None
    if windows.season is not None:
        seasonal = seasonal_forecast(
            values, places, season=windows.season, horizon=windows.expected.shape[1]
        )
    return score_forecast(
        loaded.values(windows, windows.test),
        windows.expected[windows.test],
        last=values[places - 1],
        unit=windows.series.high - windows.series.low,
        season=windows.season,
        seasonal=seasonal,
    )


def _validate(model: Forecaster, windows: WindowBatch, rows: torch.Tensor) -> Validation:
    errors = [float(squared_error(model, batch).nats) for batch in windows.parts(rows)]
    loss = sum(errors) / (len(rows) * windows.expected.shape[1])
    return Validation(metrics={"loss": loss}, value=loss)


def _keep_windows(run: Run, windows: Windows) -> None:
    """Keep the last windows of the test, in the units of the series, for the page to begin with."""
    if not windows.series.inputs:
        rows = np.sort(windows.test)[::-1][:EXAMPLE_COUNT]
        kept = (windows.series.in_units(windows.inputs[row]) for row in rows)
        keep_inputs(run.folder, (", ".join(f"{value:.7g}" for value in one) for one in kept))


def _save_scale(run: Run, windows: Windows) -> None:
    series = windows.series
    inputs = [{"name": c.name, "low": c.low, "high": c.high} for c in series.inputs]
    scale = {"low": series.low, "high": series.high, **({"inputs": inputs} if inputs else {})}
    write_json(run.folder / loaded_model.SCALE, scale, indent=None)


def train(
    recipe: Recipe,
    out: Path,
    *,
    title: str = "",
    resume: bool = False,
    data: GivenSeries | None = None,
    display: Display | None = None,
) -> loaded_model.TrainedForecaster:
    """Train a forecaster, test it, draw what it does and write its report."""
    settings = expect(recipe, ForecastRecipe)
    display = SilentDisplay() if display is None else display
    if not resume:
        Run.require_free(out)
    settings, windows = given_windows(settings, data)
    for note in windows.notes:
        display.note(note)
    with training_run(out, settings, resume=resume) as run:
        limits = limits_of(settings.training)
        with display.training(limits, title=title, unit="values") as observer:
            trained = train_forecaster(settings, run, windows=windows, observers=[observer])
        if settings.training.seeds > 1:
            trained = _with_seeds(settings, trained, data=data, display=display)
        for path in trained.pictures:
            draw_trained(trained, path)
        write_report(trained, trained.report, title=settings.title or title)
    return trained
