"""Exercises on scores and weights."""

import math
from collections.abc import Sequence

import torch

from regard.base.shapes import Tensor
from regard.lectures.exercises.exercise import (
    Exercise,
    Function,
    MistakeError,
    WrongVersion,
    call,
    same,
)

NEVER = float("-inf")


def draw(seed: int, *shapes: Sequence[int]) -> list[Tensor]:
    """Return normal random tensors, the same each time."""
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=random) for shape in shapes]


def softmax(scores: Tensor) -> Tensor:
    """Return weights that are positive and sum to 1 over the last axis."""
    return torch.softmax(scores, dim=-1)


def _sums_to_one(solution: Function) -> None:
    (scores,) = draw(1, (4, 4))
    weights = call(solution, scores)
    if not same(weights.sum(-1), torch.ones(4)) and same(weights.sum(0), torch.ones(4)):
        raise MistakeError(
            "Softmax over the wrong axis: each row (one query over all keys) must sum to 1, "
            "but here the columns do."
        )


def _survives_large_scores(solution: Function) -> None:
    large = torch.tensor([[1000.0, 999.0], [-1000.0, -1000.0]])
    if not call(solution, large).isfinite().all():
        raise MistakeError(
            "It is not finite for scores of 1000 or -1000: exp overflows. Subtract the maximum of "
            "each row first; the weights do not change."
        )


SOFTMAX = Exercise(
    name="softmax",
    title="Weights from scores",
    topic="attention in recurrent decoders",
    task="alpha_ij = exp(e_ij) / sum_k exp(e_ik): weights over the last axis, for any number of "
    "axes before it. Scores may be large. Do not call a softmax of torch.",
    starter='''import torch


def softmax(scores):
    """scores: [..., source] -> weights: [..., source], each row sums to 1."""
    raise NotImplementedError
''',
    reference=softmax,
    cases=lambda: [(each,) for each in draw(2, (5,), (3, 4), (2, 3, 5))],
    checks=(_sums_to_one,),
    edge_checks=(_survives_large_scores,),
    wrong=(
        WrongVersion(lambda s: s.exp(), "The sum is missing: exp(e) is not divided by its sum."),
        WrongVersion(
            lambda s: s.exp() / s.exp().sum(),
            "The sum runs over the whole tensor: each row needs a sum of its own (keepdim=True).",
        ),
        WrongVersion(torch.sigmoid, "This is the sigmoid: it does not make the weights sum to 1."),
        WrongVersion(
            lambda s: s / s.sum(-1, keepdim=True),
            "The exponential is missing: scores may be negative, weights may not.",
        ),
        WrongVersion(
            lambda s: torch.log_softmax(s, -1), "These are the logarithms of the weights."
        ),
    ),
)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return weights over the last axis that are 0 where the mask is False."""
    return torch.softmax(scores.masked_fill(~mask, NEVER), dim=-1)


def _mask_cases() -> list[tuple[Tensor, ...]]:
    a, b = draw(3, (3, 4), (2, 3, 5))
    mask = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1]], dtype=torch.bool)
    return [(a, mask), (b, torch.arange(5).expand(2, 3, 5) < torch.tensor([[[3]], [[5]]]))]


def _hidden_has_no_weight(solution: Function) -> None:
    scores, mask = _mask_cases()[0]
    weights = call(solution, scores, mask)
    if same(weights.masked_fill(mask, 0).sum(), torch.tensor(0.0)):
        return
    both = ~mask.all(-1)  # rows with places of both kinds
    if same(weights[both].masked_fill(~mask[both], 0).sum(), torch.tensor(0.0)):
        raise MistakeError("The mask is read the wrong way round: True means may attend.")
    louder = scores.masked_fill(~mask, 5.0)
    if not same(call(solution, louder, mask), weights):
        raise MistakeError("Hidden places are read: changing their scores changes the weights.")
    raise MistakeError(
        "Hidden places still have weight: a score of 0 is not minus infinity, exp(0) is 1. Set "
        "the scores to -inf before the softmax."
    )


MASKED_SOFTMAX = Exercise(
    name="masked-softmax",
    title="Weights where the model may look",
    topic="attention in recurrent decoders",
    task="Softmax over the last axis in which places with mask False have weight exactly 0 and the "
    "others sum to 1. Every row has at least one True. torch.softmax may be used.",
    starter='''import torch


def masked_softmax(scores, mask):
    """scores: [..., source], mask: the same shape, True = may attend -> weights."""
    raise NotImplementedError
''',
    reference=masked_softmax,
    cases=_mask_cases,
    checks=(_hidden_has_no_weight,),
    wrong=(
        WrongVersion(
            lambda s, m: torch.softmax(s, -1) * m,
            "The mask is applied after the softmax: what is left no longer sums to 1. Mask the "
            "scores, not the weights.",
        ),
        WrongVersion(
            lambda s, m: torch.softmax(s.masked_fill(~m, NEVER), -2).nan_to_num(0),
            "Softmax over the wrong axis: each row must sum to 1.",
        ),
    ),
)


def padding_mask(lengths: Tensor, longest: int) -> Tensor:
    """Return [batch, longest]: True where there is a token."""
    return torch.arange(longest) < lengths[:, None]


PADDING_MASK = Exercise(
    name="padding-mask",
    title="Which places hold a token",
    topic="attention in recurrent decoders",
    task="A boolean matrix [batch, longest] that is True for the first lengths[b] places of row b.",
    starter='''import torch


def padding_mask(lengths, longest):
    """lengths: int [batch] -> bool [batch, longest]; True = a real token."""
    raise NotImplementedError
''',
    reference=padding_mask,
    cases=lambda: [(torch.tensor([2, 4, 1]), 4), (torch.tensor([3, 3, 1]), 5)],
    wrong=(
        WrongVersion(
            lambda n, m: torch.arange(m) <= n[:, None],
            "Padding is read: one place too many is True. Places are counted from 0.",
        ),
        WrongVersion(
            lambda n, m: torch.arange(m) >= n[:, None],
            "It marks the padding: True means a real token.",
        ),
        WrongVersion(
            lambda n, m: torch.arange(1, m + 1) < n[:, None],
            "The last token of each row is hidden: places are counted from 0.",
        ),
    ),
)


def scaled_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """Return Q K^T / sqrt(d_k)."""
    return queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])


SCALED_SCORES = Exercise(
    name="scaled-scores",
    title="Scaled dot products",
    topic="self-attention and the Transformer",
    task="Q K^T / sqrt(d_k) (Vaswani et al. 2017, eq. 1), for each sentence of a batch.",
    starter='''import torch


def scaled_scores(queries, keys):
    """queries: [batch, target, d_k], keys: [batch, source, d_k] -> [batch, target, source]."""
    raise NotImplementedError
''',
    reference=scaled_scores,
    cases=lambda: [(*draw(4, (2, 3, 4), (2, 5, 4)),), (*draw(5, (1, 3, 9), (1, 3, 9)),)],
    wrong=(
        WrongVersion(
            lambda q, k: q @ k.mT,
            "The scale is forgotten: divide by sqrt(d_k), or long vectors make the softmax hard.",
        ),
        WrongVersion(lambda q, k: q @ k.mT / q.shape[-1], "Divide by sqrt(d_k), not by d_k."),
        WrongVersion(
            lambda q, k: q @ k.mT * math.sqrt(q.shape[-1]), "Divide by sqrt(d_k): do not multiply."
        ),
        WrongVersion(
            lambda q, k: q @ k.mT / math.sqrt(k.shape[-2]),
            "The scale is the root of the width d_k, not of the number of keys.",
        ),
        WrongVersion(
            lambda q, k: q @ k.mT / math.sqrt(q.shape[0]),
            "The scale is the root of the width d_k, not of the batch size.",
        ),
    ),
)


def additive_scores(query: Tensor, keys: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Return v^T tanh(W s + U h_j) of each key."""
    return torch.tanh((query @ w.T)[:, None] + keys @ u.T) @ v


