"""Low-rank adapters: a trained model learns a new task by a few numbers beside its weights."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn.utils import parametrize

from regard.attention.multihead import MultiHeadAttention
from regard.base.errors import SettingsError
from regard.base.shapes import Float, Tensor


class LowRank(nn.Module):
    """W + B A, with A of a few rows and B zero at first (Hu et al. 2022, section 4.1)."""

    def __init__(self, rows: int, columns: int, *, rank: int):
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, columns) / math.sqrt(columns))  # A
        self.up = nn.Parameter(torch.zeros(rows, rank))  # B

    def forward(self, weight: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
        """Return the weights with what was learned beside them."""
        return weight + self.up @ self.down


def add_adapters(network: nn.Module, *, rank: int) -> None:
    """Give the matrices of all attention adapters, and keep everything else as it is."""
    found = [part for part in network.modules() if isinstance(part, MultiHeadAttention)]
    if not found:
        raise SettingsError("training.adapter_rank: this model has no attention to adapt.")
    network.requires_grad_(False)
    for part in found:
        for linear in (part.projection, part.output):
            adapter = LowRank(*linear.weight.shape, rank=rank)
            parametrize.register_parametrization(linear, "weight", adapter)


def merge_adapters(network: nn.Module) -> None:
    """Add what the adapters have learned to the weights, so that using them costs nothing."""
    for part in network.modules():
        if isinstance(part, nn.Linear) and parametrize.is_parametrized(part, "weight"):
            parametrize.remove_parametrizations(part, "weight", leave_parametrized=True)
