"""Exercises on recurrent cells, positions, losses, learning rates and graphs."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from regard.base.shapes import Tensor
from regard.lectures.exercises.exercise import Exercise, Function, WrongVersion
from regard.lectures.exercises.scores import draw


def gated_step(x: Tensor, state: Tensor, w_g: Tensor, w_c: Tensor) -> Tensor:
    """Return s_t = (1 - g) * s + g * tanh(W^c [s; x]) with g = sigmoid(W^g [s; x])."""
    both = torch.cat([state, x], dim=-1)
    gate = torch.sigmoid(both @ w_g.T)
    return (1 - gate) * state + gate * torch.tanh(both @ w_c.T)


GATED_STEP = Exercise(
    name="gated-step",
    title="One gate",
    topic="from gated units to attention",
    task="The single-gate unit: g = sigmoid(W^g [s; x]), s' = (1 - g) * s + g * tanh(W^c [s; x]). "
    "[s; x] is the state followed by the input.",
    starter='''import torch


def gated_step(x, state, w_g, w_c):
    """x: [batch, inputs], state: [batch, units], w_g and w_c: [units, units + inputs]
    -> the next state: [batch, units]"""
    raise NotImplementedError
''',
    reference=gated_step,
    cases=lambda: [(*draw(21, (3, 2), (3, 4), (4, 6), (4, 6)),)],
    wrong=(
        WrongVersion(
            lambda x, s, g, c: (
                torch.sigmoid(torch.cat([s, x], -1) @ g.T) * s
                + (1 - torch.sigmoid(torch.cat([s, x], -1) @ g.T))
                * torch.tanh(torch.cat([s, x], -1) @ c.T)
            ),
            "The gate is the wrong way round: an open gate (g = 1) takes the new candidate.",
        ),
        WrongVersion(
            lambda x, s, g, c: (
                s
                + torch.sigmoid(torch.cat([s, x], -1) @ g.T)
                * torch.tanh(torch.cat([s, x], -1) @ c.T)
            ),
            "The old state is kept whole: it fades by the factor (1 - g).",
        ),
        WrongVersion(
            lambda x, s, g, c: (
                (1 - torch.sigmoid(torch.cat([s, x], -1) @ g.T)) * s
                + torch.sigmoid(torch.cat([s, x], -1) @ g.T) * (torch.cat([s, x], -1) @ c.T)
            ),
            "The tanh of the candidate is missing: states can grow without limit.",
        ),
        WrongVersion(
            lambda x, s, g, c: (
                (1 - torch.sigmoid(torch.cat([x, s], -1) @ g.T)) * s
                + torch.sigmoid(torch.cat([x, s], -1) @ g.T)
                * torch.tanh(torch.cat([x, s], -1) @ c.T)
            ),
            "[s; x] is the state first and then the input, not the other way round.",
        ),
    ),
)


def lstm_step(
    x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the next visible state and memory cell of an LSTM."""
    i, f, g, o = (x @ w.T + h @ u.T + b).chunk(4, dim=-1)
    cell = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cell), cell


def _lstm(change: str) -> Function:
    def wrong(x: Tensor, h: Tensor, c: Tensor, w: Tensor, u: Tensor, b: Tensor) -> Any:
        i, f, g, o = (x @ w.T + h @ u.T + b).chunk(4, dim=-1)
        if change == "order":
            i, f = f, i
        candidate = torch.sigmoid(g) if change == "candidate" else torch.tanh(g)
        cell = torch.sigmoid(f) * c + torch.sigmoid(i) * candidate
        shown = cell if change == "output" else torch.tanh(cell)
        state = torch.sigmoid(o) * shown
        return (cell, state) if change == "returned" else (state, cell)

    return wrong


