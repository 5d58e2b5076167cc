"""A training that is killed goes on in a new process, and ends with the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

CHILD = """
import json, sys
from pathlib import Path
import regard
from regard.corpora import store
store.MOST_IN_MEMORY = 100
files, out, settings = json.loads(sys.argv[1])
if (Path(out) / "recipe.toml").exists():
    regard.train(resume=out, progress=False)
else:
    regard.train("transformer-tiny", data=files, out=out, set=settings, progress=False)
"""
SETTINGS = {
    "training.steps": 60,
    "training.validate_every": 60,
    "training.checkpoint_every": 7,
    "training.processes": 1,
    "training.subword_sampling": 0.2,
    "augmentation.typos": 0.1,
    "model.layers": 1,
    "model.model_dim": 16,
    "model.heads": 2,
    "model.feed_forward": 16,
    "batches.tokens": 400,
    "data.weights": [1, 3],
    "tokenizer.size": 400,
}


@pytest.mark.slow
def test_a_mixture_in_a_store_with_sampled_subwords(tmp_path: Path) -> None:
    random, files = Random(5), []
    for name, count in {"many": 900, "few": 150}.items():
        known = ("ba", "ko", "mi", "rudal", "fen", name)
        lines = [f"{' '.join(random.choices(known, k=6))} {number}" for number in range(count)]
        files.append(tmp_path / f"{name}.tsv")
        files[-1].write_text("".join(f"{line}\t{line[::-1]}\n" for line in lines))
    environment = os.environ | {"REGARD_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def start(out: Path) -> subprocess.Popen[bytes]:
        given = json.dumps([list(map(str, files)), str(out), SETTINGS])
        return subprocess.Popen([sys.executable, "-c", CHILD, given], env=environment)

    def weights(out: Path) -> bytes:
        return (out / "best" / "model.safetensors").read_bytes()

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start(whole).wait() == 0
    child = start(killed)
    while not (killed / "checkpoints").exists() or not any((killed / "checkpoints").glob("step-*")):
        try:
            assert child.wait(timeout=0.1) == 0
            break
        except subprocess.TimeoutExpired:
            continue
    child.kill()
    child.wait()
    assert start(killed).wait() == 0
    assert weights(killed) == weights(whole)
