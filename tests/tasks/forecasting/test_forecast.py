from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.base.errors import DataError, RegardError, RunError, SettingsError
from regard.runs.run import Run, open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.forecasting.data import WindowBatch, read_windows, recipe_for
from regard.tasks.forecasting.model import TrainedForecaster, load
from regard.tasks.forecasting.report import _picture, draw_trained
from regard.tasks.forecasting.seeds import top_share
from regard.tasks.forecasting.settings import ForecastRecipe, SeriesSettings
from regard.tasks.forecasting.training import train_forecaster


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV file with a sine wave between 10 and 20."""
    path = tmp_path_factory.mktemp("series") / "waves.csv"
    values = 15 + 5 * np.sin(np.arange(160) / 2)
    path.write_text("day,height\n" + "".join(f"{i},{v:.6f}\n" for i, v in enumerate(values)))
    return path


def recipe(waves: Path, *overrides: str) -> ForecastRecipe:
    return recipe_for(
        waves,
        column="height",
        window=8,
        horizon=2,
        attention="softmax",
        overrides=["training.steps=300", "training.validate_every=100", "model.hidden=8",
                   "training.learning_rate=0.02", *overrides],
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(waves: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedForecaster:
    settings = recipe(waves)
    folder = tmp_path_factory.mktemp("runs") / "waves"
    return train_forecaster(settings, Run.create(folder, settings))


def test_a_wave_is_forecast_better_than_by_its_last_value(trained: TrainedForecaster) -> None:
    assert trained.score.mse < 0.5 * trained.score.naive_mse
    saved = json.loads((trained.run.folder / "test.json").read_text())
    assert saved == trained.score.to_dict()
    assert saved["rmse"] == pytest.approx(np.sqrt(saved["mse"]) * trained.score.unit)


def test_a_run_gives_the_same_forecast_when_loaded(trained: TrainedForecaster) -> None:
    loaded = load(trained.run.folder)
    assert loaded.attends
    window = [15.0 + t for t in range(8)]
    assert loaded.forecast(window) == pytest.approx(trained.model.forecast(window))
    assert 5 < loaded.forecast(window)[0] < 25
    with pytest.raises(
        RegardError, match="3 values were given, but this model reads a window of 8"
    ):
        loaded.forecast([1.0, 2.0, 3.0])


def test_what_comes_next_is_in_the_units_of_the_series(trained: TrainedForecaster) -> None:
    values = trained.upcoming()
    assert len(values) == 2
    assert all(5 < value < 25 for value in values)


def test_the_test_is_the_end_of_the_series_and_the_scale_comes_from_before(waves: Path) -> None:
    windows = read_windows(recipe(waves).data)
    parts = [windows.train, windows.valid, windows.test]
    assert np.concatenate(parts).tolist() == list(range(len(windows.inputs)))
    assert len(windows.test) == pytest.approx(0.3 * len(windows.inputs), abs=1)


def test_fibonacci_windows_are_shuffled_by_their_seed() -> None:
    settings = expect(find_recipe("fibonacci-rnn"), ForecastRecipe).data
    windows = read_windows(settings)
    assert windows.inputs.shape == (1180, 20)
    assert (len(windows.train), len(windows.valid), len(windows.test)) == (826, 0, 354)
    assert sorted([*windows.train, *windows.test]) == list(range(1180))
    again = read_windows(settings)
    other = read_windows(settings.model_copy(update={"seed": 2}))
    assert again.fingerprint() == windows.fingerprint() != other.fingerprint()


def test_a_stopped_training_continues_exactly(waves: Path, tmp_path: Path) -> None:
    whole = recipe(waves, "training.steps=40", "training.schedule=constant")
    half = recipe(waves, "training.steps=20", "training.schedule=constant")
    straight = train_forecaster(whole, Run.create(tmp_path / "straight", whole))
    train_forecaster(half, open_run(tmp_path / "halves", half, resume=False))
    resumed = train_forecaster(whole, open_run(tmp_path / "halves", whole, resume=True))
    for one, other in zip(
        straight.model.model.parameters(), resumed.model.model.parameters(), strict=True
    ):
        assert torch.equal(one, other)


def test_another_series_or_model_is_not_continued(
    trained: TrainedForecaster, waves: Path, tmp_path: Path
) -> None:
    other = recipe(waves, "model.hidden=9")
    with pytest.raises(SettingsError, match="settings under 'model' differ"):
        open_run(trained.run.folder, other, resume=True)
    changed = tmp_path / "changed.csv"
    changed.write_text("day,height\n" + "".join(f"{i},{i % 7}\n" for i in range(160)))
    windows = read_windows(recipe(changed).data)
    with pytest.raises(RunError, match="The data has changed since the run"):
        train_forecaster(recipe(waves), trained.run, windows=windows)


def test_a_run_without_its_scale_says_so(waves: Path, tmp_path: Path) -> None:
    settings = recipe(waves)
    Run.create(tmp_path / "run", settings)
    with pytest.raises(RunError, match=r"scale\.json is missing or damaged"):
        load(tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("height\n" + "1\n" * 100, "is constant: every value in the training part"),
        ("height\n" + "1\n2\n" * 5, "the series has 10 values, but a window of 8"),
    ],
)
def test_series_that_cannot_be_forecast(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_windows(recipe(file).data)


def test_too_few_fibonacci_terms_are_refused() -> None:
    with pytest.raises(DataError, match="the series has 12 values"):
        read_windows(SeriesSettings.model_validate({"terms": 12}))


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_trained_forecaster_can_be_drawn(
    trained: TrainedForecaster, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"forecast.{suffix}"
    draw_trained(trained, path)
    assert path.stat().st_size > 5_000
    if suffix == "svg":
        text = path.read_text()
        assert "height" in text and "attention" in text and "first of 2 steps" in text


@pytest.fixture(scope="module")
def european(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file as a German program writes it: newest first, a gap, a second column, a week."""
    random = np.random.default_rng(1)
    rows = []
    for day in range(140):
        date = np.datetime64("2024-01-01") + day
        sales = 5_000 + 1_500 * (day % 7 in (5, 6)) + random.normal(scale=50)
        written = f"{sales:,.2f}".translate(str.maketrans(",.", ".,")) if day != 50 else ""
        rows.append(f"{date.astype(object):%d.%m.%Y};{written};{int(day % 7 in (4, 5))},0\n")
    path = tmp_path_factory.mktemp("series") / "verkauf.csv"
    path.write_text("Datum;Umsatz;Morgen frei\n" + "".join(rows[::-1]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def weekly(european: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedForecaster:
    return regard.forecast(
        european,
        column="Umsatz",
        inputs=["Morgen frei"],
        gaps="interpolate",
        window=7,
        horizon=3,
        out=tmp_path_factory.mktemp("runs") / "weekly",
        set={"training.steps": 60, "training.warmup": 0},
        progress=False,
    )


def test_a_european_file_is_read_with_dates_gaps_and_inputs(weekly: TrainedForecaster) -> None:
    windows = weekly.windows
    assert windows.notes == (
        "The dates run backwards: the series was turned round.",
        "1 gap interpolated.",
    )
    assert windows.inputs.shape[1:] == (7, 2)
    assert windows.series.inputs[0].name == "Morgen frei"
    assert 4_000 < windows.series.low < 6_000 < windows.series.high < 7_000
    loaded = load(weekly.run.folder)
    rows = [[5_000.0, 0.0]] * 7
    assert loaded.forecast(rows) == pytest.approx(weekly.model.forecast(rows))
    with pytest.raises(RegardError, match=r"reads 2 values \(the series, Morgen frei\)"):
        loaded.forecast([5_000.0] * 7)


def test_the_seasonal_forecast_is_a_baseline(weekly: TrainedForecaster) -> None:
    score = weekly.score
    assert weekly.windows.season == score.season == 7
    assert score.seasonal_mse is not None and score.seasonal_mse < 0.1 * score.naive_mse
    assert any(line.startswith("seasonal (7 steps)") for line in weekly.lines())
    assert "the values 7 steps before" in weekly.report.read_text(encoding="utf-8")


def test_the_future_has_dates_and_an_interval_of_past_errors(weekly: TrainedForecaster) -> None:
    future = weekly.future()
    assert future.labels() == ["2024-05-20", "2024-05-21", "2024-05-22"]
    assert (future.low < future.high).all()
    windows, unit = weekly.windows, weekly.score.unit
    found = weekly.tested().values.numpy()
    errors = (windows.expected[np.sort(windows.test)] - found) * unit
    inside = (errors >= future.low - future.values) & (errors <= future.high - future.values)
    assert inside.mean() == pytest.approx(0.9, abs=0.03)
    drawn = weekly.pictures[1].read_text(encoding="utf-8")
    assert "90 % of past errors" in drawn and "Mar" in drawn
    assert "What comes next" in weekly.report.read_text(encoding="utf-8")


def test_the_trace_of_several_inputs(weekly: TrainedForecaster, european: Path) -> None:
    found = regard.trace(weekly.run.folder, "last")
    assert found.arrays[0].values.shape == (7, 2)
    again = regard.trace(weekly.run.folder, str(european))
    np.testing.assert_allclose(again.arrays[0].values, found.arrays[0].values)


def test_gaps_of_a_list_are_filled_where_that_is_asked_for(tmp_path: Path) -> None:
    values: list[Any] = [float(day % 5) for day in range(60)]
    values[7] = None
    with pytest.raises(SettingsError, match=r"gaps \(None or NaN\) need"):
        regard.forecast(values, out=tmp_path / "a", progress=False)
    fast = {"training.steps": 2, "training.warmup": 0}
    found = regard.forecast(
        values, gaps="interpolate", season=5, out=tmp_path / "b", set=fast, progress=False
    )
    assert found.windows.notes == ("1 gap interpolated.",)
    assert found.score.seasonal_mse == 0
    with pytest.raises(SettingsError, match=r"data\.inputs names columns of a file"):
        regard.forecast([1.0, 2.0] * 30, inputs=["x"], out=tmp_path / "c", progress=False)


def test_a_long_series_is_measured_and_drawn_by_parts(
    weekly: TrainedForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = weekly.windows.test
    parts = WindowBatch.parts
    monkeypatch.setattr(WindowBatch, "parts", lambda self, chosen: parts(self, chosen, size=3))
    found = weekly.model.values(weekly.windows, rows)
    whole = weekly.model.run(weekly.windows.inputs[rows]).values.numpy()
    assert np.allclose(found, whole)
    inputs = weekly.windows.all.rows(torch.from_numpy(rows)).inputs.numpy()
    assert np.array_equal(inputs, weekly.windows.inputs[rows])
    drawn = _picture(weekly)
    monkeypatch.setattr("regard.tasks.forecasting.report.LONGEST_SHOWN", 5)
    monkeypatch.setattr("regard.tasks.forecasting.model.MOST_SHOWN", 4)
    cut = _picture(weekly)
    window = weekly.model.recipe.data.window
    assert len(cut.places) == len(cut.forecast) == 4
    assert cut.places[0] == window
    assert cut.series[cut.places].tolist() == drawn.series[drawn.places[-4:]].tolist()
    assert cut.times is not None
    assert len(cut.times) == len(cut.series) == len(drawn.series) - drawn.places[-4] + window


def test_seeds_are_compared_with_and_without_attention(tmp_path: Path) -> None:
    small = {"training.steps": 3, "training.seeds": 3, "data.terms": 60, "data.window": 4}
    trained = regard.train("fibonacci-attention", out=tmp_path / "run", set=small, progress=False)
    study = trained.study
    assert [test.seed for test in study.tests] == [test.seed for test in study.without] == [1, 2, 3]
    assert study.tests[0].mse == trained.score.mse
    assert len({test.mse for test in (*study.tests, *study.without)}) == 6
    alone = {**small, "training.seeds": 1, "training.seed": 3, "data.seed": 3}
    third = regard.train("fibonacci-attention", out=tmp_path / "c", set=alone, progress=False)
    assert third.score.mse == study.tests[2].mse and third.study is None
    record = json.loads((tmp_path / "run" / "test.json").read_text())
    assert record["mse"] == trained.score.mse
    low, median, high = record["seeds"]["without_attention"]["quartiles"]
    assert low <= median <= high and median == sorted(test.mse for test in study.without)[1]
    text = "\n".join(trained.lines())
    assert "3 seeds, for weights and split" in text and "without attention" in text
    assert "A single run says little: 1 of its 17 test windows hold" in text
    assert "3 seeds, for weights and split" in trained.report.read_text(encoding="utf-8")


def test_the_worst_windows_hold_their_share_of_the_error() -> None:
    errors = np.ones(200)
    errors[[3, 70]] = 99.0
    assert top_share(errors) == pytest.approx(198 / 396)
    assert top_share(np.zeros(5)) == 0.0
