"""Attention scores: how well each source position answers a query.

Adding a score takes one class here and one line in `SCORES`, from which recurrent decoders and the
multi-head module draw. What depends on the memory alone is done once, in `prepare` and `values`,
however many queries follow. In the formulas s is a query and h a position of the memory. Scores on
the edges of a graph have a registry of the same form in `graph`.
"""

import math
from typing import ClassVar

import torch
from torch import nn

from regard.base.shapes import Float, Tensor
from regard.compute.linear import shared_product


class AttentionScore(nn.Module):
    """Scores every (query, key) pair; subclasses give the formula.

    `value_dim` is the width of the values, and so of the context that they are mixed into. A score
    of several heads gives one number for each of them; its values are split among the heads.
    """

    formula: ClassVar[str] = "e_ij = a({s}, h_j)"
    """The formula as people read it, with {s} for the query."""
    value_formula: ClassVar[str] = "h_j"
    """What the weights mix."""
    query_formula: ClassVar[str] = "{s}"
    key_formula: ClassVar[str] = "h_j"
    """What `compared` returns of the query and of the memory."""
    projects_values: ClassVar[bool] = False
    """Whether the values are a projection to the width of the queries, and not the memory."""

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1):
        super().__init__()
        self.value_dim = query_dim if self.projects_values else key_dim

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return the keys as `forward` wants them."""
        return keys

    def values(
        self, memory: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source value_dim"]:
        """Return what the weights will mix: the memory itself, unless a score says otherwise."""
        return memory

    def compared(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> (
        tuple[Float[Tensor, "batch heads target dim"], Float[Tensor, "batch heads source dim"]]
        | None
    ):
        """Return the vectors whose products the scores are; None if they are something else."""
        return None

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch *heads target source"]:
        """Return one number for each query and each prepared key, and for each head if several."""
        raise TypeError(f"{type(self).__name__} gives no formula for its score")


class ProductScore(AttentionScore):
    """A score that is the product of a query and a prepared key."""

    def compared(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> tuple[Float[Tensor, "batch heads target dim"], Float[Tensor, "batch heads source dim"]]:
        """Return the query and the prepared keys, as of one head."""
        return query[:, None], keys[:, None]

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch *heads target source"]:
        """Return the products."""
        return shared_product(query, keys)


class DotScore(ProductScore):
    """e = h^T s (Luong et al. 2015, eq. 8 "dot"); no parameters, so the widths must agree."""

    formula = "e_ij = h_j^T {s}"

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1):
        super().__init__(query_dim=query_dim, key_dim=key_dim, heads=heads)
        if query_dim != key_dim:
            raise ValueError(
                f"dot score: query_dim ({query_dim}) must equal key_dim ({key_dim}); "
                "choose the additive score for different widths"
            )


class ScaledDotScore(DotScore):
    """e = h^T s / sqrt(d) (Vaswani et al. 2017, eq. 1)."""

    formula = "e_ij = h_j^T {s} / sqrt(d)"
    key_formula = "h_j / sqrt(d)"

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return h / sqrt(d)."""
        return keys / math.sqrt(keys.shape[-1])


