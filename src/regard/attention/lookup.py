"""Attention over a memory with any of the scores: scores -> weights -> context."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import nn

from regard.attention.probe import Probe, seen
from regard.attention.scores import AttentionScore
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.linear import shared, weighted_sum


def masked_softmax(
    scores: Float[Tensor, "*batch source"], mask: Bool[Tensor, "*mask_batch source"]
) -> Float[Tensor, "*batch source"]:
    """Return weights that sum to one over the positions that may be attended to.

    A row in which nothing may be attended to has weights of zero, never NaN.
    """
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0.0)


def attend(
    scores: Float[Tensor, "batch *heads target source"],
    *,
    values: Float[Tensor, "batch source value_dim"],
    mask: Bool[Tensor, "batch source"],
    with_weights: bool = False,
    probe: Probe | None = None,
) -> Attended:
    """Return c_i = sum_j alpha_ij h_j with alpha = softmax(e) (Bahdanau et al. 2015, eq. 5-6).

    Several heads share the width of the values among them; the weights returned are their mean.
    """
    scores = seen(probe, "scores", scores)
    if scores.dim() == 3:
        weights = seen(probe, "weights", masked_softmax(scores, mask[:, None, :]))
        mixed = weighted_sum(weights, seen(probe, "values", values))
        return Attended(seen(probe, "context", mixed), weights if with_weights else None)
    weights = seen(probe, "weights", masked_softmax(scores, mask[:, None, None, :]))
    batch, source, _ = values.shape
    split = values.view(batch, source, scores.shape[1], -1).transpose(1, 2)
    mixed = seen(probe, "context", weights @ seen(probe, "values", split))
    context = mixed.transpose(1, 2).flatten(2)  # [batch, target, value_dim]
    return Attended(context, weights.mean(dim=1) if with_weights else None)


class Memory(NamedTuple):
    """What a lookup reads: prepared keys, values, and which of them are real."""

    keys: Float[Tensor, "batch source prepared_dim"]
    values: Float[Tensor, "batch source value_dim"]
    mask: Bool[Tensor, "batch source"]

    def select(self, rows: Int[Tensor, "chosen"]) -> Memory:
        """Return these rows of the batch, in this order."""
        return Memory(*(part.index_select(0, rows) for part in self))

    def as_shared(self) -> Memory:
        """Return the same memory for a loop of many lookups, which makes training faster."""
        return Memory(shared(self.keys), shared(self.values), self.mask)


class Lookup(nn.Module):
    """Attention over a memory that is prepared once and queried many times.

    alpha = softmax(e), c = sum_j alpha_j v_j (Bahdanau et al. 2015, eq. 5-6), with any score e.
    """

    def __init__(self, *, score: AttentionScore):
        super().__init__()
        self.score = score

    @property
    def context_dim(self) -> int:
        """The width of the context."""
        return self.score.value_dim

    def prepare(
        self, memory: Float[Tensor, "batch source key_dim"], mask: Bool[Tensor, "batch source"]
    ) -> Memory:
        """Do what depends on the memory alone."""
        return Memory(self.score.prepare(memory), self.score.values(memory), mask)

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        memory: Memory,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Attended:
        """Return a context for each query and, on request, the weights behind it."""
        query = seen(probe, "query", query)
        scores = self.score(query, memory.keys)
        return attend(
            scores,
            values=memory.values,
            mask=memory.mask,
            with_weights=with_weights,
            probe=probe,
        )


def coverage_penalty(
    weights: Float[Tensor, "batch target source"], mask: Bool[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Return sum_ij min(alpha_ij, sum_{k<i} alpha_kj) over real targets (See et al. 2017, eq. 12).

    It is zero if no two target positions look at the same source position.
    """
    before = weights.cumsum(dim=1) - weights  # sum_{k<i} alpha_kj
    overlap = weights.minimum(before).sum(dim=2)  # [batch, target]
    return (overlap * mask).sum()


class Pooling(nn.Module):
    """Builds one context from the states of `time` steps; subclasses give the formula.

    Raffel & Ellis 2016, eq. 1, call this feed-forward attention.
    """

    weight_formula: ClassVar[str] = "alpha_t"
    context_formula: ClassVar[str] = "c = sum_t alpha_t h_t"

    def __init__(self, *, time: int, hidden: int):
        super().__init__()
        self.time = time
        self.hidden = hidden

    def forward(
        self, states: Float[Tensor, "batch time hidden"], *, with_weights: bool = False
    ) -> Attended:
        """Return c = sum_t alpha_t h_t and, on request, alpha."""
        if states.shape[1] != self.time:
            raise ValueError(
                f"pooling: {states.shape[1]} time steps were given, but it has weights for "
                f"{self.time}"
            )
        weights = self.weigh(states)
        context = torch.einsum("bt,bth->bh", weights, states) + self.offset()
        return Attended(context, weights if with_weights else None)

    def weigh(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return alpha_t for every time step."""
        raise TypeError(f"{type(self).__name__} gives no formula for its weights")

    def offset(self) -> Tensor | float:
        """Return what is added to the weighted sum."""
        return 0.0


class LecturePooling(Pooling):
    """c = sum_t alpha_t h_t + b, with free alpha: the same weights whatever was read."""

    weight_formula = "alpha_t, learned, the same for every window"
    context_formula = "c = sum_t alpha_t h_t + b"

    def __init__(self, *, time: int, hidden: int):
        super().__init__(time=time, hidden=hidden)
        # Begins as the mean of the states; alpha may leave [0, 1], since nothing holds it there.
        self.alpha = nn.Parameter(torch.full((time,), 1 / time))
        self.bias = nn.Parameter(torch.zeros(hidden))

    def weigh(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return the learned alpha, the same for every row of the batch."""
        return self.alpha.expand(len(states), -1)

    def offset(self) -> Tensor:
        """Return b."""
        return self.bias


class SoftmaxPooling(Pooling):
    """e_t = tanh(w . h_t + b_t), alpha = softmax(e), c = sum_t alpha_t h_t."""

    weight_formula = "alpha_t = softmax_t(e_t)"

    def __init__(self, *, time: int, hidden: int):
        super().__init__(time=time, hidden=hidden)
        self.readout = nn.Parameter(torch.empty(hidden))  # w
        self.bias = nn.Parameter(torch.zeros(time))  # b, one number a time step
        nn.init.normal_(self.readout, std=hidden**-0.5)

    def score(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return e_t = tanh(w . h_t + b_t)."""
        return torch.tanh(states @ self.readout + self.bias)

    def weigh(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch time"]:
        """Return alpha = softmax(e)."""
        return torch.softmax(self.score(states), dim=-1)


POOLINGS: dict[str, Callable[..., Pooling]] = {
    "lecture": LecturePooling,
    "softmax": SoftmaxPooling,
}
