"""Layers computed again for the gradient, instead of keeping all that they found in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from regard.base.errors import SettingsError


def recompute_layers(model: nn.Module) -> None:
    """Let the stacks of a Transformer keep only what goes into each layer (Chen et al. 2016)."""
    stacks: list[Any] = [part for part in model.modules() if hasattr(part, "recompute")]
    if not stacks:
        raise SettingsError(
            "training.recompute needs layers of a Transformer, which this model has not; "
            "leave it out."
        )
    for stack in stacks:
        stack.recompute = True


def recomputed(layer: nn.Module, *, wanted: bool) -> Callable[..., Any]:
    """Return the layer, as one that is computed again for the gradient if that is wanted.

    Torch's generator is set back for the second time, so the same is dropped.
    """
    if not wanted or not torch.is_grad_enabled():
        return layer
    return partial(checkpoint, layer, use_reentrant=False)