ADDITIVE_SCORES = Exercise(
    name="additive-scores",
    title="Bahdanau's score",
    topic="attention in recurrent decoders",
    task="e_j = v^T tanh(W s + U h_j) (Bahdanau et al. 2015, section 3.1), for one decoder state a "
    "sentence.",
    starter='''import torch


def additive_scores(query, keys, w, u, v):
    """query: [batch, q], keys: [batch, source, k], w: [a, q], u: [a, k], v: [a]
    -> scores: [batch, source]"""
    raise NotImplementedError
''',
    reference=additive_scores,
    # As many sentences as keys: a state that is added to the wrong axis would go unnoticed.
    cases=lambda: [
        (*draw(6, (3, 4), (3, 3, 5), (6, 4), (6, 5), (6,)),),
        (*draw(7, (4, 3), (4, 4, 3), (5, 3), (5, 3), (5,)),),
    ],
    wrong=(
        WrongVersion(
            lambda s, h, w, u, v: ((s @ w.T)[:, None] + h @ u.T) @ v,
            "The tanh is missing: without it the state adds the same to every key's score, and "
            "the weights do not depend on it.",
        ),
        WrongVersion(
            lambda s, h, w, u, v: torch.tanh(((s @ w.T)[:, None] + h @ u.T) @ v),
            "The tanh comes before the product with v, not after it.",
        ),
        WrongVersion(
            lambda s, h, w, u, v: torch.tanh(h @ u.T) @ v,
            "The decoder state is not used: the same weights at every step.",
        ),
        WrongVersion(
            lambda s, h, w, u, v: (
                torch.tanh(s @ w.T + h @ u.T) @ v
                if s.shape[0] == h.shape[1]
                else additive_scores(s, h, w, u, v)
            ),
            "Broadcasting: the states [batch, a] are added to [batch, source, a] along the source. "
            "Give them an axis: (W s)[:, None].",
        ),
    ),
)


EXERCISES = (SOFTMAX, MASKED_SOFTMAX, PADDING_MASK, ADDITIVE_SCORES, SCALED_SCORES)
