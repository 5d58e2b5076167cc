"""A run that is being trained: locked, removed if nothing came of it, whole after a full disk."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import Interrupted, RegardError, RunError
from regard.compute.device import using_threads
from regard.runs.display import SilentDisplay
from regard.runs.run import Run, open_store, training_run
from regard.tasks import parse_recipe
from regard.training.checkpoint import CheckpointStore

RECIPE = parse_recipe('task = "forecast"', origin="test")
SMALL = {"training.steps": 8, "training.checkpoint_every": 2, "training.validate_every": 3}
SMALL["training.seeds"] = 1


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_trainings_never_share_a_folder(tmp_path: Path) -> None:
    with training_run(tmp_path / "run", RECIPE, resume=False):
        for resume in (True, False):
            with pytest.raises(RunError), training_run(tmp_path / "run", RECIPE, resume=resume):
                pass
        with (
            pytest.raises(RunError, match="is in use by another process"),
            training_run(tmp_path / "run", RECIPE, resume=True),
        ):
            pass
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["evidence.json", "recipe.toml"]


@pytest.mark.parametrize("error", [RegardError("no"), OSError(28, "No space left on device")])
def test_a_start_that_fails_leaves_nothing(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(RegardError), training_run(tmp_path / "run", RECIPE, resume=False) as run:
        (run.folder / "source.json").write_text("{}")
        raise error
    assert not (tmp_path / "run").exists()


def test_a_start_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(Interrupted) as stopped,
        training_run(tmp_path / "run", RECIPE, resume=False),
    ):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
    assert str(stopped.value) == (
        "stopped before the first update: nothing is kept; give the same command to begin again"
    )
    assert stopped.value.exit_code == 143
    assert not (tmp_path / "run").exists()


def test_what_a_killed_start_leaves_is_in_nobody_s_way(tmp_path: Path) -> None:
    for leftover in (".lock", ".recipe.toml.123-0.writing"):
        (tmp_path / leftover).write_text("1")
    with training_run(tmp_path, RECIPE, resume=False):
        pass
    assert Run.open(tmp_path).task == "forecast"


def test_an_empty_recipe_is_not_a_recipe_of_defaults(tmp_path: Path) -> None:
    Run.create(tmp_path, RECIPE)
    (tmp_path / "recipe.toml").write_text("")
    with pytest.raises(RunError, match=r"recipe.toml is empty. Restore it, or train again."):
        Run.open(tmp_path)


def test_data_that_changes_before_the_first_checkpoint_is_noticed(tmp_path: Path) -> None:
    run = Run.create(tmp_path, RECIPE)
    open_store(run, keep=2, fingerprint="one")
    open_store(run, keep=2, fingerprint="one")
    with pytest.raises(RunError, match=f"The data has changed since the run at {tmp_path} began"):
        open_store(run, keep=2, fingerprint="two")
    assert "versions" in json.loads((tmp_path / "evidence.json").read_text())


def series(count: int = 60) -> list[float]:
    return [float(number % 7) for number in range(count)]


def test_a_run_goes_on_by_its_folder_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    regard.train("fibonacci-rnn", set=SMALL, out=out, progress=False)
    longer = regard.train(resume=out, set={"training.steps": 10}, progress=False)
    assert CheckpointStore(longer.run.folder).step == 10
    with pytest.raises(RegardError, match="goes on with that run alone"):
        regard.train("fibonacci-rnn", resume=out, progress=False)


def test_a_full_disk_costs_nothing_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    regard.train("fibonacci-rnn", set=SMALL, out=out, progress=False)
    before = content(out)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(out / "model.safetensors"))

    monkeypatch.setattr("regard.training.checkpoint.save_file", full)
    with pytest.raises(RunError) as refused:
        regard.train(resume=out, set={"training.steps": 20}, progress=False)
    assert str(refused.value) == (
        f"{out / 'model.safetensors'}: there is no space left on the disk. Free some, or choose "
        f"another folder. What was saved before is whole: go on with `regard train --resume {out}`,"
        " or start again if nothing was saved yet."
    )
    after = content(out)
    kept = [name for name in before if "checkpoints" in name or "best" in name]
    assert kept
    assert all(after[name] == before[name] for name in kept)


def test_a_recipe_that_cannot_be_written_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run.create(tmp_path, RECIPE)
    before = content(tmp_path)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("regard.base.files.os.fsync", full)
    longer = parse_recipe('task = "forecast"', overrides=["training.steps=7"], origin="test")
    with (
        pytest.raises(RunError, match="there is no space left on the disk"),
        training_run(tmp_path, longer, resume=True),
    ):
        pass
    assert content(tmp_path) == before


def test_data_from_python_is_asked_for_again(tmp_path: Path) -> None:
    class Stop:
        """Sends the signal of Ctrl-C in the third update."""

        def updated(self, progress: Any, result: Any, facts: Any) -> None:
            if progress.step == 3:
                os.kill(os.getpid(), signal.SIGTERM)

        def validated(self, progress: Any, metrics: Any) -> None: ...
        def finished(self, progress: Any, reason: str) -> None: ...
        def noted(self, line: str) -> None: ...

    class Stopping(SilentDisplay):
        def training(self, limits: Any, **_: Any) -> Any:
            return nullcontext(Stop())

    out = tmp_path / "run"
    with pytest.raises(Interrupted) as stopped:
        regard.train("fibonacci-rnn", data=series(), set=SMALL, out=out, progress=Stopping())
    assert str(stopped.value) == (
        f'stopped at update 3; go on with: regard.train(resume="{out}", data=...)'
    )
    regard.train(resume=out, data=series(), progress=False)
    assert CheckpointStore(out).step == 8


# What a user's shell does: signals are not ignored, also where the tests were started by a script.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import torch
torch.set_num_threads(1)
from regard.cli.app import main
main(sys.argv[1:])
"""


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )


