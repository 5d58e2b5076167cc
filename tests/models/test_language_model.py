"""What must hold for every language model, whatever its family and options."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.base.errors import RegardError, SettingsError
from regard.models.inspection import parameter_count
from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.recipe import validate
from regard.tasks.language_modelling.settings import LanguageModelRecipe

SMALL = {"layers": 2, "model_dim": 16, "heads": 2, "context": 24}
OPTIONS: dict[str, dict[str, Any]] = {
    "learned": {},
    "sinusoidal": {"positions": "sinusoidal"},
    "relative": {"positions": "relative"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "no positions": {"positions": "none"},
    "window": {"positions": "rotary", "window": 3},
    "rms, swiglu, untied": {"norm": "rms", "activation": "swiglu", "tie": False},
    "as GPT-2": {"activation": "gelu-tanh"},
    "as Llama 3": {
        "positions": "rotary",
        "heads": 4,
        "key_value_heads": 2,
        "rotary_base": 5e5,
        "rotary_factor": 8.0,
        "rotary_length": 16,
        "norm": "rms",
        "norm_epsilon": 1e-5,
        "activation": "swiglu",
        "attention_biases": "none",
        "feed_forward_biases": False,
    },
    "as Qwen 3": {"positions": "rotary", "head_dim": 12, "head_norm": True, "norm": "rms"},
    "bucketed": {"positions": "bucketed", "buckets": 8, "bucket_reach": 12, "embedding_norm": True},
    "experts": {"experts": 3},
    "two of three experts, every other layer": {
        "experts": 3,
        "experts_per_token": 2,
        "expert_gate": "noisy",
        "expert_every": 2,
        "expert_bias": True,
        "expert_capacity": 1.2,
    },
    "memory": {"positions": "segment", "memory": 5, "segment": 4},
    "memory, rotary": {"positions": "rotary", "memory": 3},
    "strided": {"pattern": "strided", "stride": 4},
    "fixed": {"pattern": "fixed", "stride": 4, "summary": 2, "positions": "rotary"},
    "hashed": {"pattern": "hashed", "hash_buckets": 4, "hash_chunk": 3},
    "learned spans": {"span": 8, "span_ramp": 2, "positions": "alibi"},
    "tanh": {"family": "recurrent", "cell": "tanh"},
    "gru, tied": {"family": "recurrent", "cell": "gru", "tie": True},
    "F-LSTM": {"family": "recurrent", "cell_rank": 3},
    "G-LSTM": {"family": "recurrent", "cell_groups": 2, "layers": 2},
    "residual gru": {"family": "recurrent", "cell": "gru", "layers": 3, "residual": True},
    "lstm, two layers": {"family": "recurrent", "cell": "lstm", "layers": 2},
}
named = pytest.mark.parametrize("options", list(OPTIONS.values()), ids=list(OPTIONS))


def model_of(options: dict[str, Any], *, vocab: int = 30) -> LanguageModel[Any]:
    torch.manual_seed(5)
    recurrent = {"hidden": 12, "embedding": 8}
    recurrent = recurrent if options.get("family") == "recurrent" else SMALL
    recipe = validate({"model": recurrent | options}, LanguageModelRecipe, origin="test")
    return build_language_model(recipe.model, vocab=vocab).eval()


def random_tokens(seed: int, time: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 30, (3, time), generator=generator)


@named
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 100), time=st.integers(2, 20))
def test_the_future_never_leaks(options: dict[str, Any], seed: int, time: int) -> None:
    model = model_of(options)
    tokens = random_tokens(seed, time)
    place = seed % (time - 1) + 1
    changed = tokens.clone()
    changed[:, place:] = (tokens[:, place:] + 3) % 30
    with torch.no_grad():
        before, after = (model(each).features for each in (tokens, changed))
    torch.testing.assert_close(before[:, :place], after[:, :place])
    assert not torch.allclose(before[:, place:], after[:, place:])


@named
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 100), first=st.integers(1, 8), more=st.integers(1, 8))
@torch.no_grad()
def test_a_cached_step_equals_the_full_pass(
    options: dict[str, Any], seed: int, first: int, more: int
) -> None:
    model = model_of(options)
    tokens = random_tokens(seed, first + more)
    whole = model.project(model(tokens).features)
    step = model.read(tokens[:, :first], model.start(3))
    torch.testing.assert_close(step.logits, whole[:, first - 1], atol=1e-5, rtol=1e-4)
    for place in range(first, first + more):
        step = model.step(tokens[:, place], step.state)
        torch.testing.assert_close(step.logits, whole[:, place], atol=1e-5, rtol=1e-4)


@named
@torch.no_grad()
def test_rows_can_be_chosen_on_the_way(options: dict[str, Any]) -> None:
    model = model_of(options)
    tokens = random_tokens(1, 9)
    rows = torch.tensor([2, 0, 0])
    state = model.select(model.read(tokens[:, :8], model.start(3)).state, rows)
    chosen = model.step(tokens[rows, 8], state).logits
    torch.testing.assert_close(chosen, model.project(model(tokens).features[:, -1])[rows])


@torch.no_grad()
def test_weights_of_all_heads_and_of_a_step() -> None:
    model = model_of({})
    tokens = random_tokens(2, 7)
    maps = model.head_maps(tokens)
    assert maps.shape == (2, 3, 2, 7, 7)
    torch.testing.assert_close(maps.sum(-1), torch.ones(2, 3, 2, 7))
    assert maps.triu(1).abs().max() == 0
    last = model(tokens, with_weights=True).attention
    assert last is not None
    torch.testing.assert_close(last, maps[-1].mean(dim=1))
    step = model.read(tokens, model.start(3), with_weights=True)
    torch.testing.assert_close(step.weights, last[:, -1])


def test_a_recurrent_model_has_no_heads_to_look_at() -> None:
    with pytest.raises(RegardError, match="no attention heads"):
        model_of(OPTIONS["tanh"]).head_maps(random_tokens(1, 3))


def test_the_layout_of_gpt2_has_its_parameters() -> None:
    model = model_of({"layers": 3, "model_dim": 24, "heads": 3, "context": 10}, vocab=50)
    block = 12 * 24 * 24 + 13 * 24  # matrices, and biases with two norms
    assert parameter_count(model) == (50 + 10) * 24 + 3 * block + 2 * 24


@pytest.mark.parametrize(("width", "spread"), [(768, 0.02), (192, 0.04)])
def test_fresh_matrices_are_as_wide_as_those_of_gpt2_for_their_width(
    width: int, spread: float
) -> None:
    model = model_of({"model_dim": width, "heads": 4}, vocab=100)
    weights = model.state_dict()["backbone.layers.0.feed_forward.inner.weight"]
    assert float(weights.std()) == pytest.approx(spread, rel=0.02)


def test_fresh_logits_are_as_loud_as_those_of_gpt2() -> None:
    with torch.no_grad():
        logits = (model := model_of({})).project(model(random_tokens(3, 20)).features)
    # Logits are sums of as many products as the model is wide, of features about as large as 1.
    spread = 0.02 * math.sqrt(768)
    wanted = math.log(30) + spread**2 / 2
    assert float(-logits.log_softmax(-1).mean()) == pytest.approx(wanted, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_dim": 10, "heads": 4}, r"model_dim \(10\) must be divisible by heads \(4\)"),
        (
            {"model_dim": 9, "heads": 3, "positions": "sinusoidal"},
            r"model_dim \(9\) must be even for sinusoidal",
        ),
        (
            {"model_dim": 12, "heads": 4, "positions": "rotary"},
            r"model_dim / heads \(3\) must be even for rotary",
        ),
        ({"family": "convolutional"}, "unknown family 'convolutional'"),
        ({"family": "recurrent", "heads": 2}, "unknown key 'model.heads'"),
    ],
)
def test_settings_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        validate({"model": options}, LanguageModelRecipe, origin="test")


def test_one_file_may_be_named_without_a_list() -> None:
    recipe = validate({"data": {"text": "a.txt"}}, LanguageModelRecipe, origin="test")
    assert recipe.data.text == ("a.txt",)


BOTH_WAYS: dict[str, dict[str, Any]] = {
    "as BERT": {"segments": 2, "norm_epsilon": 1e-12, "dropout": 0.1},
    "pre-norm, rotary": {"norm_placement": "pre", "positions": "rotary", "activation": "geglu"},
    "slopes, window, grouped": {
        "positions": "alibi",
        "window": 3,
        "key_value_heads": 1,
        "embedding_norm": False,
    },
}
both_ways = pytest.mark.parametrize("options", list(BOTH_WAYS.values()), ids=list(BOTH_WAYS))


@both_ways
@torch.no_grad()
def test_both_ways_every_token_sees_all_others_but_no_padding(options: dict[str, Any]) -> None:
    model = model_of({**SMALL, "family": "bidirectional", **options})
    backbone: Any = model.backbone
    tokens = random_tokens(3, 6)
    mask = torch.arange(6) < torch.tensor([[6], [4], [5]])
    found = backbone(tokens, mask=mask)[0].features
    alone = backbone(tokens[1:2, :4])[0].features
    torch.testing.assert_close(found[1:2, :4], alone, rtol=1e-4, atol=1e-5)
    changed = tokens.clone()
    changed[:, 3] = (tokens[:, 3] + 3) % 30
    after = backbone(changed, mask=mask)[0].features
    assert not torch.allclose(found[:, 1], after[:, 1])
    weights = backbone.look(tokens)
    assert weights.shape == (2, 3, 2, 6, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 2, 6))


@both_ways
def test_both_ways_every_parameter_learns(options: dict[str, Any]) -> None:
    model = model_of({**SMALL, "family": "bidirectional", **options}).train()
    model.project(model(random_tokens(1, 6)).features).logsumexp(-1).sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []


def test_both_ways_it_cannot_write_on() -> None:
    model = model_of({**SMALL, "family": "bidirectional"})
    with pytest.raises(RegardError, match="it cannot write on"):
        model.start(1)
