"""The commands of the recurrent line: forecast, summary, trace, ladder and gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.cli.app import main


@pytest.fixture
def series(tmp_path: Path) -> Path:
    path = tmp_path / "series.csv"
    rows = "".join(f"{day},{np.sin(day / 3):.5f},here\n" for day in range(80))
    path.write_text("day,height,place\n" + rows)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    assert stop.value.code == 0
    return capsys.readouterr().out


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(run(capsys, *arguments, "--json"))


FAST = ("--set", "training.steps=10", "--set", "training.warmup=0", "--set", "training.seeds=1")


def test_forecast_prints_its_error_beside_the_naive_one(
    capsys: pytest.CaptureFixture[str], series: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    text = run(
        capsys, "forecast", str(series), "--column", "height", "--window", "6",
        "--horizon", "2", "--out", str(out), *FAST,
    )  # fmt: skip
    assert "naive (last value)" in text
    assert "next: " in text
    assert (out / "forecast.png").is_file() and (out / "forecast.svg").is_file()
    page = (out / "report.html").read_text(encoding="utf-8")
    for part in ("naive", "The series and its forecast", "what was attended to", "Recipe"):
        assert part in page
    rows = run_json(capsys, "summary", str(out))["layers"]
    assert [row["name"] for row in rows] == ["rnn", "attention", "dense"]
    trace = run_json(capsys, "trace", str(out), "last")
    assert trace["values"]["alpha"]["shape"] == [6]


def test_forecast_gives_json(
    capsys: pytest.CaptureFixture[str], series: Path, tmp_path: Path
) -> None:
    found = run_json(
        capsys, "forecast", str(series), "--column", "height", "--window", "6",
        "--attention", "none", "--out", str(tmp_path / "run"), *FAST,
    )  # fmt: skip
    assert {"mse", "naive_mse", "rmse", "pictures", "next"} <= set(found)
    assert len(found["next"]) == len(found["next_low"]) == 1
    assert found["next_at"] == ["+1"]


def test_forecast_reads_decimal_commas_and_fills_gaps(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "kurs.csv"
    values = [f"{51.29 + day % 5:.2f}".replace(".", ",") for day in range(40)]
    rows = [f"{day:02}.{month:02}.2024" for month in (1, 2) for day in range(1, 21)]
    values[9], values[10] = "", "5.128,82"
    lines = (f"{day};{value}\n" for day, value in zip(rows, values, strict=True))
    file.write_text("Tag;Kurs\n" + "".join(lines))
    with pytest.raises(SystemExit) as stop:
        main(["forecast", str(file), "--window", "5", "--out", str(tmp_path / "a")])
    assert stop.value.code == 2
    assert "line 11: column 'Kurs' holds ''" in capsys.readouterr().err
    out = run(
        capsys, "forecast", str(file), "--window", "5", "--gaps", "interpolate", "--season", "5",
        "--out", str(tmp_path / "b"), *FAST,
    )  # fmt: skip
    assert "seasonal (5 steps)" in out
    assert "next: 2024-02-21 " in out and "90 % of past errors: " in out


def test_training_a_shipped_forecaster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = run_json(capsys, "train", "fibonacci-lecture", "--out", str(tmp_path / "f"), *FAST)
    assert found["windows"] == 354
    assert found["naive_mse"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--column", "place"], "line 2: column 'place' holds 'here', which is not a number"),
        (["--column", "hight"], "there is no column 'hight'. The columns are: day, height, place"),
        (["--column", "height", "--window", "90"], "the series has 80 values, but a window of 90"),
        (["--column", "height", "--attention", "soft"], "Unknown model.attention 'soft'"),
    ],
)
def test_bad_input_is_named(
    capsys: pytest.CaptureFixture[str],
    series: Path,
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["forecast", str(series), "--out", str(tmp_path / "run"), *arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recipe", "parameters"),
    [
        ("fibonacci-rnn", [8, 3]),
        ("fibonacci-attention", [8, 22, 3]),
        ("fibonacci-lecture", [8, 22, 3]),
    ],
)
def test_the_summary_is_the_table_that_users_of_keras_know(
    capsys: pytest.CaptureFixture[str], recipe: str, parameters: list[int]
) -> None:
    found = run_json(capsys, "summary", recipe)
    assert [row["parameters"] for row in found["layers"]] == parameters
    assert found["parameters"]["total"] == sum(parameters)
    text = run(capsys, "summary", recipe)
    for wanted in ("layer (kind)", "output shape", "parameters", "connected to", "(batch, 1)"):
        assert wanted in text


def test_trace_prints_tables_and_writes_npz(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = run(capsys, "trace", "fibonacci-attention", "last")
    for wanted in ("by time", "alpha", "state[1]", "context", "e_t = tanh(w . h_t + b_t)"):
        assert wanted in text, wanted
    path = tmp_path / "trace.npz"
    assert f"Wrote {path}" in run(
        capsys, "trace", "seq2seq-attention", "to be", "--out", str(path),
        "--set", "model.hidden=4", "--set", "model.embedding=4",
    )  # fmt: skip
    with np.load(path) as saved:
        assert saved["weight"].shape == saved["score"].shape


def test_ladder_and_gradients_print_a_table_and_draw(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "ladder.svg"
    text = run(capsys, "ladder", "--steps", "1", "--out", str(picture))
    assert "positions (learned)" in text and "parameters" in text
    assert picture.is_file()
    found = run_json(capsys, "ladder", "--steps", "1", "--out", str(picture))
    assert [rung["number"] for rung in found["rungs"]] == [0, 1, 2, 3, 4, 5, 5]
    picture = tmp_path / "gradients.svg"
    text = run(capsys, "gradients", "--steps", "1", "--length", "8", "--out", str(picture))
    assert "tanh RNN" in text and "after training" in text
    assert picture.is_file()
    found = run_json(capsys, "gradients", "--steps", "1", "--length", "8", "--out", str(picture))
    assert all(len(network["norms"]) == 8 for network in found["networks"])