def settings(*given: str) -> list[str]:
    return [part for setting in given for part in ("--set", setting)]


KINDS = {
    "recurrent": ["seq2seq-attention", "model.hidden=8", "training.validate_sentences=4"],
    "two processes": [
        "transformer-tiny", "model.layers=1", "model.model_dim=16", "model.heads=2",
        "model.feed_forward=16", "training.processes=2", "decoding.beam=1",
        "training.validate_sentences=4",
    ],
    "series": ["fibonacci-rnn", "training.seeds=1"],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_at_any_moment_costs_at_most_one_update(
    kind: str, toy_settings: list[str], tmp_path: Path
) -> None:
    recipe, *given = KINDS[kind]
    data = [line for line in toy_settings if not line.startswith(("model.", "training."))]
    limits = ["training.steps=90", "training.checkpoint_every=40", "training.validate_every=30"]
    options = [*(data if kind != "series" else []), *given, *limits]
    straight, out = tmp_path / "straight", tmp_path / "run"
    with using_threads(1):
        regard.train(recipe, set=options, out=straight, progress=False)
    number = signal.SIGINT if kind == "recurrent" else signal.SIGTERM
    with start("train", recipe, *settings(*options), "--out", out) as program:
        until = time.monotonic() + 120
        while not (out / "metrics.jsonl").exists():
            assert program.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 0.5))
        program.send_signal(number)
        _, said = program.communicate()
    assert "Traceback" not in said
    if "all 90 updates done" in said:  # on a busy machine the signal may come too late
        assert program.returncode in (0, 128 + number, -number), said
    else:
        assert program.returncode == 128 + number, said
        last = said.strip().splitlines()[-1]
        ways = (f"go on with: regard train --resume {out}", "nothing is kept")
        assert last.endswith(ways[0]) or ways[1] in last
    with using_threads(1):
        if out.exists():
            regard.train(resume=out, progress=False)
        else:
            regard.train(recipe, set=options, out=out, progress=False)
    for name in ("best/model.safetensors", "checkpoints/step-00000090/model.safetensors"):
        assert (out / name).read_bytes() == (straight / name).read_bytes()
