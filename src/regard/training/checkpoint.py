"""Checkpoints: safetensors and JSON, written under a temporary name, synced, then renamed.

A crash at any moment leaves either the old or the new checkpoint, never half of one. Nothing here
is pickle, so reading a checkpoint from a stranger cannot execute code.
"""

import errno
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.base.errors import DamagedError, NonFiniteError, RunError
from regard.base.files import (
    CHANGED,
    fingerprint,
    finish_replacing,
    reading,
    require_checksum,
    whole_folder,
    write_json,
)
from regard.compute.device import HOST, beside, moved, random_states, set_random_states
from regard.training.averages import MovingAverage
from regard.training.progress import Progress
from regard.training.update import plain_batch

WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
AVERAGE = "average.safetensors"
CHECKSUMS = "checksums"  # in the state: a digest of each file, and of the rest of the state
# Marks a checkpoint that is written besides those of `checkpoint_every`: when time has passed, or
# when a training is stopped. It is dropped after the next regular one and never averaged.
EXTRA = "-extra"
KEPT_EXTRAS = 2
DIVERGED = "diverged.json"


def checkpoint_folders(run: Path) -> list[Path]:
    """Return the checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step-*"))


def step_of(folder: Path) -> int:
    """Return the update after which a checkpoint was written, by its name."""
    digits = folder.name.removeprefix("step-").removesuffix(EXTRA)
    return int(digits) if digits.isdecimal() else 0


class CheckpointStore:
    """The checkpoints of one run: `checkpoints/step-*` to continue from, and `best/`.

    `candidates/step-*` are the weights of several good models, where their mean is wanted.
    """

    def __init__(self, run: Path, *, keep: int = 2, evidence: Mapping[str, Any] | None = None):
        self.run = run
        self._keep = keep
        self.evidence = dict(evidence or {})
        self._moving: MovingAverage | None = None

    def follow(self, moving: MovingAverage | None) -> None:
        """Save and restore this average together with the model from now on."""
        self._moving = moving

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        *,
        extra: bool = False,
    ) -> None:
        """Write a checkpoint that training can continue from, and drop the oldest."""
        name = f"step-{progress.step:08d}{EXTRA if extra else ''}"
        _write_folder(
            self.run / "checkpoints" / name,
            tensors={
                WEIGHTS: _weights(model),
                OPTIMIZER: {**_optimizer_tensors(optimizer), **random_states()},
                **({AVERAGE: self._moving.weights} if self._moving else {}),
            },
            state={"progress": progress.to_json(), **self.evidence},
        )
        regular = self.folders()
        newest = step_of(regular[-1]) if regular else 0
        extras = [one for one in checkpoint_folders(self.run) if one.name.endswith(EXTRA)]
        passed = [one for one in extras if step_of(one) <= newest]
        for old in {*regular[: -self._keep], *extras[:-KEPT_EXTRAS], *passed}:
            shutil.rmtree(old)

    def save_best(self, model: nn.Module, progress: Progress, metrics: Mapping[str, float]) -> None:
        """Write the weights of the best model so far."""
        self._write_best(model, progress, metrics, {})

    def save_mean(
        self,
        model: nn.Module,
        progress: Progress,
        metrics: Mapping[str, float],
        *,
        folders: Sequence[Path],
    ) -> None:
        """Write the best model so far, which is the mean of the weights in these folders."""
        names = [folder.name for folder in folders]
        self._write_best(model, progress, metrics, {"mean_of": names})

    def _write_best(
        self,
        model: nn.Module,
        progress: Progress,
        metrics: Mapping[str, float],
        more: Mapping[str, Any],
    ) -> None:
        state = {"progress": progress.to_json(), "metrics": dict(metrics), **self.evidence, **more}
        _write_folder(self.best, tensors={WEIGHTS: _weights(model)}, state=state)

    @property
    def best(self) -> Path:
        """The folder of the best model so far."""
        return self.run / "best"

    def folders(self) -> list[Path]:
        """Return the regular checkpoints, oldest first."""
        return [one for one in checkpoint_folders(self.run) if not one.name.endswith(EXTRA)]

    def save_candidate(
        self, model: nn.Module, progress: Progress, value: float, *, keep: int
    ) -> None:
        """Write the weights of a model of this value, and drop all but the lowest values."""
        folder = self.run / "candidates" / f"step-{progress.step:08d}"
        _write_folder(folder, tensors={WEIGHTS: _weights(model)}, state={"value": value})
        for worse in self.candidates()[keep:]:
            shutil.rmtree(worse)

    def candidates(self) -> list[Path]:
        """Return the candidates, best first, and of equal ones the newest first."""
        newest_first = sorted((self.run / "candidates").glob("step-*"), reverse=True)
        return sorted(newest_first, key=_value_of)

    def save_batches(self, batches: Sequence[Any], facts: Mapping[str, Any]) -> Path:
        """Write batches and what is known of them as JSON, and return the file."""
        path = self.run / DIVERGED
        write_json(
            path, {**facts, "batches": [plain_batch(batch) for batch in batches]}, indent=None
        )
        return path

    @cached_property
    def damages(self) -> dict[Path, str]:
        """The newest checkpoints that cannot be continued from, and what is wrong with each."""
        found: dict[Path, str] = {}
        for folder in reversed(checkpoint_folders(self.run)):
            try:
                require_whole(folder)
                _read_progress(folder)
            except DamagedError as error:
                found[folder] = error.problem
            else:
                break
        return found

    @property
    def newest(self) -> Path | None:
        """The checkpoint to continue from: the newest that is whole; None if there is none."""
        folders = checkpoint_folders(self.run)
        whole = [folder for folder in folders if folder not in self.damages]
        if folders and not whole:
            raise RunError(
                f"No checkpoint of {self.run} is whole: {self.damages[folders[-1]]} "
                "Train again into another folder."
            )
        return whole[-1] if whole else None

    @property
    def step(self) -> int:
        """The update that training continues after; 0 for a new one."""
        return 0 if self.newest is None else step_of(self.newest)

    def restore(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        note: Callable[[str], None] = lambda line: None,
    ) -> Progress:
        """Load the newest whole checkpoint into model, optimiser and random state.

        A damaged one keeps its files under another name, and `note` is told of it.
        """
        finish_replacing(self.best)
        newest = self.newest
        if newest is None:
            return Progress()
        progress = _read_progress(newest)
        load_weights(model, newest)
        tensors, path = _load_tensors(newest, OPTIMIZER), newest / OPTIMIZER
        _required(tensors, "random", torch.get_rng_state().shape, path=path)
        random = {name: tensors.pop(name) for name in [*tensors] if name.startswith("random")}
        _restore_optimizer(optimizer, tensors, path=path)
        moving = self._moving
        if moving is not None:
            moving.restart()  # if the training so far had no average, it begins here
            if (newest / AVERAGE).exists():
                moving.weights = beside(model, read_weights(model, newest, file=AVERAGE))
        set_random_states(random)
        for folder, problem in self.damages.items():
            note(f"{problem} Going on from the checkpoint of update {progress.step}.")
            _set_aside(folder)
        self.__dict__.pop("damages", None)  # they are out of the way now
        return self._with_whole_best(progress, note)

    def _with_whole_best(self, progress: Progress, note: Callable[[str], None]) -> Progress:
        """Return the progress; if the best model is damaged, the next validation begins anew."""
        try:
            if self.best.exists():
                require_whole(self.best)
            return progress
        except DamagedError as error:
            note(f"{error.problem} The next validation chooses a new best model.")
            _set_aside(self.best)
            return replace(progress, best_value=None, best_step=0)


def _set_aside(folder: Path) -> None:
    """Give a damaged folder a name under which nothing reads it."""
    aside = folder.with_name(f"damaged-{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)


def load_weights(model: nn.Module, folder: Path) -> None:
    """Load the weights of a checkpoint; a tensor that is missing or misshapen is named."""
    found = read_weights(model, folder)
    for name, tensor in found.items():
        if not bool(torch.isfinite(tensor).all()):
            raise NonFiniteError(
                f"{folder / WEIGHTS}: {name!r} is not finite. The training of this run has "
                "diverged; train it again with a lower training.learning_rate."
            )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found[name])


def read_weights(model: nn.Module, folder: Path, *, file: str = WEIGHTS) -> dict[str, Tensor]:
    """Return the weights of a checkpoint that fit this model."""
    path = folder / file
    tensors = _load_tensors(folder, file)
    return {
        name: _required(tensors, name, p.shape, path=path) for name, p in model.named_parameters()
    }


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return all weights of a checkpoint by their names, whatever model they belong to."""
    return _load_tensors(folder, WEIGHTS)


