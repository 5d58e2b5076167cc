from __future__ import annotations

import sys
from pathlib import Path

import pytest

from regard.base.errors import SettingsError
from regard.training.progress import MetricsLog, Progress, TensorBoardLog, read_metrics
from regard.training.update import UpdateResult

RESULT = UpdateResult(loss=2.5, tokens=7, gradient_norm=0.5)
FACTS = {"learning_rate": 0.1, "padding": 0.0}


def write(log: MetricsLog | TensorBoardLog, steps: range) -> None:
    for step in steps:
        log.updated(Progress(step=step, seconds=step / 3), RESULT, FACTS)
    log.validated(Progress(step=steps[-1], seconds=9.0), {"loss": 1.5, "bleu": 20.0})


def test_rows_are_written_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path, every=2)
    write(log, range(1, 6))
    log.finished(Progress(step=5, seconds=9.0), "all 5 updates done")
    train = {"kind": "train", "loss": 2.5, "norm": 0.5, **FACTS}
    assert read_metrics(path) == [
        {**train, "step": 2, "seconds": 0.667},
        {**train, "step": 4, "seconds": 1.333},
        {"kind": "valid", "step": 5, "seconds": 9.0, "loss": 1.5, "bleu": 20.0},
        {"kind": "end", "step": 5, "seconds": 9.0, "reason": "all 5 updates done"},
    ]


def test_a_resumed_log_forgets_what_came_after_the_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(MetricsLog(path, every=1), range(1, 7))
    MetricsLog(path, resume_step=4)
    assert [row["step"] for row in read_metrics(path)] == [1, 2, 3, 4]
    MetricsLog(path)
    assert read_metrics(path) == []


def test_a_row_cut_short_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    write(MetricsLog(path, every=1), range(1, 4))
    path.write_bytes(path.read_bytes()[:-9])
    assert [row["kind"] for row in read_metrics(path)] == ["train"] * 3
    write(MetricsLog(path, every=1, resume_step=3), range(4, 5))
    assert [row["step"] for row in read_metrics(path)] == [1, 2, 3, 4, 4]


def test_no_file_is_no_rows(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "metrics.jsonl") == []


def test_tensorboard_gets_the_same_figures(tmp_path: Path) -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", exc_type=ImportError
    )
    log = TensorBoardLog(tmp_path)
    write(log, range(1, 4))
    log.finished(Progress(step=3), "done")
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == {
        "train/loss",
        "train/learning_rate",
        "train/padding",
        "valid/loss",
        "valid/bleu",
    }
    assert [(e.step, e.value) for e in events.Scalars("valid/bleu")] == [(3, 20.0)]
    assert [e.step for e in events.Scalars("train/loss")] == [1, 2, 3]


def test_tensorboard_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SettingsError, match="pip install tensorboard"):
        TensorBoardLog(tmp_path)
