from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from regard.base.errors import NonFiniteError, RunError
from regard.training.checkpoint import load_weights, read_state
from regard.training.progress import Progress


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def trained(toy: Any, folder: Path, steps: int = 3) -> Any:
    task = toy(folder)
    task.fit(steps=steps, validate_every=1, checkpoint_every=1)
    return task


def test_what_is_saved_is_restored(toy: Any, tmp_path: Path) -> None:
    task = trained(toy, tmp_path)
    random = torch.get_rng_state()
    fresh = toy(tmp_path, seed=9)
    progress = fresh.store.restore(fresh.model, fresh.optimizer)
    assert progress.step == 3
    assert torch.equal(torch.get_rng_state(), random)
    for name, weights in task.weights().items():
        assert torch.equal(fresh.weights()[name], weights)
    saved, loaded = task.optimizer.state_dict()["state"], fresh.optimizer.state_dict()["state"]
    assert saved.keys() == loaded.keys()
    for index, memory in saved.items():
        assert memory.keys() == loaded[index].keys() == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(memory[key], loaded[index][key]) for key in memory)


def test_without_a_checkpoint_training_begins_at_the_beginning(toy: Any, tmp_path: Path) -> None:
    task = toy(tmp_path)
    assert task.store.restore(task.model, task.optimizer) == Progress()


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_the_newest_are_kept(toy: Any, tmp_path: Path, keep: int) -> None:
    task = toy(tmp_path, keep=keep)
    task.fit(steps=4, checkpoint_every=1)
    kept = [f"step-{step:08d}" for step in range(1, 5)][-keep:]
    assert names(tmp_path / "checkpoints") == kept


def test_a_checkpoint_is_plain_files_with_its_evidence(toy: Any, tmp_path: Path) -> None:
    task = trained(toy, tmp_path)
    newest = task.store.folders()[-1]
    assert names(newest) == ["model.safetensors", "optimizer.safetensors", "state.json"]
    assert names(tmp_path / "best") == ["model.safetensors", "state.json"]
    assert read_state(newest)["data"] == "points"
    assert read_state(tmp_path / "best")["metrics"].keys() == {"loss"}
    assert names(tmp_path) == ["best", "checkpoints"]  # nothing temporary is left


def test_leftovers_of_a_crash_are_neither_read_nor_in_the_way(toy: Any, tmp_path: Path) -> None:
    trained(toy, tmp_path)
    for leftover in ("checkpoints/.step-00000004.writing", ".best.writing", ".best.old"):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "model.safetensors").write_bytes(b"half of it")
    task = trained(toy, tmp_path, steps=5)
    assert [folder.name for folder in task.store.folders()] == ["step-00000004", "step-00000005"]


def test_the_best_model_survives_a_crash_while_it_is_replaced(toy: Any, tmp_path: Path) -> None:
    task = trained(toy, tmp_path)
    best = load_file(tmp_path / "best" / "model.safetensors")
    # As it is between the two renames: the old one is aside, the new one has not its name yet.
    (tmp_path / "best").rename(tmp_path / ".best.writing")
    (tmp_path / ".best.old").mkdir()
    again = toy(tmp_path)
    again.store.restore(again.model, again.optimizer)
    for name, tensor in load_file(tmp_path / "best" / "model.safetensors").items():
        assert torch.equal(tensor, best[name])
    assert task.store.folders() == again.store.folders()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def changed(path: Path, name: str, tensor: torch.Tensor | None) -> None:
    tensors = load_file(path)
    del tensors[name]
    save_file(tensors if tensor is None else {**tensors, name: tensor}, path)


def flipped(path: Path) -> None:
    """Change one bit in the middle of a file; the tensors in it can still be read."""
    content = bytearray(path.read_bytes())
    content[-len(content) // 4] ^= 1
    path.write_bytes(content)


def rewritten(state: Any) -> Callable[[Path], None]:
    return lambda path: path.write_text(json.dumps(state)) and None


# Name of the case: the file, what happens to it, what the note says.
DAMAGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "weights cut short": ("model.safetensors", cut_short, "it does not match its checksum"),
    "weights empty": ("model.safetensors", emptied, "it does not match its checksum"),
    "weights gone": ("model.safetensors", Path.unlink, "there is no such file"),
    "weights with a flipped bit": ("model.safetensors", flipped, "it does not match its checksum"),
    "optimiser cut short": ("optimizer.safetensors", cut_short, "it does not match its checksum"),
    "optimiser gone": ("optimizer.safetensors", Path.unlink, "there is no such file"),
    "optimiser with a flipped bit": ("optimizer.safetensors", flipped, "match its checksum"),
    "state cut short": ("state.json", cut_short, "was it cut short?"),
    "state gone": ("state.json", Path.unlink, "there is no such file"),
    "state of another kind": ("state.json", rewritten([]), "it is not the state of a checkpoint"),
    "state without progress": ("state.json", rewritten({}), "it has no progress"),
    "state of wrong types": (
        "state.json",
        rewritten({"progress": {"step": "3", "epoch": None}}),
        "it has no progress",
    ),
    "checksums of a wrong type": ("state.json", rewritten({"checksums": 3}), "has no checksums"),
    "another step in the state": (
        "state.json",
        lambda path: path.write_text(path.read_text().replace('"step": 3', '"step": 4')) and None,
        "it does not match its checksum",
    ),
}


