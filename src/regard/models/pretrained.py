"""Weights of a trained model in one with a larger vocabulary, and weights that stay as they are."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import nn

from regard.base.errors import SettingsError
from regard.base.shapes import Tensor


@torch.no_grad()
def load_extended(model: nn.Module, weights: Mapping[str, Tensor]) -> list[str]:
    """Load weights by name; where the model has more rows, the first are loaded, the rest fresh.

    Returns the names of those that had rows added.
    """
    parameters = dict(model.named_parameters())
    for name, parameter in parameters.items():
        _require_fit(name, parameter, weights)
    for name, parameter in parameters.items():
        old = weights[name]
        (parameter[: len(old)] if old.dim() else parameter).copy_(old)
    return [name for name, p in parameters.items() if p.shape != weights[name].shape]


def freeze(model: nn.Module, patterns: Sequence[str]) -> list[str]:
    """Keep parameters as they are in training: those whose names fit a pattern, as `encoder.*`.

    A table that two parts share has the name of the first of them. Returns the names.
    """
    parameters = dict(model.named_parameters())
    frozen: list[str] = []
    for pattern in patterns:
        found = [name for name in parameters if fnmatchcase(name, pattern)]
        if not found:
            parts = ", ".join(f"{part}.*" for part in dict(model.named_children()))
            raise SettingsError(
                f"training.freeze: no parameter is named like {pattern!r}; the parts of this "
                f"model are {parts}."
            )
        frozen += [name for name in found if name not in frozen]
    if len(frozen) == len(parameters):
        raise SettingsError("training.freeze leaves nothing to train; name fewer parts.")
    for name in frozen:
        parameters[name].requires_grad_(False)
    return frozen


def _require_fit(name: str, parameter: Tensor, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights of a model that differs in more than rows at the end."""
    if name not in weights:
        raise SettingsError(
            f"training.start_from: that run's model has no weights {name!r}. Use the same "
            "settings under 'model' as that run."
        )
    old, new = weights[name].shape, parameter.shape
    if old[1:] != new[1:] or len(old) != len(new) or (len(old) and old[0] > new[0]):
        raise SettingsError(
            f"training.start_from: {name!r} has shape {tuple(old)} there and {tuple(new)} here. "
            "Use the same settings under 'model' as that run."
        )
