from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.base.errors import RunError, SettingsError
from regard.models.build import TRANSLATORS, TransformerPlan, build_translator
from regard.models.inspection import parameter_count
from regard.models.language_model import build_language_model
from regard.models.sizes import build_for
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.models import (
    RecurrentSettings,
    TransformerSettings,
)


def test_every_family_of_the_settings_can_be_built() -> None:
    assert RecurrentSettings().family in TRANSLATORS


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        # embeddings 2 * 10 * 4; encoder 2 directions of 4h(h+i)+4h with h = 3;
        # decoder 4h(h+i)+4h with h = 6; combine 12 * 6; projection 6 * 10 + 10
        ({}, 80 + 2 * (12 * 7 + 12) + (24 * 10 + 24) + 72 + 70),
        ({"attention": "none"}, 80 + 2 * (12 * 7 + 12) + (24 * 10 + 24) + 70),
        # W, U and v of the additive score: 6 * 6 + 6 * 6 + 6
        ({"attention": "additive"}, 80 + 2 * (12 * 7 + 12) + (24 * 10 + 24) + 72 + 70 + 78),
        ({"bidirectional": False}, 80 + 2 * (24 * 10 + 24) + 72 + 70),
        # h^T W s: 6 * 6
        ({"attention": "bilinear"}, 80 + 2 * (12 * 7 + 12) + (24 * 10 + 24) + 72 + 70 + 36),
        # W^q, W^k, W^v: 3 * 6 * 6
        ({"attention": "parameterised"}, 80 + 2 * (12 * 7 + 12) + (24 * 10 + 24) + 72 + 70 + 108),
        # the decoder reads 6 features more, and its readout has 4 + 6 + 6 inputs
        ({"decoder": "bahdanau"}, 80 + 2 * (12 * 7 + 12) + (24 * 16 + 24) + 96 + 70),
        ({"input_feeding": True}, 80 + 2 * (12 * 7 + 12) + (24 * 16 + 24) + 72 + 70),
        # two gates without bias
        ({"cell": "gated"}, 80 + 2 * (6 * 7) + 12 * 10 + 72 + 70),
        # no word vectors: 10 inputs; no attention
        (
            {"one_hot": True, "attention": "none", "bidirectional": False},
            2 * (24 * 16 + 24) + 70,
        ),
        # one recurrent matrix of 6 * 6, and an output of 12 * 10 without bias
        (
            {"cell": "tanh", "decoder": "shared", "bidirectional": False},
            80 + 2 * (6 * 4 + 6) + 36 + 120,
        ),
        ({"cell": "tanh", "bidirectional": False}, 80 + 2 * (6 * 10 + 6) + 72 + 70),
    ],
)
def test_parameters(changes: dict[str, object], expected: int) -> None:
    settings = RecurrentSettings.model_validate({"hidden": 6, "embedding": 4, **changes})
    model = build_translator(settings, source_vocab=10, target_vocab=10)
    assert parameter_count(model) == expected


def test_one_seed_gives_one_model() -> None:
    settings = RecurrentSettings(hidden=6, embedding=4)
    models = []
    for _ in range(2):
        torch.manual_seed(3)
        models.append(build_translator(settings, source_vocab=10, target_vocab=10))
    for first, second in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(first, second)


def test_an_unknown_attention_is_named_with_the_nearest() -> None:
    settings = RecurrentSettings(attention="addditive")
    message = "Unknown model.attention 'addditive'. Did you mean 'additive'?"
    with pytest.raises(SettingsError, match=message):
        build_translator(settings, source_vocab=10, target_vocab=10)


# What is set, and what must stand in the message; all but sizes are checked against registries.
TRANSFORMER_MISTAKES: dict[str, tuple[dict[str, object], str]] = {
    "positions": (
        {"positions": "rotry"},
        "Unknown model.positions 'rotry'. Did you mean 'rotary'?",
    ),
    "score": ({"score": "adding"}, "Unknown model.score 'adding'. Did you mean 'additive'?"),
    "score with values": ({"score": "multi-head"}, "Unknown model.score 'multi-head'."),
    "linear": (
        {"kernel": "linear", "score": "additive"},
        'model.score = "additive" and model.kernel = "linear" exclude each other',
    ),
    "relative": (
        {"positions": "relative", "score": "additive"},
        'model.score = "additive" and model.positions = "relative" exclude each other',
    ),
}


@pytest.mark.parametrize(
    ("changes", "message"), TRANSFORMER_MISTAKES.values(), ids=TRANSFORMER_MISTAKES.keys()
)
def test_parts_of_a_transformer_come_from_registries(
    changes: dict[str, object], message: str
) -> None:
    settings = TransformerSettings.model_validate(changes)
    with pytest.raises(SettingsError, match=re.escape(message)):
        build_translator(settings, source_vocab=10, target_vocab=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kernel": "linear", "positions": "alibi"},
            'model.kernel = "linear" has no scores that model.positions = "alibi" could change',
        ),
        (
            {"model_dim": 9, "heads": 3},
            'model.positions = "sinusoidal": sinusoidal positions: model_dim (9) must be even',
        ),
    ],
)
def test_a_plan_is_checked_without_settings(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(message)):
        TransformerPlan(**changes).translator(source_vocab=10, target_vocab=10)


def test_a_language_model_names_unknown_positions() -> None:
    settings = CausalTransformerSettings(positions="learnd")
    message = "Unknown model.positions 'learnd'. Did you mean 'learned'?"
    with pytest.raises(SettingsError, match=re.escape(message)):
        build_language_model(settings, vocab=10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention": "multi-head", "hidden": 6, "heads": 4}, r"hidden \(6\).*heads \(4\)"),
        ({"input_feeding": True, "attention": "none"}, 'input_feeding needs decoder = "luong"'),
        ({"input_feeding": True, "decoder": "bahdanau"}, 'given: decoder "bahdanau"'),
        ({"decoder": "shared"}, 'decoder = "shared" needs bidirectional = false'),
        (
            {"shared_inputs": True},
            'shared_inputs = true needs decoder = "shared" and cell = "tanh" or "gated"',
        ),
        (
            {
                "decoder": "shared",
                "cell": "tanh",
                "bidirectional": False,
                "shared_inputs": True,
                "one_hot": True,
            },
            "shared_inputs = true needs one width of inputs for both languages",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RecurrentSettings.model_validate(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"layers": 512},
        {"model_dim": 131_072, "feed_forward": 131_072},
        {"positions": "learned", "max_length": 1_000_000},
    ],
    ids=["a little larger", "layers", "width", "positions"],
)
def test_a_model_far_larger_than_its_weights_is_refused_before_it_is_built(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(bytes(1_000))
    settings = TransformerSettings.model_validate({"heads": 1, **changes})
    message = "a model of more than 1.0 MB, but the weights in .* do not belong together"
    with pytest.raises(RunError, match=message):
        build_for(lambda: build_translator(settings, source_vocab=10, target_vocab=10), tmp_path)


def test_a_model_is_built_for_its_weights_though_other_threads_build_larger_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "model.safetensors").write_bytes(bytes(1_000))

    def build() -> torch.nn.Module:
        other = threading.Thread(target=lambda: torch.nn.Linear(2_000, 2_000))
        other.start()
        other.join()
        tied = torch.nn.Linear(300, 300)
        return torch.nn.ModuleList([_with_weight(tied) for _ in range(20)])

    def _with_weight(tied: torch.nn.Linear) -> torch.nn.Linear:
        layer = torch.nn.Linear(1, 1)
        layer.weight = tied.weight
        return layer

    assert parameter_count(build_for(build, tmp_path)) == 300 * 300 + 20
