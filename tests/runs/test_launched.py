"""A training of several processes that torchrun has started, and what they refuse."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.base.errors import SettingsError
from regard.compute.group import Group, join_launched
from regard.runs import launched
from regard.runs.launched import joined

GIVEN: dict[str, Any] = {
    **dict.fromkeys((*launched.COMPARED, "data", "out", "resume", "progress")),
    "recipe": "transformer-tiny",
    "set": ["training.seed=1"],
}


def test_without_torchrun_nothing_changes() -> None:
    with joined(GIVEN) as options:
        assert options == GIVEN


class Others(Group):
    """A group in which the other process has given something else."""

    def __init__(self, changed: dict[str, list[str]]):
        super().__init__(0, 2)
        self._changed = changed

    def gather(self, value: Any) -> list[Any]:
        return [value, value | self._changed]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"set": ["training.seed=2"]}, r"other settings.*: set has training.seed=2 in place of "),
        ({"recipe": ["luong"]}, "recipe has luong in place of transformer-tiny"),
        ({"code": ["0123", "torch 1"]}, "other code than process 0"),
    ],
)
def test_other_settings_or_code_are_refused(changed: dict[str, list[str]], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        launched._require_same(Others(changed), GIVEN)


def test_a_recipe_file_is_compared_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('task = "translate"\n', encoding="utf-8")
    assert launched._described(tmp_path / "mine.toml") == ['task = "translate"']


def environment(port: int, **more: str) -> dict[str, str]:
    return {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **more}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as busy:
        busy.bind(("0.0.0.0", 0))
        busy.listen()
        port = busy.getsockname()[1]
        for name, value in environment(port, RANK="0", WORLD_SIZE="2").items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SettingsError, match=rf"127.0.0.1:{port}: the port is in use"):
            join_launched()


SMALL = (
    "tokenizer.kind=word", "model.layers=1", "model.model_dim=16", "model.heads=2",
    "model.feed_forward=32", "model.dropout=0", "model.attention_dropout=0",
    "model.activation_dropout=0", "batches.tokens=400", "training.warmup=5",
    "training.learning_rate=0.01", "training.checkpoint_every=5", "training.validate_every=10",
)  # fmt: skip


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    words = [first + second for first in ("ba", "ko", "mi") for second in ("dal", "fen", "gon")]
    lines = [f"{a} {b} {c}" for a in words for b in words for c in words[:5]]
    rows = [f"{line}\t{line[::-1].upper()}\n" for line in lines]
    (folder / "train.tsv").write_text("".join(rows), encoding="utf-8")
    (folder / "valid.tsv").write_text("".join(rows[::20]), encoding="utf-8")
    return folder


def command(pairs: Path, out: Path, *more: str, steps: int = 20) -> list[str]:
    files = ["--data", str(pairs / "train.tsv"), "--valid", str(pairs / "valid.tsv")]
    sets = [word for one in (*SMALL, f"training.steps={steps}") for word in ("--set", one)]
    train = ["regard", "train", "transformer-tiny", "--out", str(out), *files, *sets, *more]
    return [sys.executable, "-m", *train]


def torchrun(*train: str, restarts: int = 0) -> subprocess.Popen[str]:
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--no-python",
           f"--master-port={free_port()}", f"--max-restarts={restarts}"]  # fmt: skip
    return subprocess.Popen(
        [*run, *train], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def weights(out: Path, step: int) -> dict[str, torch.Tensor]:
    found = load_file(out / "checkpoints" / f"step-{step:08d}" / "model.safetensors")
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
def test_two_launched_processes_learn_what_one_learns_also_across_resumes(
    pairs: Path, tmp_path: Path
) -> None:
    alone, mixed = tmp_path / "alone", tmp_path / "mixed"
    single = ["--set", "training.processes=1"]
    subprocess.run(command(pairs, alone, *single, steps=30), check=True)
    assert torchrun(*command(pairs, mixed, steps=10)).wait() == 0
    again = [sys.executable, "-m", "regard", "train", "--resume", str(mixed)]
    subprocess.run([*again, *single, "--set", "training.steps=20"], check=True)
    assert torchrun(*again, "--set", "training.steps=30").wait() == 0
    # Muon makes a matrix orthogonal: where the gradient is near zero, rounding decides.
    torch.testing.assert_close(weights(mixed, 30), weights(alone, 30), atol=2e-3, rtol=0)


def pid_of(rank: int, out: Path) -> int:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environ = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"RANK={rank}".encode() in environ and str(out).encode() in words:
            return int(folder.name)
    raise RuntimeError("there is no such process")


@pytest.mark.slow
def test_a_training_goes_on_exactly_after_a_process_was_killed(pairs: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert torchrun(*command(pairs, whole, steps=40)).wait() == 0
    training = torchrun(*command(pairs, killed, steps=40), restarts=1)
    until = time.monotonic() + 300
    while not (killed / "checkpoints" / "step-00000010").is_dir():
        assert time.monotonic() < until and training.poll() is None
        time.sleep(0.2)
    os.kill(pid_of(1, killed), signal.SIGKILL)
    said, _ = training.communicate()
    assert training.returncode == 0, said
    assert "resuming at update" in said
    torch.testing.assert_close(weights(killed, 40), weights(whole, 40), atol=0, rtol=0)


@pytest.mark.slow
def test_the_other_process_ends_with_one_sentence(pairs: Path, tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "run"
    trains = [
        subprocess.Popen(
            command(pairs, out, steps=10_000),
            env=environment(port, RANK=str(rank), WORLD_SIZE="2"),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    until = time.monotonic() + 300
    while not (out / "checkpoints" / "step-00000005").is_dir():
        assert time.monotonic() < until
        time.sleep(0.2)
    trains[1].kill()
    killed = time.monotonic()
    said = trains[0].communicate()[1]
    assert time.monotonic() - killed < 60
    assert trains[0].returncode == 2
    assert "Error: Of the 2 processes of the training, another process has ended" in said
    assert "Traceback" not in said
