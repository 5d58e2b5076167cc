"""Symbols as vectors: embedding, its scale, the positions and dropout."""

from __future__ import annotations

import math

from torch import nn

from regard.attention.dropout import Dropout
from regard.attention.positions import LearnedPositions, Sinusoids
from regard.base.shapes import Float, Int, Tensor


class Embedded(nn.Module):
    """sqrt(d) E x + p (Vaswani et al. 2017, sections 3.4 and 3.5)."""

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        positions: Sinusoids | LearnedPositions | None,
        scaled: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.scale = math.sqrt(embedding.embedding_dim) if scaled else 1.0
        self.dropout = Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "batch time"], *, start: int = 0
    ) -> Float[Tensor, "batch time model_dim"]:
        """Return the vectors of symbols, the first of which is at place `start`."""
        vectors = self.embedding(tokens) * self.scale
        if self.positions is not None:
            vectors = vectors + self.positions(tokens.shape[1], start=start, dtype=vectors.dtype)
        dropped: Tensor = self.dropout(vectors)
        return dropped
