"""Symbols as one-hot vectors: no matrix of word vectors, and so no parameters."""

from __future__ import annotations

import torch
from torch import nn

from regard.base.shapes import Float, Int, Tensor


class OneHot(nn.Module):
    """x = (0, ..., 1, ..., 0), with the one at the place of the symbol."""

    def __init__(self, *, vocab: int):
        super().__init__()
        self.embedding_dim = vocab
        self.identity: Tensor
        self.register_buffer("identity", torch.eye(vocab), persistent=False)

    def forward(
        self, symbols: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time {self.embedding_dim}"]:
        """Return a row of the identity for each symbol."""
        return self.identity[symbols]
