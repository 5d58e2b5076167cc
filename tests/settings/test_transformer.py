"""The Transformer's settings, and the choice between families in a recipe."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from regard.base.errors import SettingsError
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.models import (
    RecurrentSettings,
    TransformerSettings,
)
from regard.settings.recipe import expect, recipe_text
from regard.tasks import parse_recipe
from regard.tasks.translation.settings import TranslationRecipe

# Name of the case: what is set, what must stand in the message.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"model_dim": 100, "heads": 8}, "model_dim (100) must be divisible by heads (8)"),
    "odd sinusoids": ({"model_dim": 9, "heads": 3}, "model_dim (9) must be even for sinusoidal"),
    "odd rotation": (
        {"model_dim": 12, "heads": 4, "positions": "rotary"},
        "model_dim / heads (3) must be even for rotary positions",
    ),
    "even convolution": (
        {"encoder": "convolutional", "convolution_width": 4},
        "convolution_width (4) must be odd",
    ),
    "linear, relative": (
        {"kernel": "linear", "positions": "relative"},
        'kernel = "linear" has no scores that positions = "relative" could change',
    ),
    "linear, window": ({"kernel": "linear", "window": 3}, "exclude each other"),
    "linear, bucketed": (
        {"kernel": "linear", "positions": "bucketed"},
        'kernel = "linear" has no scores that positions = "bucketed" could change',
    ),
    "groups": ({"key_value_heads": 3}, "heads (8) must be divisible by key_value_heads (3)"),
    "odd head": (
        {"head_dim": 3, "positions": "rotary"},
        "head_dim (3) must be even for rotary positions",
    ),
    "rotary": ({"rotary_high": 1.0}, "rotary_high (1.0) must be above rotary_low (1.0)"),
    "buckets": ({"buckets": 6}, "buckets (6) must be divisible by 4"),
    "bucket reach": ({"buckets": 32, "bucket_reach": 16}, "bucket_reach (16) larger than half"),
    "too many experts a token": (
        {"experts": 4, "experts_per_token": 5},
        "experts_per_token (5) must not exceed experts (4)",
    ),
    "one noisy expert": (
        {"experts": 4, "expert_gate": "noisy"},
        'expert_gate = "noisy" needs experts_per_token of at least 2',
    ),
    "long span": ({"span": 600}, "span (600) must not exceed max_length (512)"),
    "long stride": (
        {"pattern": "strided", "stride": 600},
        "stride (600) must not exceed max_length (512)",
    ),
    "long summary": (
        {"pattern": "fixed", "stride": 4, "summary": 5},
        "summary (5) must not exceed stride (4)",
    ),
    "odd hash": ({"pattern": "hashed", "hash_buckets": 5}, "hash_buckets (5) must be even"),
    "hash with groups": (
        {"pattern": "hashed", "key_value_heads": 2},
        "makes its keys of the queries; leave out key_value_heads",
    ),
    "segment with groups": (
        {"positions": "segment", "key_value_heads": 2},
        "have a vector a head; leave out key_value_heads",
    ),
    "pattern and span": (
        {"pattern": "fixed", "span": 8},
        'pattern = "fixed" and a span exclude each other',
    ),
    "pattern and window": (
        {"pattern": "hashed", "window": 8},
        'pattern = "hashed" and a window exclude each other',
    ),
    "span, linear": ({"span": 8, "kernel": "linear"}, 'a span needs kernel = "softmax"'),
    "pattern, relative": (
        {"pattern": "strided", "positions": "relative"},
        'has no place for what positions = "relative" add to every pair',
    ),
    "no capacity": ({"experts": 4, "expert_capacity": 0}, "greater than 0"),
    "alignment layer": (
        {"alignment_layer": 2, "layers": 6, "decoder_layers": 2},
        "alignment_layer (2) must lie between -2 and 1, for 2 decoder layers",
    ),
}


@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TransformerSettings(**changes)
    assert message in str(caught.value)


MEMORY: dict[str, tuple[dict[str, Any], str]] = {
    "segment alone": ({"segment": 8}, "segment (8) needs a memory; set memory"),
    "long segment": (
        {"memory": 80, "positions": "segment"},
        "a segment (80) must not exceed context (64)",
    ),
    "learned positions": (
        {"memory": 16},
        'a memory needs positions by distance, not positions = "learned"',
    ),
    "memory and window": (
        {"memory": 16, "positions": "rotary", "window": 4},
        "a memory excludes window and pattern",
    ),
    "long span": ({"span": 65}, "span (65) must not exceed context (64)"),
}


@pytest.mark.parametrize(("changes", "message"), MEMORY.values(), ids=MEMORY.keys())
def test_a_memory_that_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CausalTransformerSettings(**changes)
    assert message in str(caught.value)


def recipe_of(text: str) -> TranslationRecipe:
    return expect(parse_recipe(text, origin="here"), TranslationRecipe)


def test_without_a_family_a_model_is_recurrent() -> None:
    assert isinstance(recipe_of("[model]\nhidden = 8").model, RecurrentSettings)
    assert isinstance(recipe_of("").model, RecurrentSettings)


def test_the_family_chooses_the_settings() -> None:
    model = recipe_of("[model]\nfamily = 'transformer'\nlayers = 2").model
    assert isinstance(model, TransformerSettings)
    assert model.layers == 2


def test_a_transformer_recipe_survives_being_written() -> None:
    recipe = recipe_of("[model]\nfamily = 'transformer'\nwindow = 5")
    assert recipe_of(recipe_text(recipe)) == recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "family = 'transfromer'",
            "here: model.family: unknown family 'transfromer'. Did you mean",
        ),
        ("family = 'transfromer'", "'transformer'?"),
        ("family = 'transformer'\nlayer = 2", "unknown key 'model.layer'. Did you mean 'layers'?"),
        ("family = 'transformer'\nhidden = 2", "unknown key 'model.hidden'."),
        ("hiden = 2", "unknown key 'model.hiden'. Did you mean 'hidden'?"),
        (
            "family = 'transformer'\nheads = 'x'",
            "here: model.heads: Input should be a valid integer",
        ),
        ("family = 'transformer'\nheads = 7", "here: model: model_dim (512) must be divisible by"),
        (
            "family = 'transformer'\npositions = 'learned'\nmax_length = 100",
            "here: recipe: batches.max_length (512) must not exceed model.max_length (100)",
        ),
    ],
)
def test_messages_name_the_key_as_it_was_written(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        recipe_of(f"[model]\n{text}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_table_needs_one_vocabulary() -> None:
    tied = "[model]\nfamily = 'transformer'\ntie = 'all'\n"
    with pytest.raises(
        SettingsError, match=r"set tokenizer\.shared=true, or model\.tie=\"target\""
    ):
        recipe_of(tied)
    assert recipe_of(tied + "[tokenizer]\nshared = true").tokenizer.shared
    with pytest.raises(
        SettingsError, match=r"source_vocab \(70\) must equal .*target_vocab \(80\)"
    ):
        recipe_of(tied + "source_vocab = 70\ntarget_vocab = 80\n[tokenizer]\nshared = true")
