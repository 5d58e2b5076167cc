from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from regard.attention.scores import (
    SCORES,
    AdditiveScore,
    AttentionScore,
    BilinearScore,
    DotScore,
    MultiHeadScore,
    ParameterisedScore,
)

HEADS = 2


def dot(score: AttentionScore, s: Tensor, h: Tensor) -> Tensor:
    return h @ s


def additive(score: AttentionScore, s: Tensor, h: Tensor) -> Tensor:
    assert isinstance(score, AdditiveScore)
    w, u, v = (part.weight for part in (score.query_weights, score.key_weights, score.readout))
    return v[0] @ torch.tanh(w @ s + u @ h)


def scaled_dot(score: AttentionScore, s: Tensor, h: Tensor) -> Tensor:
    return h @ s / len(h) ** 0.5


def bilinear(score: AttentionScore, s: Tensor, h: Tensor) -> Tensor:
    assert isinstance(score, BilinearScore)
    return h @ score.weights.weight @ s


def parameterised(score: AttentionScore, s: Tensor, h: Tensor) -> Tensor:
    assert isinstance(score, ParameterisedScore)
    return (score.key_weights.weight @ h) @ (score.query_weights.weight @ s)


def multi_head(score: AttentionScore, s: Tensor, h: Tensor) -> Tensor:
    assert isinstance(score, MultiHeadScore)
    keys, queries = (part.weight.chunk(HEADS) for part in (score.key_weights, score.query_weights))
    return torch.stack(
        [(k @ h) @ (q @ s) / len(k) ** 0.5 for k, q in zip(keys, queries, strict=True)]
    )


# A new score needs one row here: its formula for one query s and one key h, as the paper has it;
# with several heads it has one number for each.
FORMULAS: dict[str, Callable[[AttentionScore, Tensor, Tensor], Tensor]] = {
    "dot": dot,
    "scaled-dot": scaled_dot,
    "bilinear": bilinear,
    "additive": additive,
    "parameterised": parameterised,
    "multi-head": multi_head,
}


def test_every_score_has_a_formula() -> None:
    assert FORMULAS.keys() == SCORES.keys()


@pytest.mark.parametrize("name", SCORES)
def test_a_score_equals_its_formula(name: str) -> None:
    torch.manual_seed(1)
    score = SCORES[name](query_dim=6, key_dim=6, heads=HEADS)
    queries, keys = torch.randn(2, 3, 6), torch.randn(2, 5, 6)
    with torch.no_grad():
        scores = score(queries, score.prepare(keys))
        assert scores.shape[-2:] == (3, 5)
        for b in range(2):
            for i in range(3):
                for j in range(5):
                    expected = FORMULAS[name](score, queries[b, i], keys[b, j])
                    torch.testing.assert_close(scores[b, ..., i, j], expected)


@pytest.mark.parametrize("name", SCORES)
def test_gradients_reach_the_query_and_every_parameter(name: str) -> None:
    score = SCORES[name](query_dim=4, key_dim=4, heads=HEADS)
    queries, keys = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 5, 4)
    (score(queries, score.prepare(keys)).sum() + score.values(keys).sum()).backward()
    for parameter in (queries, *score.parameters()):
        assert parameter.grad is not None
        assert parameter.grad.abs().sum() > 0


def test_the_additive_score_takes_different_widths() -> None:
    score = AdditiveScore(query_dim=6, key_dim=4)
    assert score(torch.randn(2, 3, 6), score.prepare(torch.randn(2, 5, 4))).shape == (2, 3, 5)


def test_the_dot_score_names_widths_that_differ() -> None:
    with pytest.raises(ValueError, match=r"query_dim \(6\) must equal key_dim \(4\).*additive"):
        DotScore(query_dim=6, key_dim=4)


def test_a_score_without_formula_says_so() -> None:
    with pytest.raises(TypeError, match="AttentionScore gives no formula"):
        AttentionScore(query_dim=2, key_dim=2)(torch.ones(1, 1, 2), torch.ones(1, 1, 2))


def test_heads_must_share_the_width_evenly() -> None:
    with pytest.raises(ValueError, match=r"query_dim \(6\) must be divisible by heads \(4\)"):
        MultiHeadScore(query_dim=6, key_dim=6, heads=4)
