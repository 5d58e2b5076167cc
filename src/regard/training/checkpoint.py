"""Checkpoints: safetensors and JSON, written under a temporary name, synced, then renamed.

A crash at any moment leaves either the old or the new checkpoint, never half of one. Nothing here
is pickle, so reading a checkpoint from a stranger cannot execute code.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.base.errors import RunError
from regard.base.files import finish_replacing, whole_folder, write_json
from regard.training.progress import Progress


@dataclass(frozen=True)
class CheckpointAverage:
    """Which checkpoints are averaged at the end of a training: the newest, or the best."""

    count: int
    of: Literal["last", "best"] = "last"


class MovingAverage:
    """a <- d a + (1 - d) w after each update (Polyak & Juditsky 1992), with d rising to `decay`.

    Early weights are far from good, so the average forgets them faster: after n updates d is at
    most n / (n + 9).
    """

    def __init__(self, model: nn.Module, *, decay: float):
        self._model = model
        self._decay = decay
        self.weights = named_weights(model)

    def restart(self) -> None:
        """Begin anew from the model's weights, which may have been loaded since."""
        self.weights = named_weights(self._model)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after the update of this number, counted from 1."""
        decay = min(self._decay, step / (step + 9))
        for name, parameter in self._model.named_parameters():
            self.weights[name].lerp_(parameter, 1 - decay)


def mean_of(weights: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of the weights of several models, summed in double precision."""
    sums: dict[str, Tensor] = {}
    types: dict[str, torch.dtype] = {}
    count = 0
    for one in weights:
        count += 1  # they are read one by one, so that only the sums are in memory
        for name, tensor in one.items():
            types[name] = tensor.dtype
            sums[name] = sums[name] + tensor if name in sums else tensor.double()
    return {name: (total / count).to(types[name]) for name, total in sums.items()}


@contextmanager
def replaced(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Give the model other weights inside the context."""
    own = named_weights(model)
    _copy(model, weights)
    try:
        yield
    finally:
        _copy(model, own)


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the model's weights by their names."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@torch.no_grad()
def _copy(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])


WEIGHTS, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"
AVERAGE = "average.safetensors"


class CheckpointStore:
    """The checkpoints of one run: `checkpoints/step-*` to continue from, and `best/`.

    `candidates/step-*` are the weights of several good models, where their mean is wanted.
    """

    def __init__(self, run: Path, *, keep: int = 2, evidence: Mapping[str, Any] | None = None):
        self._run = run
        self._keep = keep
        self._evidence = dict(evidence or {})
        self._moving: MovingAverage | None = None

    def follow(self, moving: MovingAverage | None) -> None:
        """Save and restore this average together with the model from now on."""
        self._moving = moving

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write a checkpoint that training can continue from, and drop the oldest."""
        folder = self._run / "checkpoints" / f"step-{progress.step:08d}"
        _write_folder(
            folder,
            tensors={
                WEIGHTS: _weights(model),
                OPTIMIZER: {**_optimizer_tensors(optimizer), "random": torch.get_rng_state()},
                **({AVERAGE: self._moving.weights} if self._moving else {}),
            },
            state={"progress": progress.to_json(), **self._evidence},
        )
        for old in self.folders()[: -self._keep]:
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
        state = {"progress": progress.to_json(), "metrics": dict(metrics), **self._evidence, **more}
        _write_folder(self.best, tensors={WEIGHTS: _weights(model)}, state=state)

    @property
    def best(self) -> Path:
        """The folder of the best model so far."""
        return self._run / "best"

    def folders(self) -> list[Path]:
        """Return the checkpoints, oldest first."""
        return sorted((self._run / "checkpoints").glob("step-*"))

    def save_candidate(
        self, model: nn.Module, progress: Progress, value: float, *, keep: int
    ) -> None:
        """Write the weights of a model of this value, and drop all but the lowest values."""
        folder = self._run / "candidates" / f"step-{progress.step:08d}"
        _write_folder(folder, tensors={WEIGHTS: _weights(model)}, state={"value": value})
        for worse in self.candidates()[keep:]:
            shutil.rmtree(worse)

    def candidates(self) -> list[Path]:
        """Return the candidates, best first, and of equal ones the newest first."""
        newest_first = sorted((self._run / "candidates").glob("step-*"), reverse=True)
        return sorted(newest_first, key=lambda folder: float(read_state(folder)["value"]))

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
        """Load the newest checkpoint into model, optimiser and random state."""
        finish_replacing(self.best)
        folders = self.folders()
        if not folders:
            return Progress()
        newest = folders[-1]
        progress = _read_progress(newest)
        load_weights(model, newest)
        path = newest / OPTIMIZER
        tensors = _load_tensors(path)
        random = _required(tensors, "random", torch.get_rng_state().shape, path=path)
        del tensors["random"]
        _restore_optimizer(optimizer, tensors, path=path)
        moving = self._moving
        if moving is not None:
            moving.restart()  # if the training so far had no average, it begins here
            if (newest / AVERAGE).exists():
                moving.weights = read_weights(model, newest, file=AVERAGE)
        torch.set_rng_state(random)
        return progress


def load_weights(model: nn.Module, folder: Path) -> None:
    """Load the weights of a checkpoint; a tensor that is missing or misshapen is named."""
    found = read_weights(model, folder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(found[name])


def read_weights(model: nn.Module, folder: Path, *, file: str = WEIGHTS) -> dict[str, Tensor]:
    """Return the weights of a checkpoint that fit this model."""
    path = folder / file
    tensors = _load_tensors(path)
    return {
        name: _required(tensors, name, p.shape, path=path) for name, p in model.named_parameters()
    }


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return all weights of a checkpoint by their names, whatever model they belong to."""
    return _load_tensors(folder / WEIGHTS)


def read_state(folder: Path) -> dict[str, Any]:
    """Return the JSON state of a checkpoint."""
    path = folder / STATE
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RunError(_broken(path)) from error
    if not isinstance(state, dict):
        raise RunError(_broken(path))
    return state


def _read_progress(folder: Path) -> Progress:
    try:
        return Progress(**read_state(folder)["progress"])
    except (KeyError, TypeError) as error:
        raise RunError(_broken(folder / STATE)) from error


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


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise RunError(_broken(path)) from error


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


def _broken(path: Path) -> str:
    return (
        f"{path} is missing or damaged (was it cut short?). Delete the folder "
        f"{path.parent.name!r} to go on from an earlier checkpoint, or train again."
    )


def _write_folder(
    folder: Path, *, tensors: Mapping[str, dict[str, Tensor]], state: Mapping[str, Any]
) -> None:
    """Write a folder of files so that it appears whole or not at all."""
    with whole_folder(folder) as writing:
        for name, part in tensors.items():
            save_file(part, writing / name)
        write_json(writing / STATE, state)
