"""What must hold for every Transformer, whatever its options."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import past
from regard.base.errors import RegardError, SettingsError
from regard.models.build import TransformerPlan
from regard.models.translator import Translator

OPTIONS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"norm_placement": "pre"},
    "halves": {"sinusoids": "halves", "sinusoid_offset": 2, "stretched_sinusoids": True},
    "learned": {"positions": "learned", "max_length": 64},
    "relative": {"positions": "relative", "reach": 3},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "no positions": {"positions": "none"},
    "window": {"window": 2},
    "linear": {"kernel": "linear"},
    "linear rotary": {"kernel": "linear", "positions": "rotary"},
    "dot score": {"score": "dot"},
    "bilinear score, rotary": {"score": "bilinear", "positions": "rotary"},
    "additive score, window": {"score": "additive", "window": 2},
    "ssru": {"decoder": "ssru", "decoder_layers": 1},
    "convolutional": {"encoder": "convolutional"},
    "rms, swiglu": {"norm": "rms", "activation": "swiglu", "norm_placement": "pre"},
    "grouped heads": {"heads": 4, "key_value_heads": 2},
    "grouped heads, rotary, head norm": {
        "heads": 4,
        "key_value_heads": 1,
        "positions": "rotary",
        "rotary_base": 500.0,
        "rotary_factor": 8.0,
        "rotary_length": 64,
        "head_norm": True,
        "norm": "rms",
        "attention_biases": "inputs",
        "head_dim": 6,
    },
    "grouped heads, relative": {"heads": 4, "key_value_heads": 2, "positions": "relative"},
    "grouped heads, alibi": {"heads": 4, "key_value_heads": 2, "positions": "alibi"},
    "grouped heads, window": {"heads": 4, "key_value_heads": 2, "window": 2},
    "grouped heads, linear": {"heads": 4, "key_value_heads": 2, "kernel": "linear"},
    "grouped heads, additive": {"heads": 4, "key_value_heads": 2, "score": "additive"},
    "as T5": {
        "positions": "bucketed",
        "buckets": 8,
        "bucket_reach": 10,
        "score": "dot",
        "norm": "rms",
        "norm_placement": "pre",
        "activation": "geglu-tanh",
        "attention_biases": "none",
        "feed_forward_biases": False,
        "scaled_embeddings": False,
        "scaled_output": True,
        "tie": "all",
        "head_dim": 5,
    },
    "as BART": {
        "positions": "learned",
        "learned_offset": 2,
        "embedding_norm": True,
        "norm_epsilon": 1e-3,
        "activation": "geglu",
        "tie": "inputs",
    },
    "by wave": {"positions": "segment"},
    "strided": {"pattern": "strided", "stride": 3},
    "fixed, grouped heads": {"pattern": "fixed", "stride": 4, "heads": 4, "key_value_heads": 2},
    "hashed, rotary": {
        "pattern": "hashed",
        "hash_buckets": 4,
        "hash_chunk": 2,
        "positions": "rotary",
    },
    "learned spans, relative": {"span": 6, "span_ramp": 2, "positions": "relative"},
    "learned spans": {"span": 3, "span_ramp": 1},
    "experts": {"experts": 3, "norm_placement": "pre"},
    "two of three experts": {"experts": 3, "experts_per_token": 2, "expert_capacity": 0.7},
    "gelu, tied": {"activation": "gelu", "tie": "all", "output_bias": True},
}
named = pytest.mark.parametrize("options", list(OPTIONS.values()), ids=list(OPTIONS))


def model_of(options: dict[str, Any]) -> Translator[Any]:
    torch.manual_seed(5)
    plan = TransformerPlan(
        **{"layers": 2, "decoder_layers": 2, "model_dim": 16, "heads": 2, "feed_forward": 24}
        | {"dropout": 0.1, "attention_dropout": 0.1, "activation_dropout": 0.1}
        | options
    )
    return plan.translator(source_vocab=30, target_vocab=30).eval()


def sentences(seed: int, *, source: int, target: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.ones(3, source, dtype=torch.bool)
    mask[1, (source + 1) // 2 :] = False
    return (
        torch.randint(4, 30, (3, source), generator=generator),
        mask,
        torch.randint(4, 30, (3, target), generator=generator),
    )


@named
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 100), source=st.integers(1, 12), target=st.integers(2, 12))
def test_the_future_never_leaks(
    options: dict[str, Any], seed: int, source: int, target: int
) -> None:
    model = model_of(options)
    words, mask, outputs = sentences(seed, source=source, target=target)
    place = seed % (target - 1) + 1
    changed = outputs.clone()
    changed[:, place:] = 4 + (outputs[:, place:] + 3) % 26
    before, after = (model(words, mask, tokens).features for tokens in (outputs, changed))
    torch.testing.assert_close(before[:, :place], after[:, :place])
    assert not torch.allclose(before[:, place:], after[:, place:])


@named
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 100), source=st.integers(1, 12), extra=st.integers(1, 7))
def test_padding_never_matters(options: dict[str, Any], seed: int, source: int, extra: int) -> None:
    model = model_of(options)
    words, mask, outputs = sentences(seed, source=source, target=5)
    tight = model(words, mask, outputs).features
    wider = torch.cat([words, torch.randint(4, 30, (3, extra))], dim=1)
    wide_mask = torch.cat([mask, torch.zeros(3, extra, dtype=torch.bool)], dim=1)
    wide = model(wider, wide_mask, outputs).features
    torch.testing.assert_close(wide, tight, rtol=1e-4, atol=1e-5)
    alone = model(words[1:2, : int(mask[1].sum())], mask[1:2, mask[1]], outputs[1:2]).features
    torch.testing.assert_close(alone, tight[1:2], rtol=1e-4, atol=1e-5)


@named
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 100), target=st.integers(1, 12), first=st.integers(1, 12))
def test_cached_steps_equal_the_full_pass(
    options: dict[str, Any], seed: int, target: int, first: int
) -> None:
    model = model_of(options)
    words, mask, outputs = sentences(seed, source=6, target=target)
    whole = model(words, mask, outputs, with_weights=True)
    state = model.start(model.encode(words, mask))
    parts, maps = [], []
    borders = [0, *range(min(first, target), target + 1)]
    for start, end in itertools.pairwise(borders):
        output, state = model.decoder(outputs[:, start:end], state, with_weights=True)
        parts.append(output.features)
        maps.append(output.attention)
    torch.testing.assert_close(torch.cat(parts, 1), whole.features, rtol=1e-4, atol=1e-5)
    assert whole.attention is not None
    torch.testing.assert_close(torch.cat(maps, 1), whole.attention, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(whole.attention.sum(-1), torch.ones(3, target))
    assert whole.attention[1, :, 3:].abs().max() == 0


@named
def test_selected_rows_go_on_as_if_alone(options: dict[str, Any]) -> None:
    model = model_of(options)
    words, mask, outputs = sentences(1, source=6, target=5)
    whole = model(words, mask, outputs).features
    state = model.start(model.encode(words, mask))
    rows = torch.tensor([2, 0, 2])
    state = model.select(state, torch.arange(3))
    _, state = model.decoder(outputs[:, :3], state)
    output, _ = model.decoder(outputs[rows, 3:], model.select(state, rows))
    torch.testing.assert_close(output.features, whole[rows, 3:], rtol=1e-4, atol=1e-5)


@named
def test_rows_of_a_beam_go_on_as_if_alone(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "LEAST_ROOM", 2)  # so that room is made again and again
    model, width, generator = model_of(options), 3, torch.Generator().manual_seed(3)
    words, mask, _ = sentences(1, source=6, target=1)
    with torch.inference_mode():
        encoded = model.encode(words, mask)
        state, alive = model.start(encoded), torch.arange(3)
        written = torch.empty(3, 0, dtype=torch.long)
        for length in range(1, 13):
            tokens = torch.randint(4, 30, (len(written), 1), generator=generator)
            written = torch.cat([written, tokens], dim=1)
            output, state = model.decoder(tokens, state, with_weights=length % 4 == 0)
            owners = alive.repeat_interleave(len(written) // len(alive))
            whole = model(words[owners], mask[owners], written).features[:, -1:]
            torch.testing.assert_close(output.features, whole, rtol=1e-4, atol=1e-5)
            if length in (5, 8):  # a sentence is done
                alive, keep = alive[1:], torch.arange(1, len(alive))
            else:
                keep = torch.arange(len(alive))
            before = len(owners) // len(owners.unique())
            parents = torch.randint(0, before, (len(keep), width), generator=generator)
            rows = (keep[:, None] * before + parents).flatten()
            state, written = model.select(state, rows), written[rows]


@named
def test_the_maps_of_all_heads_are_those_behind_the_features(options: dict[str, Any]) -> None:
    model = model_of(options)
    words, mask, outputs = sentences(1, source=6, target=5)
    maps = model.head_maps(words, mask, outputs)
    layers = options.get("decoder_layers", 2)
    heads = options.get("heads", 2)
    assert maps.cross.shape == (layers, 3, heads, 5, 6)
    torch.testing.assert_close(maps.cross.sum(-1), torch.ones(layers, 3, heads, 5))
    shown = model(words, mask, outputs, with_weights=True).attention
    torch.testing.assert_close(maps.cross[-1].mean(1), shown, rtol=1e-4, atol=1e-6)
    if options.get("encoder") == "convolutional":
        assert maps.encoder is None
    else:
        assert maps.encoder is not None
        assert maps.encoder.shape == (2, 3, heads, 6, 6)
        real = maps.encoder[:, 1, :, :3]
        torch.testing.assert_close(real.sum(-1), torch.ones(2, heads, 3))
        assert real[..., 3:].abs().max() == 0
    if options.get("decoder") == "ssru":
        assert maps.decoder is None
    else:
        assert maps.decoder is not None
        assert maps.decoder.shape == (2, 3, heads, 5, 5)
        assert maps.decoder.triu(1).abs().max() == 0


@named
def test_every_parameter_learns(options: dict[str, Any]) -> None:
    model = model_of(options).train()
    words, mask, outputs = sentences(1, source=6, target=5)
    model.project(model(words, mask, outputs).features).logsumexp(-1).sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    assert without == []


def test_the_layer_that_is_shown_can_be_chosen() -> None:
    model = model_of({"alignment_layer": 0})
    words, mask, outputs = sentences(1, source=6, target=5)
    shown = model(words, mask, outputs, with_weights=True).attention
    maps = model.head_maps(words, mask, outputs)
    torch.testing.assert_close(shown, maps.cross[0].mean(1))


def test_without_positions_the_encoder_keeps_any_order() -> None:
    model = model_of({"positions": "none"})
    words, mask, _ = sentences(1, source=7, target=2)
    mask = torch.ones_like(mask)
    order = torch.randperm(7)
    straight, mixed = model.encode(words, mask), model.encode(words[:, order], mask)
    torch.testing.assert_close(mixed.memory, straight.memory[:, order], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["sinusoidal", "relative", "rotary", "alibi"])
def test_positions_without_a_table_read_any_length(kind: str) -> None:
    model = model_of({"positions": kind})
    words, mask, outputs = sentences(1, source=700, target=600)
    assert bool(model(words, mask, outputs).features.isfinite().all())


def test_learned_positions_refuse_a_longer_sentence() -> None:
    model = model_of({"positions": "learned", "max_length": 8})
    words, mask, outputs = sentences(1, source=9, target=3)
    with pytest.raises(RegardError, match="sequence of 9 tokens is longer than the 8 positions"):
        model(words, mask, outputs)
    state = model.start(model.encode(words[:, :8], mask[:, :8]))
    _, state = model.decoder(torch.full((3, 8), 5), state)
    with pytest.raises(RegardError, match="9 tokens"):
        model.step(torch.full((3,), 5), state)


@pytest.mark.parametrize(("tie", "tables"), [("none", 3), ("target", 2), ("inputs", 2), ("all", 1)])
def test_tied_tables_are_counted_once(tie: str, tables: int) -> None:
    model = model_of({"tie": tie})
    sizes = [p.numel() for p in model.parameters() if p.shape == (30, 16)]
    assert len(sizes) == tables


def test_one_table_for_two_vocabularies_is_refused() -> None:
    with pytest.raises(SettingsError, match="source has 30 entries and the target 40"):
        TransformerPlan(tie="all").translator(source_vocab=30, target_vocab=40)


def test_a_convolution_wants_a_middle() -> None:
    with pytest.raises(ValueError, match=r"width \(4\) must be odd"):
        model_of({"encoder": "convolutional", "convolution_width": 4})