def read_state(folder: Path) -> dict[str, Any]:
    """Return the JSON state of a checkpoint."""
    return _read_state(folder)[0]


def require_whole(folder: Path) -> None:
    """Refuse a folder with a file that is missing, cut short or changed."""
    for name, wanted in _read_state(folder)[1].items():
        require_checksum(folder / name, wanted)
    for path in sorted(folder.glob("*.safetensors")):
        with (
            reading(path, SafetensorError),
            safe_open(path, "pt"),
        ):  # compares the header with the file's length
            pass


def _read_state(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the state of a checkpoint and the digests of its other files; old ones have none."""
    path = folder / STATE
    with reading(path):
        state = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(state, dict):
        raise DamagedError(path, "it is not the state of a checkpoint")
    sums = state.pop(CHECKSUMS, {})
    if not isinstance(sums, dict):
        raise DamagedError(path, "it has no checksums")
    wanted = sums.pop(STATE, None)
    if wanted is not None and wanted != _state_checksum(state):
        raise DamagedError(path, CHANGED)
    return state, {name: str(value) for name, value in sums.items() if "/" not in name}


def _state_checksum(state: Mapping[str, Any]) -> str:
    return fingerprint([json.dumps(state, sort_keys=True)])


def _read_progress(folder: Path) -> Progress:
    try:
        found = json.dumps(read_state(folder)["progress"])
        return TypeAdapter(Progress).validate_json(found, strict=True)
    except (KeyError, ValidationError) as error:
        raise DamagedError(folder / STATE, "it has no progress") from error


def _value_of(candidate: Path) -> float:
    value = read_state(candidate).get("value")
    if not isinstance(value, int | float):
        raise DamagedError(candidate / STATE, "it has no value")
    return float(value)


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.detach().contiguous() for name, p in model.named_parameters()}


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's memory by parameter number and name, as `3.exp_avg`."""
    return {
        f"{index}.{name}": value.contiguous()
        for index, memory in optimizer.state_dict()["state"].items()
        for name, value in memory.items()
    }


def _restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], *, path: Path
) -> None:
    """Give the optimiser its memory back; torch itself would not notice what is missing in it."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    kind = [n for n, group in enumerate(optimizer.param_groups) for _ in group["params"]]
    keys = [(int(number), name) for number, name in (key.split(".", 1) for key in tensors)]
    if any(number >= len(parameters) for number, _ in keys):
        raise RunError(f"{path} remembers more parameters than the recipe's model has.")
    state: dict[int, dict[str, Tensor]] = {}
    for index in sorted({number for number, _ in keys}):
        # What one parameter of a group remembers, all of them do.
        for name in sorted({name for number, name in keys if kind[number] == kind[index]}):
            shape = torch.Size() if name == "step" else parameters[index].shape
            tensor = _required(tensors, f"{index}.{name}", shape, path=path)
            state.setdefault(index, {})[name] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _load_tensors(folder: Path, name: str) -> dict[str, Tensor]:
    """Return the tensors of a file, whose checksum is compared if the checkpoint has one."""
    path = folder / name
    wanted = _read_state(folder)[1].get(name) if (folder / STATE).exists() else None
    if wanted is not None:
        require_checksum(path, wanted)
    with reading(path, SafetensorError):
        return load_file(path)


def _required(tensors: Mapping[str, Tensor], name: str, shape: torch.Size, *, path: Path) -> Tensor:
    """Return a tensor of a file, or say that it is missing or misshapen."""
    if name not in tensors:
        raise RunError(f"{path} has no tensor {name!r}: it belongs to another model.")
    if tensors[name].shape != shape:
        raise RunError(
            f"{path}: tensor {name!r} has shape {tuple(tensors[name].shape)}, but the recipe "
            f"describes {tuple(shape)}."
        )
    return tensors[name]


def _write_folder(
    folder: Path, *, tensors: Mapping[str, dict[str, Tensor]], state: Mapping[str, Any]
) -> None:
    """Write a folder of files so that it appears whole or not at all; only finite numbers."""
    tensors = {name: moved(part, HOST) for name, part in tensors.items()}
    for part in tensors.values():
        for name, tensor in part.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise NonFiniteError(f"{name!r} is not finite, so {folder} is not written.")
    with whole_folder(folder) as writing:
        for name, part in tensors.items():
            _save_tensors(part, writing / name)
        sums = {name: fingerprint([writing / name]) for name in tensors}
        plain = json.loads(json.dumps(state))
        sums[STATE] = _state_checksum(plain)
        write_json(writing / STATE, {**plain, CHECKSUMS: sums})


def _save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a file of tensors with the permissions of any other new file."""
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(tensors, path)
    except SafetensorError as error:  # the disk is full, or the like
        raise OSError(errno.EIO, str(error), str(path)) from error
    path.chmod(mode)  # safetensors makes it for its owner alone
