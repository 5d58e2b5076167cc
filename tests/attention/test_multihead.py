"""All kernels give the same result, and it is the one that the formula says."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention.efficient import (
    LinearState,
    causal_linear_attention,
    explicit_linear_attention,
    linear_attention,
    local_attention,
)
from regard.attention.lookup import Lookup, Memory
from regard.attention.masks import Visibility, memory_penalties
from regard.attention.multihead import MultiHeadAttention
from regard.attention.past import KeysValues
from regard.attention.positions import Alibi, RelativePositions, Rotary
from regard.attention.scores import SCORES
from regard.compute import kernels
from regard.compute.kernels import fused_attention, plain_attention

KINDS = ("plain", "relative", "rotary", "alibi", "window", "linear")


def heads_of(seed: int, *, target: int, source: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(  # type: ignore[return-value]
        torch.randn(2, 3, length, 4, generator=generator) for length in (target, source, source)
    )


def visibility_of(target: int, source: int, **options: object) -> Visibility:
    return Visibility(  # type: ignore[arg-type]
        target=target, source=source, dtype=torch.float32, device=torch.device("cpu"), **options
    )


def some_real(source: int) -> Tensor:
    real = torch.ones(2, source, dtype=torch.bool)
    real[1, (source + 1) // 2 :] = False
    return real


def module_of(kind: str) -> MultiHeadAttention:
    torch.manual_seed(3)
    inside = {"relative": RelativePositions(4, reach=3), "rotary": Rotary(4)}.get(kind)
    return MultiHeadAttention(
        model_dim=12, heads=3, positions=inside, linear=kind == "linear"
    ).eval()


def options_of(kind: str) -> dict[str, object]:
    return {
        "alibi": {"distance_bias": Alibi(3)},
        "window": {"window": 2},
    }.get(kind, {})


WITHIN_HEADS = [name for name, score in SCORES.items() if not score.projects_values]


@pytest.mark.parametrize("name", WITHIN_HEADS)
def test_any_score_of_the_registry_serves_in_the_heads(name: str) -> None:
    torch.manual_seed(3)
    score = SCORES[name](query_dim=4, key_dim=4)
    module = MultiHeadAttention(model_dim=12, heads=3, score=score).eval()
    inputs, real = torch.randn(2, 5, 12), some_real(5)
    query, keys, values = module.projection(inputs).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
    lookup = Lookup(score=score)
    contexts, weights = zip(
        *(
            lookup(
                query[:, head],
                Memory(score.prepare(keys[:, head]), values[:, head], real),
                with_weights=True,
            )
            for head in range(3)
        ),
        strict=True,
    )
    expected = module.output(torch.cat(contexts, dim=-1))
    found, _ = module(inputs, visibility_of(5, 5, real=real), with_weights=True)
    torch.testing.assert_close(found.context, expected)
    torch.testing.assert_close(found.weights, torch.stack(weights, dim=1))
    without, _ = module(inputs, visibility_of(5, 5, real=real))
    torch.testing.assert_close(without.context, expected)
    assert without.weights is None
    across = module.cross(inputs, module.memory(inputs), memory_penalties(real, dtype=inputs.dtype))
    torch.testing.assert_close(across.context, expected)


def test_the_scaled_dot_product_of_the_registry_is_that_of_the_kernels() -> None:
    plain = module_of("plain")
    scored = MultiHeadAttention(
        model_dim=12, heads=3, score=SCORES["scaled-dot"](query_dim=4, key_dim=4)
    )
    scored.load_state_dict(plain.state_dict())
    inputs = torch.randn(2, 5, 12)
    (expected, _), _ = plain(inputs, visibility_of(5, 5))
    (found, _), _ = scored(inputs, visibility_of(5, 5))
    torch.testing.assert_close(found, expected)


def test_linear_attention_and_relative_positions_take_no_other_score() -> None:
    score = SCORES["dot"](query_dim=4, key_dim=4)
    with pytest.raises(ValueError, match="take no score but their own"):
        MultiHeadAttention(model_dim=12, heads=3, linear=True, score=score)
    with pytest.raises(ValueError, match="take no score but their own"):
        MultiHeadAttention(model_dim=12, heads=3, positions=RelativePositions(4), score=score)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 1000),
    target=st.integers(1, 9),
    before=st.integers(0, 9),
    causal=st.booleans(),
    padded=st.booleans(),
    slopes=st.booleans(),
)
def test_fused_equals_plain(
    seed: int, target: int, before: int, causal: bool, padded: bool, slopes: bool
) -> None:
    source = target + before
    query, keys, values = heads_of(seed, target=target, source=source)
    visibility = visibility_of(
        target,
        source,
        causal=causal,
        real=some_real(source) if padded and not causal else None,
        distance_bias=Alibi(3) if slopes else None,
    )
    plain = plain_attention(query, keys, values, penalties=visibility.penalties)
    only = visibility.causal_only
    fused = fused_attention(
        query, keys, values, penalties=None if only else visibility.penalties, causal_only=only
    )
    torch.testing.assert_close(fused.context, plain.context)
    assert plain.weights is not None
    torch.testing.assert_close(plain.weights.sum(-1), torch.ones(2, 3, target))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1000),
    time=st.integers(1, 23),
    window=st.integers(1, 6),
    causal=st.booleans(),
    padded=st.booleans(),
)
def test_local_equals_plain_with_a_masked_window(
    seed: int, time: int, window: int, causal: bool, padded: bool
) -> None:
    query, keys, values = heads_of(seed, target=time, source=time)
    real = some_real(time) if padded else None
    visibility = visibility_of(time, time, causal=causal, window=window, real=real)
    plain = plain_attention(query, keys, values, penalties=visibility.penalties).context
    local = local_attention(query, keys, values, window=window, causal=causal, real=real).context
    rows = torch.ones(2, time, dtype=torch.bool) if real is None else real  # padding may differ
    torch.testing.assert_close(local.transpose(1, 2)[rows], plain.transpose(1, 2)[rows])


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), time=st.integers(1, 150), cut=st.integers(0, 150))
def test_linear_attention_in_chunks_and_steps_equals_its_explicit_weights(
    seed: int, time: int, cut: int
) -> None:
    query, keys, values = heads_of(seed, target=time, source=time)
    explicit = explicit_linear_attention(
        query, keys, values, visibility=visibility_of(time, time, causal=True)
    )
    assert explicit.weights is not None
    torch.testing.assert_close(explicit.weights.sum(-1), torch.ones(2, 3, time))
    whole, _ = causal_linear_attention(query, keys, values, state=None)
    torch.testing.assert_close(whole.context, explicit.context, rtol=1e-4, atol=1e-5)
    if 0 < cut < time:
        parts = [(part[:, :, :cut], part[:, :, cut:]) for part in (query, keys, values)]
        first, state = causal_linear_attention(*(part[0] for part in parts), state=None)
        second, _ = causal_linear_attention(*(part[1] for part in parts), state=state)
        joined = torch.cat([first.context, second.context], dim=2)
        torch.testing.assert_close(joined, explicit.context, rtol=1e-4, atol=1e-5)


def test_linear_attention_over_all_keys_equals_its_explicit_weights() -> None:
    query, keys, values = heads_of(5, target=4, source=7)
    visibility = visibility_of(4, 7, real=some_real(7))
    explicit = explicit_linear_attention(query, keys, values, visibility=visibility)
    torch.testing.assert_close(
        linear_attention(query, keys, values, visibility=visibility).context, explicit.context
    )
    assert explicit.weights is not None
    assert explicit.weights[1, :, :, 4:].abs().max() == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 6, 24])
def test_the_chosen_kernel_equals_the_one_with_weights(
    kind: str, causal: bool, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "LONG_WITH_GRADIENT", 16)
    module, inputs = module_of(kind), torch.randn(2, length, 12)
    real = None if causal else some_real(length)
    visibility = visibility_of(length, length, causal=causal, real=real, **options_of(kind))
    (fast, nothing), _ = module(inputs, visibility)
    (slow, weights), _ = module(inputs, visibility, with_weights=True)
    assert nothing is None
    rows = torch.ones(2, length, dtype=torch.bool) if real is None else real
    torch.testing.assert_close(fast[rows], slow[rows])
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, length))
    if causal:
        assert weights.triu(1).abs().max() == 0


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=15)
@given(cuts=st.sets(st.integers(1, 10)))
def test_cached_steps_equal_the_full_pass(kind: str, cuts: set[int]) -> None:
    module, inputs = module_of(kind), torch.randn(2, 11, 12)
    options = options_of(kind)
    (whole, _), _ = module(inputs, visibility_of(11, 11, causal=True, **options))
    past, parts = None, []
    borders = [0, *sorted(cuts), 11]
    for start, end in itertools.pairwise(borders):
        kept = min(start, 2) if kind == "window" else start
        visibility = visibility_of(end - start, kept + end - start, causal=True, **options)
        (part, _), past = module(inputs[:, start:end], visibility, past=past, start=start)
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-4, atol=1e-5)
    assert isinstance(past, LinearState if kind == "linear" else KeysValues)
    if kind == "window":
        assert isinstance(past, KeysValues)
        assert past.keys.shape[2] == 2  # what can no longer be seen is forgotten


@pytest.mark.parametrize("source", [7, 20])
def test_attention_across_follows_the_formula(source: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "LONG_WITH_GRADIENT", 16)
    module = module_of("plain")
    inputs, memory = torch.randn(2, 3, 12), torch.randn(2, source, 12)
    real = some_real(source)
    penalties = visibility_of(3, source, real=real).penalties
    context, weights = module.cross(inputs, module.memory(memory), penalties, with_weights=True)
    fast = module.cross(inputs, module.memory(memory), penalties)
    assert fast.weights is None
    torch.testing.assert_close(fast.context, context)

    query_matrix, key_matrix, value_matrix = module.projection.weight.chunk(3)
    contexts = []
    for head in range(3):
        part = slice(4 * head, 4 * head + 4)
        query, keys = inputs @ query_matrix[part].T, memory @ key_matrix[part].T
        scores = query @ keys.transpose(1, 2) / math.sqrt(4)
        alpha = scores.masked_fill(~real[:, None, :], -math.inf).softmax(-1)
        torch.testing.assert_close(weights[:, head], alpha)
        contexts.append(alpha @ (memory @ value_matrix[part].T))
    expected = torch.cat(contexts, dim=-1) @ module.output.weight.T
    torch.testing.assert_close(context, expected)


def test_without_positions_the_order_of_inputs_is_the_order_of_outputs() -> None:
    module, inputs, order = module_of("plain"), torch.randn(2, 9, 12), torch.randperm(9)
    visibility = visibility_of(9, 9)
    (straight, _), _ = module(inputs, visibility)
    (mixed, _), _ = module(inputs[:, order], visibility)
    torch.testing.assert_close(mixed, straight[:, order])


def test_heads_with_one_hot_relative_positions_are_a_convolution() -> None:
    """k heads that each look at one distance compute a convolution of width k (Cordonnier 2020)."""
    torch.manual_seed(2)
    width, head_dim, time = 3, 5, 8
    model_dim = width * head_dim
    positions = RelativePositions(head_dim, reach=1)
    module = MultiHeadAttention(model_dim=model_dim, heads=width, positions=positions).eval()
    with torch.no_grad():
        positions.keys.copy_(torch.eye(3, head_dim) * 40)
        positions.values.zero_()
        module.projection.weight[: 2 * model_dim] = 0  # neither query nor key sees the content
        module.projection.bias[:model_dim] = (torch.eye(3, head_dim) * 40).flatten()
        values = module.projection.weight[2 * model_dim :].view(width, head_dim, model_dim)
        outputs = module.output.weight.view(model_dim, width, head_dim)
        kernel = torch.einsum("mkd,kdn->mnk", outputs, values)  # W_o^h W_v^h for each distance

    # Distances beyond the reach share its vector, so each query sees itself and its neighbours.
    inputs = torch.randn(2, time, model_dim)
    visibility = visibility_of(time, time, window=1)
    (found, _), _ = module(inputs, visibility)
    expected = torch.nn.functional.conv1d(inputs.transpose(1, 2), kernel).transpose(1, 2)
    torch.testing.assert_close(found[:, 1:-1], expected, rtol=1e-4, atol=1e-5)


def test_dropout_falls_on_the_weights_and_only_in_training() -> None:
    module = MultiHeadAttention(model_dim=12, heads=3, dropout=0.5)
    inputs, visibility = torch.randn(2, 24, 12), visibility_of(24, 24, window=2)
    for now in (visibility, visibility_of(24, 24)):
        assert not torch.equal(module(inputs, now)[0].context, module(inputs, now)[0].context)
        module.eval()
        assert torch.equal(module(inputs, now)[0].context, module(inputs, now)[0].context)
        module.train()


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(ValueError, match=r"model_dim \(100\) must be divisible by heads \(8\)"):
        MultiHeadAttention(model_dim=100, heads=8)
