"""`regard train --from RUN` of a language model: other text, answers to prompts, labels."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.base.errors import SettingsError
from regard.tasks import find_recipe

SMALL = {
    "tokenizer.kind": "character", "model.layers": 2, "model.model_dim": 16, "model.heads": 2,
    "model.context": 16, "training.batch_size": 8, "training.steps": 4,
    "training.validate_every": 2, "training.checkpoint_every": 2, "decoding.max_tokens": 0,
}  # fmt: skip
FEW = {"training.steps": 2, "training.validate_every": 1, "training.checkpoint_every": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, answers, labels, and the run of a small language model."""
    found = tmp_path_factory.mktemp("from")
    (found / "book.txt").write_text("the cat sat on a mat. a dog ran.\n" * 60, encoding="utf-8")
    (found / "letters.txt").write_text("a mat sat. the dog is a cat.\n" * 60, encoding="utf-8")
    answers = "".join(f"cat {'a' * (n % 5)}\tdog {'n' * (n % 3)}\n" for n in range(30))
    (found / "answers.tsv").write_text(answers, encoding="utf-8")
    rows = [("the cat sat", "animal"), ("a mat is on", "thing")] * 20
    (found / "labels.tsv").write_text("".join(f"{t}\t{x}\n" for t, x in rows), encoding="utf-8")
    regard.train("gpt-nano", data=found / "book.txt", out=found / "lm", set=SMALL, progress=False)
    return found


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "best" / "model.safetensors")


def test_a_text_is_gone_on_with_gently(folder: Path, tmp_path: Path) -> None:
    plan = regard.plan(start_from=folder / "lm", data=folder / "letters.txt", progress=False)
    chosen = plan.recipe.training
    assert chosen.learning_rate == 1e-4
    assert (chosen.schedule, chosen.patience) == ("linear", 3)
    assert chosen.steps == 100  # few tokens: at least so many updates
    assert plan.reasons[0] == f"model and tokenizer are those of {folder / 'lm'}"
    assert "tokens in batches of 128: at most 100 updates" in plan.reasons[2]
    start = tmp_path / "start"
    shutil.copytree(folder / "lm", start)
    changes = {**FEW, "training.freeze": ["embedding", "feed-forward"]}
    trained = regard.train(
        start_from=start, data=folder / "letters.txt", out=tmp_path / "run", set=changes,
        progress=False,
    )  # fmt: skip
    shutil.rmtree(start)
    before, after = weights(folder / "lm"), weights(tmp_path / "run")
    changed = {name for name, one in after.items() if not torch.equal(one, before[name])}
    assert changed
    assert not any("embed" in name or "feed_forward." in name for name in changed)
    again = regard.train(resume=trained.run.folder, set={"training.steps": 3}, progress=False)
    assert again.metrics["loss"] > 0


def test_texts_from_memory(folder: Path, tmp_path: Path) -> None:
    text = (folder / "letters.txt").read_text("utf-8")
    trained = regard.train(
        start_from=folder / "lm", data=text, out=tmp_path / "run", set=FEW, progress=False
    )
    assert trained.model.recipe.data.from_memory


def test_adapters_are_merged_and_gone_on_from(folder: Path, tmp_path: Path) -> None:
    changes = {**FEW, "training.adapter_rank": 2}
    trained = regard.train(
        start_from=folder / "lm", data=folder / "letters.txt", out=tmp_path / "run", set=changes,
        progress=False,
    )  # fmt: skip
    assert any("parametrizations" in name for name in weights(tmp_path / "run"))
    kept = trained.model.model.state_dict()
    assert not any("parametrizations" in name for name in kept)
    labels = regard.train(
        start_from=tmp_path / "run", task="classify", data=folder / "labels.tsv",
        out=tmp_path / "labels", set={"training.epochs": 1, "training.freeze_layers": 2},
        progress=False,
    )  # fmt: skip
    found = labels.model.model.state_dict()
    for name, tensor in kept.items():
        if name.startswith(("backbone.layers.", "backbone.embed")):
            assert torch.allclose(found[name], tensor), name


def test_answers_are_learned(folder: Path, tmp_path: Path) -> None:
    trained = regard.train(
        start_from=folder / "lm", task="answer", data=folder / "answers.tsv",
        out=tmp_path / "run", set=FEW, progress=False,
    )  # fmt: skip
    assert trained.model.recipe.data.pairs == (str(folder / "answers.tsv"),)
    with pytest.raises(SettingsError, match="Answers are learned from files"):
        regard.train(start_from=folder / "lm", task="answer", data=[("a", "b")], out=tmp_path / "x")


def test_labels_are_learned_and_the_first_run_is_not_needed_again(
    folder: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(folder / "lm", start)
    given: dict[str, Any] = {"data": folder / "labels.tsv", "progress": False}
    trained = regard.train(
        start_from=start, task="classify", out=tmp_path / "run", set={"training.epochs": 1}, **given
    )
    named = regard.train(
        "text-classifier", start_from=start, out=tmp_path / "named",
        set={"training.epochs": 1, "training.freeze": "embedding"}, **given,
    )  # fmt: skip
    assert named.model.recipe.model == regard.load(start).recipe.model
    shutil.rmtree(start)
    again = regard.train(resume=trained.run.folder, set={"training.epochs": 2}, progress=False)
    assert again.score.examples == 4
    with pytest.raises(SettingsError, match="is a classifier, whose labels are fixed"):
        regard.train(start_from=trained.run.folder, out=tmp_path / "more", **given)


def test_the_old_name_of_the_setting_is_refused(folder: Path) -> None:
    with pytest.raises(SettingsError, match=r"'pretrained' is now called 'training\.start_from'"):
        find_recipe("text-classifier", overrides=[f"pretrained={folder / 'lm'}"])