LSTM_STEP = Exercise(
    name="lstm-step",
    title="One step of an LSTM",
    topic="from gated units to attention",
    task="i, f, g, o = the four quarters of W x + U h + b, in this order. c' = sigmoid(f) * c + "
    "sigmoid(i) * tanh(g), h' = sigmoid(o) * tanh(c'). Return (h', c').",
    starter='''import torch


def lstm_step(x, h, c, w, u, b):
    """x: [batch, inputs], h and c: [batch, units], w: [4 units, inputs],
    u: [4 units, units], b: [4 units] -> (h', c')"""
    raise NotImplementedError
''',
    reference=lstm_step,
    cases=lambda: [(*draw(22, (3, 2), (3, 4), (3, 4), (16, 2), (16, 4), (16,)),)],
    wrong=(
        WrongVersion(_lstm("order"), "Input and forget gate are swapped: the order is i, f, g, o."),
        WrongVersion(
            _lstm("output"), "The tanh around the cell is missing: h' = sigmoid(o) * tanh(c')."
        ),
        WrongVersion(
            _lstm("candidate"), "The candidate g goes through tanh: it can be negative too."
        ),
        WrongVersion(_lstm("returned"), "The order of the results is (h', c')."),
    ),
)


def sinusoids(length: int, dim: int) -> Tensor:
    """Return sin and cos of position / 10000^(2i / dim) in turn."""
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


def _halves(length: int, dim: int) -> Tensor:
    both = sinusoids(length, dim)
    return torch.cat([both[:, 0::2], both[:, 1::2]], dim=1)


