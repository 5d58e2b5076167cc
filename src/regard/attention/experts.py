"""A mixture of experts: a gate scores small networks for each token, and only the best compute.

    scores = x W_g  ->  weights = softmax, all but the best k zero  ->  context = sum_e w_e f_e(x)

These are the three steps of attention, with networks in the place of values.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.probe import Probe
from regard.base.shapes import Bool, Float, Tensor
from regard.compute.device import uses_hand_kernels

ROWS = 32  # An expert computes a multiple of so many rows, if it has as many tokens.


class Routed(NamedTuple):
    """How a gate rates the experts for each token, and the weights; 0 for those not chosen."""

    scores: Float[Tensor, "tokens experts"]
    weights: Float[Tensor, "tokens experts"]


class ExpertGate(nn.Module):
    """Chooses k of the experts for each token, and how much each of them counts.

    "softmax" (Fedus et al. 2022, section 2.1): the weights are the probabilities of the chosen, so
    that even a single one tells the gate how good it was. "noisy" (Shazeer et al. 2017, eq. 3 to
    5): noise of a learned size is added to the scores in training, and the softmax is over the
    chosen alone, of which there must be two.
    """

    def __init__(
        self,
        width: int,
        *,
        experts: int,
        chosen: int = 1,
        kind: str = "softmax",
        bias: bool = False,
    ):
        """With a `bias`, overloaded experts are chosen less (see `MixtureOfExperts.cost`)."""
        super().__init__()
        if not 1 <= chosen <= experts:
            raise ValueError(
                f"experts_per_token ({chosen}) must be between 1 and experts ({experts})"
            )
        if kind == "noisy" and chosen == 1 and experts > 1:
            raise ValueError(
                'expert_gate = "noisy" needs experts_per_token of at least 2: the weight of a '
                'single expert is always 1, from which the gate learns nothing; use "softmax"'
            )
        self.chosen = chosen
        self.scores = nn.Linear(width, experts, bias=False)  # W_g
        self.noise = nn.Linear(width, experts, bias=False) if kind == "noisy" else None
        self.bias = nn.Parameter(torch.zeros(experts)) if bias else None
        nn.init.normal_(self.scores.weight, std=0.1 / math.sqrt(width))  # nearly fair at first
        if self.noise is not None:
            nn.init.zeros_(self.noise.weight)

    def forward(self, tokens: Float[Tensor, "tokens width"]) -> Routed:
        """Return scores and weights of the experts for each token."""
        scores = self.scores(tokens)
        if self.noise is not None and self.training:
            scores = scores + torch.randn_like(scores) * F.softplus(self.noise(tokens))
        rated = scores if self.bias is None else scores + self.bias.detach()
        best = rated.topk(self.chosen, dim=-1).indices
        kept = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, best, True)
        if self.noise is not None:
            weights = scores.masked_fill(~kept, -torch.inf).softmax(dim=-1)
        else:
            weights = scores.softmax(dim=-1) * kept
        return Routed(scores, weights)


class MixtureOfExperts(nn.Module):
    """sum_e w_e f_e(x) over the chosen experts, at every position alone (Shazeer et al. 2017).

    In training, an expert with more tokens than its capacity leaves the last ones unchanged: they
    pass by it on their residual. There is no limit otherwise, so an output never depends on its
    neighbours.
    """

    def __init__(
        self,
        experts: Sequence[nn.Module],
        *,
        gate: ExpertGate,
        capacity: float | None = None,
        balance: float = 0.0,
        z: float = 0.0,
    ):
        """`capacity` is a multiple of a fair share; `balance` and `z` weigh the parts of `cost`."""
        super().__init__()
        if capacity is not None and capacity <= 0:
            raise ValueError(f"expert_capacity ({capacity}) must be above 0")
        self.experts = nn.ModuleList(experts)
        self.gate = gate
        self.capacity = capacity
        self.balance = balance
        self.z = z

    def forward(
        self,
        features: Float[Tensor, "batch time width"],
        *,
        real: Bool[Tensor, "batch time"] | None = None,
        probe: Probe | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """Return the change at each position; those that are not `real` go to no expert."""
        tokens = features.flatten(0, 1)
        scores, weights = self.gate(tokens)
        if real is not None:
            weights = weights * real.flatten()[:, None]
        if probe is not None:
            shape = (*features.shape[:2], len(self.experts))
            probe("gate scores", scores.view(shape))
            weights = probe("gate", weights.view(shape)).flatten(0, 1)
            if self.training:
                probe("gate cost", self.cost(scores, weights))
        return self._mixed(tokens, weights).view(features.shape)

    def cost(
        self, scores: Float[Tensor, "tokens experts"], weights: Float[Tensor, "tokens experts"]
    ) -> Float[Tensor, ""]:
        """Return what unequal loads and large scores cost, summed over the tokens.

        Balance: E sum_e f_e P_e, with f_e the share of tokens and P_e the mean probability of an
        expert (Fedus et al. 2022, eq. 4); it is 1 if all are equal. Scores: the mean of
        (log sum_e exp h_e)^2 (Zoph et al. 2022, eq. 5). The gradient of the gate's bias is how
        far an expert's share is above the fair one: training lowers it (after Wang et al. 2024).
        """
        routed = weights.detach() > 0
        here = routed.any(dim=1)  # without padding
        scores, routed = scores[here], routed[here].to(scores.dtype)
        experts, count = scores.shape[1], len(scores)
        total = scores.new_zeros(())
        if not count:
            return total
        shares = routed.sum(dim=0) / routed.sum()
        if self.balance:
            total = total + self.balance * experts * (shares * scores.softmax(dim=-1).mean(0)).sum()
        if self.z:
            total = total + self.z * torch.logsumexp(scores, dim=-1).square().mean()
        if self.gate.bias is not None:
            excess = (self.gate.bias * (shares - 1 / experts)).sum()
            total = total + excess - excess.detach()  # a gradient, and no loss
        return total * count

    def _mixed(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """Return the mixture; each expert computes its tokens together."""
        expert, token = weights.T.nonzero(as_tuple=True)  # ordered by expert, then by token
        counts = torch.bincount(expert, minlength=len(self.experts)).tolist()
        if self.training and self.capacity is not None:
            most = math.ceil(self.capacity * sum(counts) / len(counts))
            parts = torch.split(torch.arange(len(token), device=token.device), counts)
            chosen = torch.cat([part[:most] for part in parts])
            expert, token = expert[chosen], token[chosen]
            counts = [min(count, most) for count in counts]
        inputs = torch.split(tokens.index_select(0, token), counts)
        outputs = [
            _in_whole_steps(each, part) for each, part in zip(self.experts, inputs, strict=True)
        ]
        weighted = torch.cat(outputs) * weights[token, expert][:, None]
        return torch.zeros_like(tokens).index_add(0, token, weighted.to(tokens.dtype))


def _in_whole_steps(expert: nn.Module, tokens: Tensor) -> Tensor:
    """Return what an expert makes of its tokens; on a CPU of some rows more.

    oneDNN prepares a kernel for every number of rows. Of a few numbers it keeps them all.
    """
    count = len(tokens)
    if count < ROWS or not uses_hand_kernels(tokens):
        found: Tensor = expert(tokens)
        return found
    whole: Tensor = expert(F.pad(tokens, (0, 0, 0, -count % ROWS)))
    return whole[:count]
