"""The ladder from gated recurrence to attention, one change a rung.

0  h_t = u_t h_{t-1} + (1 - u_t) h~_t      a gated recurrence, which is a weighted sum already
1  h_t = sum_i alpha_i h~_i                free weights, alpha_i ~ exp ATT(h~_i, x_t)
2  h_t = sum_i alpha_i f(x_i)              free candidates: nothing waits for the step before
3  h_t = sum_i alpha_i V f(x_i)            keys and values, alpha_i ~ exp ATT(K f(x_i), Q f(x_t))
4  several of them side by side            heads
5  f(x_i) + p(i)                           positions

Every rung reads the items up to t and returns h_t, with the weights of the items behind it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from regard.attention.lookup import masked_softmax
from regard.attention.masks import causal_mask
from regard.attention.positions import LearnedPositions, Sinusoids
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Tensor


def gated_recurrence(
    gates: Float[Tensor, "batch time hidden"],
    candidates: Float[Tensor, "batch time hidden"],
    initial: Float[Tensor, "batch hidden"],
) -> Float[Tensor, "batch time hidden"]:
    """Return h_t = u_t h_{t-1} + (1 - u_t) h~_t, step by step."""
    state, states = initial, []
    for time in range(gates.shape[1]):
        state = gates[:, time] * state + (1 - gates[:, time]) * candidates[:, time]
        states.append(state)
    return torch.stack(states, dim=1)


def unrolled_weights(
    gates: Float[Tensor, "batch time hidden"],
) -> Float[Tensor, "batch target source hidden"]:
    """Return the weight of h~_i in h_t, (prod_{j=i+1..t} u_j)(1 - u_i), for every t and i."""
    earlier = causal_mask(gates.shape[1], device=gates.device)  # [target, source]: i <= t
    later = (earlier & ~earlier.T)[None, :, :, None]  # i < t
    # Products and not sums of logarithms, which are -inf - (-inf) behind a gate of exactly 0.
    factors = gates[:, :, None].where(later, torch.ones_like(gates)[:, None])
    between = factors.cumprod(dim=1)  # [batch, target, source, hidden]
    return between.where(earlier[None, :, :, None], 0.0) * (1 - gates)[:, None]


def unrolled_sum(
    gates: Float[Tensor, "batch time hidden"],
    candidates: Float[Tensor, "batch time hidden"],
    initial: Float[Tensor, "batch hidden"],
) -> Float[Tensor, "batch time hidden"]:
    """Return h_t as a sum: sum_i (prod_{j=i+1..t} u_j)(1-u_i) h~_i + (prod_j u_j) h_0."""
    from_candidates = torch.einsum("btsh,bsh->bth", unrolled_weights(gates), candidates)
    return from_candidates + gates.cumprod(dim=1) * initial[:, None]


class GatedRung(nn.Module):
    """Rung 0: u_t = sigmoid(W x_t + U h_{t-1} + b), h~_t = tanh(W' x_t + U' h_{t-1} + b').

    A GRU without reset gate (Cho et al. 2014, eq. 7-8).
    """

    def __init__(self, *, input_dim: int, hidden: int):
        super().__init__()
        self.of_input = nn.Linear(input_dim, 2 * hidden)
        self.of_state = nn.Linear(hidden, 2 * hidden, bias=False)
        self.hidden = hidden

    def forward(
        self, inputs: Float[Tensor, "batch time input_dim"], *, with_weights: bool = False
    ) -> Attended:
        """Return h_t; the weight of an item is that of the unrolled sum, averaged over units."""
        state = inputs.new_zeros(len(inputs), self.hidden)
        projected = self.of_input(inputs)
        states, gates = [], []
        for time in range(inputs.shape[1]):
            gate, candidate = (projected[:, time] + self.of_state(state)).chunk(2, dim=-1)
            gate = torch.sigmoid(gate)
            state = gate * state + (1 - gate) * torch.tanh(candidate)
            states.append(state)
            gates.append(gate)
        weights = unrolled_weights(torch.stack(gates, 1)).mean(-1) if with_weights else None
        return Attended(torch.stack(states, dim=1), weights)


class AdditiveMatch(nn.Module):
    """ATT(k, x) = v^T tanh(W k + U x) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, *, key_dim: int, query_dim: int, hidden: int):
        super().__init__()
        self.of_key = nn.Linear(key_dim, hidden)
        self.of_query = nn.Linear(query_dim, hidden, bias=False)
        self.readout = nn.Linear(hidden, 1, bias=False)

    def forward(
        self,
        keys: Float[Tensor, "batch source key_dim"],
        query: Float[Tensor, "batch target query_dim"],
    ) -> Float[Tensor, "batch target source"]:
        """Return a score for every query and key."""
        both = self.of_query(query)[:, :, None] + self.of_key(keys)[:, None]
        scores: Tensor = self.readout(torch.tanh(both))
        return scores.squeeze(-1)


