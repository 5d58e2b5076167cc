"""Options that other people's recurrent translators need, and what must hold for each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings

SMALL: dict[str, Any] = {"hidden": 8, "embedding": 5, "cell": "gru", "layers": 2}
OPTIONS: dict[str, dict[str, Any]] = {
    "zero": {"start": "zero"},
    "F-LSTM": {"cell": "lstm", "cell_rank": 3},
    "G-LSTM, input feeding": {
        "cell": "lstm",
        "cell_groups": 2,
        "embedding": 6,
        "input_feeding": True,
    },
    "G-LSTM, Bahdanau": {
        "cell": "lstm",
        "cell_groups": 2,
        "embedding": 6,
        "decoder": "bahdanau",
        "attention": "additive",
    },
    "GNMT": {
        "cell": "lstm",
        "layers": 3,
        "residual": True,
        "upper_layers": "forward",
        "decoder": "bahdanau",
        "attention": "additive",
    },
    "residual, GRU": {"layers": 3, "residual": True, "upper_layers": "forward"},
    "residual, sum, input feeding": {"residual": True, "query": "sum", "input_feeding": True},
    "residual, one direction": {"residual": True, "bidirectional": False, "cell": "gated"},
    "mean": {"start": "mean", "cell": "lstm"},
    "bridge, Bahdanau": {"start": "bridge", "decoder": "bahdanau", "attention": "additive"},
    "sum": {"query": "sum"},
    "sum, input feeding": {"query": "sum", "input_feeding": True, "combination_bias": True},
    "sum, Bahdanau": {"query": "sum", "decoder": "bahdanau", "attention": "bilinear"},
    "own encoder": {
        "encoder_hidden": 6,
        "encoder_layers": 1,
        "start": "mean",
        "attention": "additive",
        "score_biases": True,
    },
    "own encoder, Bahdanau": {
        "encoder_hidden": 12,
        "encoder_layers": 3,
        "start": "bridge",
        "decoder": "bahdanau",
        "attention": "multi-head",
        "readout": 5,
    },
    "own encoder, no attention": {
        "encoder_hidden": 6,
        "start": "zero",
        "decoder": "bahdanau",
        "attention": "none",
        "combination_bias": True,
    },
    "bottleneck": {"readout": 5, "input_feeding": True, "output_bias": False},
    "biases": {"attention": "bilinear", "score_biases": True, "combination_bias": True},
    "shared": {"decoder": "shared", "bidirectional": False, "start": "zero", "query": "sum"},
}
named = pytest.mark.parametrize("options", list(OPTIONS.values()), ids=list(OPTIONS))
SOURCE = torch.tensor([[4, 5, 6, 7], [8, 9, 0, 0]])
MASK = SOURCE > 0
TARGET = torch.tensor([[2, 7, 4, 5, 9], [2, 5, 6, 4, 8]])


def model_of(options: dict[str, Any]) -> Translator[Any]:
    torch.manual_seed(1)
    settings = RecurrentSettings(**(SMALL | options))
    model = build_translator(settings, source_vocab=11, target_vocab=11).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.1 * torch.randn_like(parameter)
    return model


@named
@torch.no_grad()
def test_steps_equal_the_full_pass(options: dict[str, Any]) -> None:
    model = model_of(options)
    full = model(SOURCE, MASK, TARGET, with_weights=True)
    logits, state = model.project(full.features), model.start(model.encode(SOURCE, MASK))
    for position in range(5):
        step = model.step(TARGET[:, position], state, with_weights=True)
        torch.testing.assert_close(step.logits, logits[:, position])
        state = step.state


@named
@torch.no_grad()
def test_padding_and_the_future_never_matter(options: dict[str, Any]) -> None:
    model = model_of(options)
    full = model(SOURCE, MASK, TARGET).features
    alone = model(SOURCE[1:, :2], MASK[1:, :2], TARGET[1:]).features
    torch.testing.assert_close(alone, full[1:])
    changed = TARGET.clone()
    changed[:, 3:] = 10
    torch.testing.assert_close(model(SOURCE, MASK, changed).features[:, :3], full[:, :3])


@named
def test_every_parameter_learns(options: dict[str, Any]) -> None:
    model = model_of(options).train()
    model.project(model(SOURCE, MASK, TARGET).features).logsumexp(-1).sum().backward()
    without = {name for name, p in model.named_parameters() if p.grad is None}
    # Nothing but its last state leaves an encoder whose memory nobody looks at.
    assert not without or options.get("attention") == "none"


@torch.no_grad()
def test_the_first_state_is_the_one_that_was_chosen() -> None:
    encoded = model_of({}).encode(SOURCE, MASK)
    (zero,) = model_of({"start": "zero"}).start(encoded).cells
    assert zero.shape == (2, 2, 8)
    assert not zero.any()
    for kind in ("mean", "bridge"):
        model: Any = model_of({"start": kind})
        weights = model.decoder.starter.projection
        mean = torch.stack([encoded.memory[0].mean(0), encoded.memory[1, :2].mean(0)])
        summary = mean if kind == "mean" else encoded.summary[0][-1]
        (found,) = model.start(encoded).cells
        torch.testing.assert_close(found, torch.tanh(weights(summary)).expand(2, -1, -1))


@torch.no_grad()
def test_the_sum_of_all_layers_asks() -> None:
    model: Any = model_of({"query": "sum", "cell": "tanh"})
    encoded = model.encode(SOURCE, MASK)
    step = model.step(TARGET[:, 0], model.start(encoded), with_weights=True)
    asked = step.state.cells[0].sum(dim=0)
    scores = (encoded.memory @ asked[:, :, None])[..., 0].masked_fill(~MASK, -torch.inf)
    torch.testing.assert_close(step.weights, scores.softmax(-1))
    assert model.decoder.formulas()["query"] == "sum_l s_i^l"


@torch.no_grad()
def test_biases_stand_where_published_models_have_them() -> None:
    additive: Any = model_of({"attention": "additive", "score_biases": True}).decoder
    score = additive.lookup.score
    s, h = torch.randn(1, 1, 8), torch.randn(1, 1, 8)
    expected = score.readout(torch.tanh(score.query_weights(s) + score.key_weights(h)))
    torch.testing.assert_close(score(s, score.prepare(h)), expected)
    assert score.key_weights.bias is not None
    bilinear: Any = model_of({"attention": "bilinear", "score_biases": True}).decoder
    score = bilinear.lookup.score
    expected = (h @ score.weights.weight + score.bias) @ s.mT
    torch.testing.assert_close(score(s, score.prepare(h)), expected)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "odd encoder": (
        {"encoder_hidden": 5, "start": "zero", "attention": "additive"},
        "encoder_hidden (5) must be even when bidirectional",
    ),
    "handing on": ({"encoder_layers": 3}, 'use start = "zero", "mean" or "bridge"'),
    "widths": (
        {"encoder_hidden": 6, "start": "zero"},
        'attention = "dot" needs one width for encoder_hidden (6) and hidden (8)',
    ),
    "score": ({"score_biases": True}, 'attention = "dot" has no biases'),
    "readout": ({"readout": 4, "attention": "none"}, "leave it out"),
    "shared": (
        {"decoder": "shared", "bidirectional": False, "output_bias": False},
        "no output bias to leave out",
    ),
}


@pytest.mark.parametrize(("changes", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RecurrentSettings(**(SMALL | changes))
    assert message in str(caught.value)
