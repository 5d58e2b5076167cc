from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard.batching.batch import encode_pairs
from regard.runs.run import Run, open_run
from regard.scoring.measures import Score
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation import objective
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from regard.training.progress import read_metrics

SMALL = [
    "model.hidden=16",
    "model.dropout=0.2",
    "training.steps=40",
    "training.validate_every=10",
    "training.validate_sentences=3",
    "training.checkpoint_every=4",
    "training.keep=3",
]


def train(folder: Path, settings: list[str], *, resume: bool = False) -> Path:
    recipe = expect(find_recipe("seq2seq-attention", overrides=settings), TranslationRecipe)
    train_translator(recipe, open_run(folder, recipe, resume=resume))
    return folder


def final(folder: Path) -> dict[str, torch.Tensor]:
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    assert newest.name == "step-00000040"
    best = load_file(folder / "best" / "model.safetensors")
    return {
        **load_file(newest / "model.safetensors"),
        **load_file(newest / "optimizer.safetensors"),
        **{f"best.{name}": tensor for name, tensor in best.items()},
    }


def assert_same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.fixture(scope="module")
def small(toy_settings: list[str]) -> list[str]:
    return [*toy_settings, *SMALL]


@pytest.fixture(scope="module")
def uninterrupted(small: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("whole") / "run", small)


def test_one_seed_gives_one_result(uninterrupted: Path, small: list[str], tmp_path: Path) -> None:
    assert_same(final(uninterrupted), final(train(tmp_path / "same", small)))
    other = final(train(tmp_path / "other", [*small, "training.seed=2"]))
    assert any(not torch.equal(t, other[name]) for name, t in final(uninterrupted).items())


# Trains as the fixture did, but dies by SIGKILL in the middle of an update.
KILLED = """
import json, os, signal, sys
import torch
torch.set_num_threads(1)
from pathlib import Path
from regard.batching.batch import encode_pairs
from regard.runs.run import open_run
from regard.tasks import find_recipe
from regard.tasks.translation.training import train_translator

class Killer:
    def updated(self, progress, result, facts):
        if progress.step == 18:
            os.kill(os.getpid(), signal.SIGKILL)
    def validated(self, progress, metrics): pass
    def finished(self, progress, reason): pass
    def noted(self, line): pass

recipe = find_recipe("seq2seq-attention", overrides=json.loads(sys.argv[2]))
train_translator(recipe, open_run(Path(sys.argv[1]), recipe, resume=False), observers=[Killer()])
"""


def test_a_killed_training_resumes_to_the_same_weights_bit_for_bit(
    uninterrupted: Path, small: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(folder), json.dumps(small)])
    assert ended.returncode == -signal.SIGKILL
    kept = [path.name for path in sorted((folder / "checkpoints").iterdir())]
    assert kept == ["step-00000008", "step-00000012", "step-00000016"]
    assert_same(final(uninterrupted), final(train(folder, small, resume=True)))
    steps = [(row["kind"], row["step"]) for row in read_metrics(folder / "metrics.jsonl")]
    wanted = read_metrics(uninterrupted / "metrics.jsonl")
    assert steps == [(row["kind"], row["step"]) for row in wanted]


def test_a_training_killed_from_outside_at_any_moment_resumes(
    uninterrupted: Path, small: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    arguments = [part for setting in small for part in ("--set", setting)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", "from regard.cli.app import main; main()", "train",
         "seq2seq-attention", *arguments, "--out", str(folder)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        while process.poll() is None and not list(folder.glob("checkpoints/step-*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert_same(final(uninterrupted), final(train(folder, small, resume=True)))


def test_tensorboard_is_written_on_request(small: list[str], tmp_path: Path) -> None:
    quick = ["training.steps=2", "training.tensorboard=true"]
    folder = train(tmp_path / "run", [*small, *quick])
    assert list((folder / "tensorboard").glob("events.out.tfevents.*"))


def test_a_checkpoint_tells_versions_and_data(uninterrupted: Path) -> None:
    state = json.loads((uninterrupted / "best" / "state.json").read_text(encoding="utf-8"))
    assert state["versions"].keys() >= {"python", "regard", "torch", "sentencepiece"}
    assert len(state["data"]) == 32
    assert state["metrics"].keys() == {"loss", "bleu"}


def test_a_bleu_that_is_chance_does_not_choose_the_model(
    toy_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below 1 BLEU the loss decides; any real BLEU is better than any loss."""
    recipe = Run.open(toy_run).recipe(TranslationRecipe)
    pairs = read_splits(recipe.data).valid[:4]
    model = load(toy_run)
    examples = encode_pairs(pairs, model.source_tokenizer, model.target_tokenizer)
    values = {}
    for bleu in (0.5, 1.5):
        score = Score(name="BLEU", value=bleu, signature="")
        monkeypatch.setattr(objective, "corpus_bleu", lambda *_, found=score: found)
        values[bleu] = objective.validate(model, examples, pairs, select="bleu").value
    assert values[0.5] > 0  # a loss
    assert values[1.5] == -1.5