class FreeWeightsRung(nn.Module):
    """Rung 1: h_t = sum_i alpha_i h~_i, alpha_i ~ exp ATT(h~_i, x_t); h~_t still needs h_{t-1}."""

    def __init__(self, *, input_dim: int, hidden: int):
        super().__init__()
        self.of_input = nn.Linear(input_dim, hidden)
        self.of_state = nn.Linear(hidden, hidden, bias=False)
        self.match = AdditiveMatch(key_dim=hidden, query_dim=input_dim, hidden=hidden)
        self.hidden = hidden

    def forward(
        self, inputs: Float[Tensor, "batch time input_dim"], *, with_weights: bool = False
    ) -> Attended:
        """Return h_t and, on request, alpha."""
        time = inputs.shape[1]
        state = inputs.new_zeros(len(inputs), self.hidden)
        candidates: list[Tensor] = []
        states, rows = [], []
        for now in range(time):
            candidate = torch.tanh(self.of_input(inputs[:, now]) + self.of_state(state))
            candidates.append(candidate)
            memory = torch.stack(candidates, dim=1)  # h~_1 .. h~_t
            alpha = torch.softmax(self.match(memory, inputs[:, now : now + 1]), dim=-1)
            state = torch.bmm(alpha, memory)[:, 0]
            states.append(state)
            rows.append(nn.functional.pad(alpha[:, 0], (0, time - now - 1)))
        return Attended(torch.stack(states, 1), torch.stack(rows, 1) if with_weights else None)


class FreeCandidatesRung(nn.Module):
    """Rung 2: h_t = sum_i alpha_i f(x_i), alpha_i ~ exp ATT(f(x_i), x_t), f(x) = tanh(W x + b)."""

    def __init__(self, *, input_dim: int, hidden: int, causal: bool = True):
        super().__init__()
        self.features = nn.Linear(input_dim, hidden)
        self.match = AdditiveMatch(key_dim=hidden, query_dim=input_dim, hidden=hidden)
        self.causal = causal

    def forward(
        self, inputs: Float[Tensor, "batch time input_dim"], *, with_weights: bool = False
    ) -> Attended:
        """Return h_t for all t at once and, on request, alpha."""
        items = torch.tanh(self.features(inputs))
        mask = _mask(inputs, causal=self.causal)
        alpha = masked_softmax(self.match(items, inputs), mask)
        return Attended(torch.bmm(alpha, items), alpha if with_weights else None)


class KeyValueRung(nn.Module):
    """Rungs 3 to 5: h_t = sum_i alpha_i V f(x_i), alpha_i ~ exp (K f(x_i) . Q f(x_t)) / sqrt(d).

    With several heads each has its own K, Q and V and a part of the width; with positions f(x_i)
    becomes f(x_i) + p(i).
    """

    def __init__(
        self,
        *,
        input_dim: int,
        hidden: int,
        heads: int = 1,
        positions: Sinusoids | LearnedPositions | None = None,
        causal: bool = True,
    ):
        super().__init__()
        if hidden % heads:
            raise ValueError(f"hidden ({hidden}) must be divisible by heads ({heads})")
        self.features = nn.Linear(input_dim, hidden)
        self.query, self.key, self.value = (nn.Linear(hidden, hidden, bias=False) for _ in range(3))
        self.heads = heads
        self.positions = positions
        self.causal = causal

    def forward(
        self, inputs: Float[Tensor, "batch time input_dim"], *, with_weights: bool = False
    ) -> Attended:
        """Return h_t for all t at once; the weights are the mean over the heads."""
        time = inputs.shape[1]
        items = torch.tanh(self.features(inputs))
        if self.positions is not None:
            items = items + self.positions(time, dtype=items.dtype)
        query, key, value = (
            part(items).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )  # each [batch, heads, time, head_dim]
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
        alpha = masked_softmax(scores, _mask(inputs, causal=self.causal))
        context = (alpha @ value).transpose(1, 2).flatten(2)
        return Attended(context, alpha.mean(dim=1) if with_weights else None)


@dataclass(frozen=True)
class Rung:
    """A rung: its number, what is new in it, its formula, and how to build it."""

    number: int
    name: str
    formula: str
    build: Callable[..., nn.Module]


def _with_positions(
    *, input_dim: int, hidden: int, heads: int, learned: bool, max_length: int = 64
) -> nn.Module:
    table = LearnedPositions(hidden, max_length=max_length) if learned else Sinusoids(hidden)
    return KeyValueRung(input_dim=input_dim, hidden=hidden, heads=heads, positions=table)


def _mask(
    inputs: Float[Tensor, "batch time input_dim"], *, causal: bool
) -> Bool[Tensor, "time time"]:
    every = causal_mask(inputs.shape[1], device=inputs.device)
    return every if causal else torch.ones_like(every)


HEADS = 4
RUNGS = (
    Rung(0, "gated recurrence", "h_t = u_t h_{t-1} + (1-u_t) h~_t", GatedRung),
    Rung(1, "free weights", "h_t = sum_i alpha_i h~_i", FreeWeightsRung),
    Rung(2, "free candidates", "h_t = sum_i alpha_i f(x_i)", FreeCandidatesRung),
    Rung(3, "keys and values", "h_t = sum_i alpha_i V f(x_i)", KeyValueRung),
    Rung(4, "several heads", f"{HEADS} of them, side by side", partial(KeyValueRung, heads=HEADS)),
    Rung(
        5,
        "positions (sinusoidal)",
        "f(x_i) + p(i), p fixed",
        partial(_with_positions, heads=HEADS, learned=False),
    ),
    Rung(
        5,
        "positions (learned)",
        "f(x_i) + p(i), p learned",
        partial(_with_positions, heads=HEADS, learned=True),
    ),
)