@pytest.mark.parametrize(("name", "damage", "problem"), DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_used(
    toy: Any, tmp_path: Path, name: str, damage: Callable[[Path], None], problem: str
) -> None:
    straight = trained(toy, tmp_path / "straight", steps=4)
    newest = trained(toy, tmp_path / "run").store.folders()[-1]
    damage(newest / name)
    again = toy(tmp_path / "run")
    again.fit(steps=4, validate_every=1, checkpoint_every=1)
    note, resuming = again.diary.notes
    assert f"{newest / name} is missing or damaged (" in note
    assert problem in note
    assert note.endswith("Going on from the checkpoint of update 2.")
    assert resuming == "resuming at update 2"
    assert again.diary.steps == [3, 4]
    assert names(newest.parent) == ["damaged-step-00000003", "step-00000003", "step-00000004"]
    for key, weights in straight.weights().items():
        assert torch.equal(again.weights()[key], weights)


def test_without_a_whole_checkpoint_nothing_is_changed(toy: Any, tmp_path: Path) -> None:
    task = trained(toy, tmp_path)
    for folder in task.store.folders():
        cut_short(folder / "model.safetensors")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunError) as caught:
        toy(tmp_path).fit(steps=9)
    assert f"No checkpoint of {tmp_path} is whole: " in str(caught.value)
    assert "Train again into another folder." in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_best_model_is_chosen_anew(toy: Any, tmp_path: Path) -> None:
    trained(toy, tmp_path)
    flipped(tmp_path / "best" / "model.safetensors")
    with pytest.raises(RunError, match=r"does not match its checksum\).*regard train --resume"):
        load_weights(toy(tmp_path).model, tmp_path / "best")
    again = trained(toy, tmp_path, steps=4)
    assert "The next validation chooses a new best model." in again.diary.notes[0]
    assert read_state(tmp_path / "best")["progress"]["best_step"] == 4


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = trained(toy, tmp_path).store.folders()[-1]

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("regard.base.files.Path.open", refuse)
    with pytest.raises(RunError) as caught:
        load_weights(toy(tmp_path).model, newest)
    assert str(caught.value) == f"{newest / 'state.json'} cannot be read: Permission denied."


def without_checksums(folder: Path) -> None:
    """Make a checkpoint one of an earlier version, which has no checksums."""
    state = json.loads((folder / "state.json").read_text())
    del state["checksums"]
    (folder / "state.json").write_text(json.dumps(state))


def test_a_checkpoint_of_an_earlier_version_is_continued(toy: Any, tmp_path: Path) -> None:
    newest = trained(toy, tmp_path).store.folders()[-1]
    without_checksums(newest)
    again = toy(tmp_path)
    again.fit(steps=4)
    assert again.diary.steps == [4]


# Name of the case: the file, what happens to it, what the message must say.
MISFITS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "tensor missing": (
        "model.safetensors",
        lambda path: changed(path, "3.weight", None),
        "has no tensor '3.weight': it belongs to another model.",
    ),
    "tensor misshapen": (
        "model.safetensors",
        lambda path: changed(path, "3.weight", torch.zeros(1, 7)),
        "tensor '3.weight' has shape (1, 7), but the recipe describes (1, 5).",
    ),
    "random state missing": (
        "optimizer.safetensors",
        lambda path: changed(path, "random", None),
        "has no tensor 'random'",
    ),
    "optimiser tensor missing": (
        "optimizer.safetensors",
        lambda path: changed(path, "2.exp_avg", None),
        "has no tensor '2.exp_avg'",
    ),
    "optimiser tensor misshapen": (
        "optimizer.safetensors",
        lambda path: changed(path, "2.exp_avg", torch.zeros(1, 7)),
        "tensor '2.exp_avg' has shape (1, 7)",
    ),
}


@pytest.mark.parametrize(("name", "change", "message"), MISFITS.values(), ids=MISFITS.keys())
def test_a_checkpoint_of_another_model_is_refused_and_nothing_is_lost(
    toy: Any, tmp_path: Path, name: str, change: Callable[[Path], None], message: str
) -> None:
    newest = trained(toy, tmp_path).store.folders()[-1]
    without_checksums(newest)
    change(newest / name)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(RunError) as caught:
        toy(tmp_path).fit(steps=9)
    assert str(newest / name) in str(caught.value)
    assert message in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_all_files_have_the_permissions_of_the_umask(toy: Any, tmp_path: Path) -> None:
    trained(toy, tmp_path)
    plain = tmp_path / "plain"
    plain.touch()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.stat().st_mode for path in files} == {plain.stat().st_mode}


def test_weights_that_are_not_finite_are_never_kept(toy: Any, tmp_path: Path) -> None:
    task = trained(toy, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with torch.no_grad():
        task.model[3].weight[0, 1] = float("nan")
    with pytest.raises(NonFiniteError, match=r"'3.weight' is not finite, so .*step-00000009"):
        task.store.save(task.model, task.optimizer, Progress(step=9))
    with pytest.raises(NonFiniteError, match="best is not written"):
        task.store.save_best(task.model, Progress(step=9), {})
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_checkpoint_can_be_deleted_to_go_on_from_the_one_before(
    toy: Any, tmp_path: Path
) -> None:
    task = trained(toy, tmp_path)
    newest = task.store.folders()[-1]
    for path in newest.iterdir():
        path.unlink()
    newest.rmdir()
    again = toy(tmp_path)
    again.fit(steps=3)
    assert again.diary.steps == [3]
    for name, weights in task.weights().items():
        assert torch.equal(again.weights()[name], weights)


def test_a_misfit_changes_no_weight(toy: Any, tmp_path: Path) -> None:
    newest = trained(toy, tmp_path).store.folders()[-1]
    without_checksums(newest)
    changed(newest / "model.safetensors", "3.bias", torch.zeros(2))
    model: nn.Module = toy(tmp_path, seed=4).model
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(RunError):
        load_weights(model, newest)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_progress_goes_through_json() -> None:
    progress = Progress(step=3, epoch=1, batch=2, seconds=0.1, best_value=-1.5, best_step=2)
    assert Progress(**json.loads(json.dumps(progress.to_json()))) == progress
