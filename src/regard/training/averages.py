"""Averages of weights: over the updates of a training, or over checkpoints at its end."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn


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
    load_named(model, weights)
    try:
        yield
    finally:
        load_named(model, own)


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of the model's weights by their names."""
    return {name: p.detach().clone() for name, p in model.named_parameters()}


@torch.no_grad()
def load_named(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into the model by their names."""
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
