"""Patterns of pairs: equal to their equations in numpy, and what holds for every input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.hashing import HashedPattern
from regard.attention.masks import Visibility
from regard.attention.multihead import MultiHeadAttention
from regard.attention.patterns import AdaptiveSpan, Pattern, SparsePattern
from regard.attention.places import PositionOptions
from regard.attention.positions import RelativePositions
from regard.attention.scores import SCORES
from regard.compute.kernels import plain_attention

HEADS, DIM = 2, 4
PATTERNS = ["strided", "fixed", "span", "hashed"]


def pattern(name: str) -> Pattern:
    if name == "span":
        made = AdaptiveSpan(HEADS, most=12, ramp=2)
        torch.nn.init.normal_(made.shares, std=1.0)
        return made.double()
    if name == "hashed":
        return HashedPattern(DIM, buckets=4, rounds=3, chunk=3).double()
    return SparsePattern(name, stride=4, summary=2)


def heads(time: int, *, batch: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(time)
    shape = (3, batch, HEADS, time, DIM)
    query, keys, values = torch.randn(shape, dtype=torch.float64).requires_grad_().unbind(0)
    return query, keys, values


def view(time: int, *, causal: bool, real: Tensor | None = None) -> Visibility:
    return Visibility(
        target=time, source=time, dtype=torch.float64, device=torch.device("cpu"),
        real=real, causal=causal,
    )  # fmt: skip


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def seen_by(name: str, i: int, time: int, *, causal: bool) -> list[int]:
    """A_i of Child et al. 2019, section 4.3, with l = 4 and c = 2."""
    every = range(i + 1) if causal else range(time)
    if name == "strided":
        return [j for j in every if abs(i - j) <= 4 or abs(i - j) % 4 == 0]
    return [j for j in every if i // 4 == j // 4 or j % 4 >= 2]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", ["strided", "fixed"])
@pytest.mark.parametrize("time", [3, 4, 13, 16])
def test_sparse_patterns_equal_their_equations(name: str, causal: bool, time: int) -> None:
    query, keys, values = heads(time, batch=1)
    found = pattern(name).attend(query, keys, values, view(time, causal=causal)).context
    for head in range(HEADS):
        q, k, v = (part[0, head].detach().numpy() for part in (query, keys, values))
        for i in range(time):
            seen = seen_by(name, i, time, causal=causal)
            expected = softmax(k[seen] @ q[i] / np.sqrt(DIM)) @ v[seen]
            np.testing.assert_allclose(found[0, head, i].detach().numpy(), expected, rtol=1e-9)


def test_a_learned_span_equals_its_equations() -> None:
    time = 40
    query, keys, values = heads(time, batch=1)
    span = pattern("span")
    assert isinstance(span, AdaptiveSpan)
    found = span.attend(query, keys, values, view(time, causal=True)).context.detach().numpy()
    z = 12 / (1 + np.exp(-span.shares.detach().numpy()))
    for head in range(HEADS):
        q, k, v = (part[0, head].detach().numpy() for part in (query, keys, values))
        for i in range(time):
            j = np.arange(i + 1)
            mask = np.clip((2 + z[head] - (i - j)) / 2, 0, 1)
            raised = mask * np.exp(k[j] @ q[i] / np.sqrt(DIM))
            np.testing.assert_allclose(found[0, head, i], raised / raised.sum() @ v[j], rtol=1e-9)
    assert span.cost.item() == 0.0
    dear = AdaptiveSpan(HEADS, most=12, cost=0.5)
    assert dear.cost.item() == pytest.approx(0.5 * 12 / (1 + np.exp(2.0)))


@pytest.mark.parametrize("causal", [True, False])
def test_hashed_attention_equals_its_equations(causal: bool) -> None:
    """o_i over the union of the rounds, with keys that are unit queries (Kitaev et al. 2020)."""
    time, chunk = 26, 3
    query, _, values = heads(time, batch=1)
    hashed = pattern("hashed")
    assert isinstance(hashed, HashedPattern)
    keys = F.normalize(query, dim=-1)
    found = hashed.attend(query, keys, values, view(time, causal=causal)).context.detach().numpy()
    for head in range(HEADS):
        q, v = (part[0, head].detach().numpy() for part in (query, values))
        k = q / np.linalg.norm(q, axis=1, keepdims=True)
        places = []
        for rotation in hashed.rotations.numpy():
            turned = np.concatenate([k @ rotation, -(k @ rotation)], axis=1)
            bucket = turned.argmax(axis=1)
            rank = [int((bucket[:i] == bucket[i]).sum()) for i in range(time)]
            places.append((bucket, np.array(rank) // chunk))
        for i in range(time):
            seen = {
                j
                for bucket, part in places
                for j in (range(i + 1) if causal else range(time))
                if bucket[i] == bucket[j] and abs(part[i] - part[j]) <= 1
            }
            others = sorted(seen - {i}) or [i]  # itself only if there is no other
            expected = softmax(k[others] @ q[i] / np.sqrt(DIM)) @ v[others]
            np.testing.assert_allclose(found[0, head, i], expected, rtol=1e-9)


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_kernel_and_penalties_agree(name: str, causal: bool, padded: bool) -> None:
    time = 37
    query, keys, values = heads(time)
    real = torch.ones(2, time, dtype=torch.bool)
    real[1, 29:] = not padded
    chosen, seen = pattern(name), view(time, causal=causal, real=real)
    if chosen.keys_are_queries:
        keys = F.normalize(query, dim=-1)
    penalties = chosen.penalties(keys, seen)
    if seen.penalties is not None:
        penalties = penalties + seen.penalties
    plain = plain_attention(query, keys, values, penalties=penalties).context
    fast = chosen.attend(query, keys, values, seen).context
    here = real[:, None, :, None]
    torch.testing.assert_close(fast * here, plain * here)
    wanted = [query, values, *chosen.parameters()]
    for one, other in zip(
        torch.autograd.grad((fast * here).square().sum(), wanted, retain_graph=True),
        torch.autograd.grad((plain * here).square().sum(), wanted),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", PATTERNS)
def test_gradients_are_right(name: str) -> None:
    chosen, (query, keys, values) = pattern(name), heads(7, batch=1)

    def context(*given: Tensor) -> Tensor:
        own = F.normalize(given[0], dim=-1) if chosen.keys_are_queries else given[1]
        return chosen.attend(given[0], own, given[2], view(7, causal=True)).context

    inputs = tuple(part.detach().requires_grad_() for part in (query, keys, values))
    assert torch.autograd.gradcheck(context, inputs)


def attention(name: str, **options: object) -> MultiHeadAttention:
    torch.manual_seed(3)
    made = MultiHeadAttention(
        model_dim=HEADS * DIM, heads=HEADS, pattern=pattern(name), **options  # type: ignore[arg-type]
    )  # fmt: skip
    return made.double().eval()


@pytest.mark.parametrize("name", PATTERNS)
def test_the_future_never_leaks(name: str) -> None:
    chosen, time = attention(name), 30
    inputs = torch.randn(1, time, HEADS * DIM, dtype=torch.float64)
    whole = chosen(inputs, view(time, causal=True))[0].context
    for changed_from in (1, 11, 29):
        other = inputs.clone()
        other[:, changed_from:] = torch.randn_like(other[:, changed_from:])
        found = chosen(other, view(time, causal=True))[0].context
        torch.testing.assert_close(found[:, :changed_from], whole[:, :changed_from])


@pytest.mark.parametrize("name", PATTERNS)
def test_padding_never_matters(name: str) -> None:
    chosen, time = attention(name), 30
    inputs = torch.randn(1, time, HEADS * DIM, dtype=torch.float64)
    real = torch.ones(1, time, dtype=torch.bool)
    real[:, 21:] = False
    short = chosen(inputs[:, :21], view(21, causal=False))[0].context
    padded = chosen(inputs, view(time, causal=False, real=real))[0].context
    torch.testing.assert_close(padded[:, :21], short)


@pytest.mark.parametrize("name", PATTERNS)
def test_cached_steps_and_weights_equal_the_full_pass(name: str) -> None:
    chosen, time = attention(name), 26
    inputs = torch.randn(2, time, HEADS * DIM, dtype=torch.float64)
    whole = chosen(inputs, view(time, causal=True))[0].context
    shown = chosen(inputs, view(time, causal=True), with_weights=True)[0]
    torch.testing.assert_close(shown.context, whole)
    torch.testing.assert_close(shown.weights.sum(-1), torch.ones(2, HEADS, time).double())
    past, steps = None, []
    for place in range(time):
        features = inputs[:, place : place + 1]
        seen = Visibility.back(features, read=place, window=None, distance_bias=None)
        attended, past = chosen(features, seen, past=past, start=place)
        steps.append(attended.context)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


def test_keys_that_are_queries_have_no_matrix() -> None:
    assert attention("hashed").projection.out_features == 2 * HEADS * DIM
    assert attention("strided").projection.out_features == 3 * HEADS * DIM


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r'pattern \("zigzag"\) must be "strided" or "fixed"'):
        SparsePattern("zigzag", stride=2)
    with pytest.raises(ValueError, match=r"summary \(5\) must be between 1 and stride \(4\)"):
        SparsePattern("fixed", stride=4, summary=5)
    with pytest.raises(ValueError, match=r"hash_buckets \(3\) must be even and at least 2"):
        HashedPattern(4, buckets=3)
    with pytest.raises(ValueError, match="softmax and scaled dot products alone"):
        attention("strided", linear=True)
    with pytest.raises(ValueError, match="softmax and scaled dot products alone"):
        attention("span", score=SCORES["bilinear"](query_dim=DIM, key_dim=DIM))
    relative = RelativePositions.build(PositionOptions(model_dim=HEADS * DIM, heads=HEADS))
    with pytest.raises(ValueError, match="relative positions do not go with a pattern"):
        attention("hashed", positions=relative)
