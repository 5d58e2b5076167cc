"""Training a forecaster: windows, model, loop and final test."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from regard.base.files import write_json
from regard.batching.order import BatchPosition
from regard.compute.device import beside, placed
from regard.corpora.series import seasonal_forecast
from regard.models.forecaster import Forecaster
from regard.runs.display import Display, SilentDisplay
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
from regard.tasks.forecasting.settings import ForecastRecipe
from regard.training.loop import Objective, Optimisation, Validation, fit
from regard.training.losses import LossSum
from regard.training.optimisers import learning_rate
from regard.training.progress import Observer, Observers


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
    return loaded_model.TrainedForecaster(run, best, windows, score)


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
        for path in trained.pictures:
            draw_trained(trained, path)
        write_report(trained, trained.report, title=settings.title or title)
    return trained