class BilinearScore(ProductScore):
    """e = h^T W s (Luong et al. 2015, eq. 8 "general"); with biases, e = (h^T W + b) s."""

    formula = "e_ij = h_j^T W {s}"
    key_formula = "h_j^T W"

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1, biases: bool = False):
        super().__init__(query_dim=query_dim, key_dim=key_dim, heads=heads)
        self.weights = nn.Linear(query_dim, key_dim, bias=False)  # W
        self.bias = nn.Parameter(torch.zeros(query_dim)) if biases else None  # b

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return h^T W + b, so that only a dot product is left for each query."""
        prepared = keys @ self.weights.weight
        return prepared if self.bias is None else prepared + self.bias


class AdditiveScore(AttentionScore):
    """e = v^T tanh(W s + U h) (Bahdanau et al. 2015, A.1.2); a bias for each matrix on request."""

    formula = "e_ij = v^T tanh(W {s} + U h_j)"

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1, biases: bool = False):
        super().__init__(query_dim=query_dim, key_dim=key_dim, heads=heads)
        self.query_weights = nn.Linear(query_dim, query_dim, bias=biases)  # W
        self.key_weights = nn.Linear(key_dim, query_dim, bias=biases)  # U
        self.readout = nn.Linear(query_dim, 1, bias=biases)  # v

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
    ) -> Float[Tensor, "batch *heads target source"]:
        """Return v^T tanh(W s + U h)."""
        projected = self.query_weights(query)[:, :, None, :]  # [batch, target, 1, query_dim]
        scores: Tensor = self.readout(torch.tanh(projected + keys[:, None, :, :]))
        return scores.squeeze(-1)


class ParameterisedScore(ProductScore):
    """e = (W^k h)^T (W^q s), with values W^v h: keys, queries and values are projections.

    One head of Vaswani et al. 2017, section 3.2.2, without the scale.
    """

    formula = "e_ij = (W^k h_j)^T (W^q {s})"
    key_formula = "(W^k h_j)^T W^q"
    value_formula = "W^v h_j"
    projects_values = True

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1):
        super().__init__(query_dim=query_dim, key_dim=key_dim, heads=heads)
        self.query_weights = nn.Linear(query_dim, query_dim, bias=False)  # W^q
        self.key_weights = nn.Linear(key_dim, query_dim, bias=False)  # W^k
        self.value_weights = nn.Linear(key_dim, query_dim, bias=False)  # W^v

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return (W^k h)^T W^q, so that only a dot product is left for each query."""
        prepared: Tensor = self.key_weights(keys) @ self.query_weights.weight
        return prepared

    def values(
        self, memory: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source value_dim"]:
        """Return W^v h."""
        values: Tensor = self.value_weights(memory)
        return values


class MultiHeadScore(AttentionScore):
    """e_m = (W_m^k h)^T (W_m^q s) / sqrt(d) for each head m, with values W_m^v h of its own.

    Vaswani et al. 2017, section 3.2.2; the layer that reads the contexts of the heads mixes them.
    """

    formula = "e_mij = (W_m^k h_j)^T (W_m^q {s}) / sqrt(d) in head m"
    query_formula = "W_m^q {s}"
    key_formula = "W_m^k h_j / sqrt(d)"
    value_formula = "W_m^v h_j"
    projects_values = True

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1):
        super().__init__(query_dim=query_dim, key_dim=key_dim, heads=heads)
        if query_dim % heads:
            raise ValueError(f"query_dim ({query_dim}) must be divisible by heads ({heads})")
        self.heads = heads
        self.query_weights = nn.Linear(query_dim, query_dim, bias=False)  # all W_m^q
        self.key_weights = nn.Linear(key_dim, query_dim, bias=False)  # all W_m^k
        self.value_weights = nn.Linear(key_dim, query_dim, bias=False)  # all W_m^v

    def prepare(
        self, keys: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source prepared_dim"]:
        """Return W^k h / sqrt(d), the heads side by side."""
        prepared: Tensor = self.key_weights(keys)
        return prepared / math.sqrt(prepared.shape[-1] // self.heads)

    def values(
        self, memory: Float[Tensor, "batch source key_dim"]
    ) -> Float[Tensor, "batch source value_dim"]:
        """Return W^v h, the heads side by side."""
        values: Tensor = self.value_weights(memory)
        return values

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch *heads target source"]:
        """Return a score for each head."""
        ours, theirs = self.compared(query, keys)
        return ours @ theirs.mT

    def compared(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> tuple[Float[Tensor, "batch heads target dim"], Float[Tensor, "batch heads source dim"]]:
        """Return W_m^q s and W_m^k h / sqrt(d) of each head."""
        return self._split(self.query_weights(query)), self._split(keys)

    def _split(
        self, parts: Float[Tensor, "batch time width"]
    ) -> Float[Tensor, "batch heads time head_dim"]:
        batch, time, _ = parts.shape
        return parts.view(batch, time, self.heads, -1).transpose(1, 2)


SCORES: dict[str, type[AttentionScore]] = {
    "dot": DotScore,
    "scaled-dot": ScaledDotScore,
    "bilinear": BilinearScore,
    "additive": AdditiveScore,
    "parameterised": ParameterisedScore,
    "multi-head": MultiHeadScore,
}