def _angles(length: int, dim: int, exponent: Callable[[Tensor], Tensor]) -> Tensor:
    position = torch.arange(length, dtype=torch.float64)[:, None]
    angle = position / 10_000 ** exponent(torch.arange(dim // 2, dtype=torch.float64))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


SINUSOIDS = Exercise(
    name="sinusoids",
    title="Positions as waves",
    topic="positions",
    task="PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d)) "
    "(Vaswani et al. 2017, section 3.5), positions from 0.",
    starter='''import torch


def sinusoids(length, dim):
    """-> [length, dim]; dim is even"""
    raise NotImplementedError
''',
    reference=sinusoids,
    cases=lambda: [(1, 2), (7, 8), (50, 6)],
    wrong=(
        WrongVersion(
            _halves,
            "All sines come before all cosines here (as some toolkits do); the paper puts them in "
            "turn: even columns sin, odd columns cos.",
        ),
        WrongVersion(
            lambda n, d: sinusoids(n + 1, d)[1:], "Positions are counted from 0, not from 1."
        ),
        WrongVersion(
            lambda n, d: _angles(n, d, lambda i: i / d),
            "The exponent is 2i / d, where i counts the pairs of columns: here it is i / d.",
        ),
        WrongVersion(
            lambda n, d: sinusoids(n, d).view(n, -1, 2).flip(-1).flatten(1),
            "Sine and cosine are swapped: even columns have the sine.",
        ),
    ),
)


def token_loss(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Return the mean cross-entropy of the tokens that the mask marks."""
    nats = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (nats * mask.flatten()).sum() / mask.sum()


def _nats(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.mT, targets, reduction="none")


TOKEN_LOSS = Exercise(
    name="token-loss",
    title="The loss of a batch",
    topic="attention in recurrent decoders",
    task="The mean of -log p(target) over all real tokens of the batch, in nats. Padding counts "
    "neither in the sum nor in the number. Each token counts the same, also in long sentences.",
    starter='''import torch


def token_loss(logits, targets, mask):
    """logits: [batch, time, vocab], targets: int [batch, time], mask: bool [batch, time]
    -> a tensor with one number"""
    raise NotImplementedError
''',
    reference=token_loss,
    cases=lambda: [
        (
            *draw(23, (2, 4, 5)),
            torch.tensor([[1, 2, 0, 0], [4, 3, 2, 1]]),
            torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]], dtype=torch.bool),
        )
    ],
    wrong=(
        WrongVersion(lambda x, y, m: _nats(x, y).mean(), "Padding is read: the mask is not used."),
        WrongVersion(
            lambda x, y, m: (_nats(x, y) * m).mean(),
            "Padding counts in the mean: divide by the number of real tokens, mask.sum().",
        ),
        WrongVersion(
            lambda x, y, m: ((_nats(x, y) * m).sum(1) / m.sum(1)).mean(),
            "This is the mean of the sentences' means: tokens of short sentences count more.",
        ),
        WrongVersion(
            lambda x, y, m: (_nats(x, y) * m).sum(), "This is the sum: divide by mask.sum()."
        ),
        WrongVersion(
            lambda x, y, m: -(x.gather(2, y[..., None])[..., 0] * m).sum() / m.sum(),
            "The logits are taken for log-probabilities: the log-softmax is missing.",
        ),
    ),
)


def warmup_rate(step: int, dim: int, warmup: int) -> float:
    """Return d^-0.5 * min(step^-0.5, step * warmup^-1.5)."""
    return float(dim**-0.5 * min(step**-0.5, step * warmup**-1.5))


WARMUP_RATE = Exercise(
    name="warmup-rate",
    title="Warm-up, then decay",
    topic="self-attention and the Transformer",
    task="lrate = d^-0.5 * min(step^-0.5, step * warmup^-1.5) (Vaswani et al. 2017, eq. 3); steps "
    "are counted from 1.",
    starter='''def warmup_rate(step, dim, warmup):
    """-> the learning rate of a step, a number"""
    raise NotImplementedError
''',
    reference=warmup_rate,
    cases=lambda: [(1, 4, 10), (5, 4, 10), (10, 4, 10), (11, 4, 10), (90, 16, 30)],
    wrong=(
        WrongVersion(
            lambda s, d, w: d**-0.5 * max(s**-0.5, s * w**-1.5),
            "It is the smaller of the two: the rate rises first and falls after the warm-up.",
        ),
        WrongVersion(lambda s, d, w: min(s**-0.5, s * w**-1.5), "The factor d^-0.5 is missing."),
        WrongVersion(lambda s, d, w: d**-0.5 * s**-0.5, "The warm-up is missing."),
    ),
)


def gat_layer(h: Tensor, edges: Tensor, w: Tensor, a: Tensor) -> Tensor:
    """Return the weighted sums of a graph attention head, before any nonlinearity."""
    return _graph_attention(h, edges, w, a)


def _graph_attention(h: Tensor, edges: Tensor, w: Tensor, a: Tensor, change: str = "") -> Tensor:
    source, target = edges
    projected = h @ w.T
    first, second = (source, target) if change == "sides" else (target, source)
    scores = torch.cat([projected[first], projected[second]], dim=-1) @ a
    if change != "slope":
        scores = F.leaky_relu(scores, 0.2)
    if change == "all":
        weights = torch.softmax(scores, 0)
    else:
        group = source if change == "direction" else target
        powers = scores.exp()
        sums = torch.zeros(len(h)).index_add(0, group, powers)
        weights = powers / sums[group]
    values = h[source] if change == "values" and h.shape == projected.shape else projected[source]
    return torch.zeros_like(projected).index_add(0, target, weights[:, None] * values)


def _graph(change: str) -> Function:
    return lambda h, edges, w, a: _graph_attention(h, edges, w, a, change)


EDGES = [[0, 1, 2, 2, 3, 3, 0, 1], [0, 1, 2, 0, 3, 1, 1, 2]]
GAT_LAYER = Exercise(
    name="gat-layer",
    title="Attention on a graph",
    topic="graphs",
    task="alpha_ij = softmax over the neighbours j of i of LeakyReLU(a^T [W h_i || W h_j]) with "
    "slope 0.2, h'_i = sum_j alpha_ij W h_j (Velickovic et al. 2018, eqs. 1 to 4, one head, no "
    "nonlinearity at the end). An edge j -> i lets i attend to j.",
    starter='''import torch


def gat_layer(h, edges, w, a):
    """h: [nodes, inputs], edges: int [2, edges] (row 0: j, row 1: i), w: [units, inputs],
    a: [2 units] -> [nodes, units]; a node without incoming edges gets zeros"""
    raise NotImplementedError
''',
    reference=gat_layer,
    cases=lambda: [
        (h, torch.tensor(EDGES), w, a)
        for h, w, a in (draw(24, (4, 3), (5, 3), (10,)), draw(25, (4, 4), (4, 4), (8,)))
    ],
    wrong=(
        WrongVersion(
            _graph("all"),
            "The softmax runs over all edges: it runs over the neighbours of each node i alone.",
        ),
        WrongVersion(
            _graph("direction"),
            "The softmax is grouped by the wrong end: the weights of the edges that come into i "
            "must sum to 1.",
        ),
        WrongVersion(_graph("slope"), "The LeakyReLU of the scores is missing."),
        WrongVersion(
            _graph("sides"), "The two halves of a are swapped: [W h_i || W h_j], the target first."
        ),
    ),
)

EXERCISES = (GATED_STEP, LSTM_STEP, TOKEN_LOSS, WARMUP_RATE, SINUSOIDS, GAT_LAYER)
