"""Attention scores: how well each source position answers a query.

Adding a score takes one class here and one line in `SCORES`. What depends on the keys alone is
done once, in `prepare`, however many queries follow.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from regard.base.shapes import Float, Tensor


class Score(nn.Module):
    """Scores every (query, key) pair; subclasses give the formula."""

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return the keys as `forward` wants them."""
        return keys

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch target source"]:
        """Return one number for each query and each prepared key."""
        raise TypeError(f"{type(self).__name__} gives no formula for its score")


class DotScore(Score):
    """e = h^T s (Luong et al. 2015, eq. 8 "dot"); no parameters, so the widths must agree."""

    def __init__(self, *, query_dim: int, key_dim: int):
        super().__init__()
        if query_dim != key_dim:
            raise ValueError(
                f"dot score: query_dim ({query_dim}) must equal key_dim ({key_dim}); "
                "choose the additive score for different widths"
            )

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch target source"]:
        """Return h^T s."""
        return torch.bmm(query, keys.transpose(1, 2))


class AdditiveScore(Score):
    """e = v^T tanh(W s + U h) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, *, query_dim: int, key_dim: int):
        super().__init__()
        self.query_weights = nn.Linear(query_dim, query_dim, bias=False)  # W
        self.key_weights = nn.Linear(key_dim, query_dim, bias=False)  # U
        self.readout = nn.Linear(query_dim, 1, bias=False)  # v

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return U h, which is the same for every query."""
        prepared: Tensor = self.key_weights(keys)
        return prepared

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch target source"]:
        """Return v^T tanh(W s + U h)."""
        asked = self.query_weights(query)[:, :, None, :]  # [batch, target, 1, query_dim]
        scores: Tensor = self.readout(torch.tanh(asked + keys[:, None, :, :]))
        return scores.squeeze(-1)


SCORES: dict[str, Callable[..., Score]] = {
    "dot": DotScore,
    "additive": AdditiveScore,
}
