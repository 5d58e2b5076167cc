"""Traced values follow from each other by the formulas that stand beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from regard.base.errors import SettingsError
from regard.models.inspection import Trace
from regard.models.language_model import build_language_model
from regard.models.text_classifier import classifier_of
from regard.settings.recipe import validate
from regard.tasks import find_recipe, trace_recipe
from regard.tasks.language_modelling.model import LoadedLanguageModel
from regard.tasks.language_modelling.trace import trace_classifier, trace_language_model
from regard.tasks.text_classification.model import LoadedTextClassifier
from regard.text.tokenizers import RunningText, train_tokenizer

SENTENCE = "to be or not to be"
TINY = ["model.layers=2", "model.model_dim=8", "model.heads=2", "model.feed_forward=16",
        "tokenizer.kind=word", "model.dropout=0"]  # fmt: skip
SMALL = ["model.hidden=6", "model.embedding=4", "tokenizer.kind=word", "model.dropout=0"]


def trace(recipe: str, *overrides: str, text: str = SENTENCE) -> Trace:
    return trace_recipe(find_recipe(recipe, overrides=list(overrides)), text)


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("place", ["encoder.1", "decoder.0", "cross.1"])
def test_a_transformer_shows_every_number(place: str, placement: str) -> None:
    found = trace("transformer-tiny", *TINY, f"model.norm_placement={placement}")
    q, k, v = (found[f"{place}.{name}"] for name in "QKV")
    np.testing.assert_allclose(found[f"{place}.QK^T"], q @ k.transpose(0, 2, 1), atol=1e-5)
    scores = found[f"{place}.QK^T"] / np.sqrt(q.shape[2])
    np.testing.assert_allclose(found[f"{place}.scores"], scores, atol=1e-5)
    mask = np.tril(np.ones(scores.shape[1:])) if "decoder" in place else np.ones(scores.shape[1:])
    if "decoder" in place:
        np.testing.assert_array_equal(found[f"{place}.mask"][0], mask)
    weights = softmax(np.where(mask > 0, scores, -np.inf))
    np.testing.assert_allclose(found[f"{place}.weights"], weights, atol=1e-5)
    np.testing.assert_allclose(found[f"{place}.Z"], weights @ v, atol=1e-5)
    residual = found[f"{place}.features"] + found[f"{place}.ZW^O"]
    np.testing.assert_allclose(found[f"{place}.residual"], residual, atol=1e-5)
    if placement == "post":
        np.testing.assert_array_equal(found[f"{place}.X"], found[f"{place}.features"])
        np.testing.assert_allclose(found[f"{place}.norm"].mean(axis=1), 0, atol=1e-5)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_layer_reads_what_the_one_below_gives(placement: str) -> None:
    found = trace("transformer-tiny", *TINY, f"model.norm_placement={placement}")
    for part in ("encoder", "decoder"):
        np.testing.assert_allclose(
            found[f"{part}.1.features"], found[f"{part}.0.output"], atol=1e-5
        )


@pytest.mark.parametrize("cell", ["lstm", "gru", "gated", "tanh"])
@pytest.mark.parametrize("recipe", ["luong", "bahdanau"])
def test_gates_lead_to_the_states(recipe: str, cell: str) -> None:
    found = trace(recipe, *SMALL, f"model.cell={cell}")
    states = [found["encoder.0.h forward"], found["encoder.0.h backward"]]
    np.testing.assert_allclose(np.concatenate(states, 1), found["encoder_state"], atol=1e-5)
    np.testing.assert_allclose(found["decoder.0.h"], found["decoder_state"], atol=1e-5)
    if cell == "lstm":
        f, i, o, new, c = (found[f"decoder.0.{name}"] for name in ("f", "i", "o", "c~", "c"))
        np.testing.assert_allclose(c[1:], f[1:] * c[:-1] + i[1:] * new[1:], atol=1e-5)
        np.testing.assert_allclose(found["decoder.0.h"], o * np.tanh(c), atol=1e-5)


@pytest.mark.parametrize("recipe", ["luong", "bahdanau"])
def test_parameterised_attention_shows_queries_keys_and_values(recipe: str) -> None:
    found = trace(recipe, *SMALL, "model.attention=parameterised")
    q, k, v = (found[f"cross.0.{name}"] for name in "qkv")
    np.testing.assert_allclose(found["score"], q @ k.T, atol=1e-5)
    np.testing.assert_allclose(found["context"], found["weight"] @ v, atol=1e-5)


def test_windows_of_a_series_and_the_bias_of_attention() -> None:
    first, last, third = (trace("fibonacci-lecture", text=text) for text in ("first", "last", "@2"))
    assert first["input"][2] == third["input"][0]
    assert last["input"][-1] > first["input"][-1]
    assert first["bias"].shape == first["context"].shape
    np.testing.assert_allclose(first["rnn.0.h"], first["state"])
    with pytest.raises(Exception, match="There is no window at 99999: the series has"):
        trace("fibonacci-lecture", text="@99999")


def language_model(**settings: Any) -> LoadedLanguageModel:
    recipe: Any = find_recipe("gpt-nano")
    text = RunningText(train_tokenizer(["abc def."], kind="character"))
    table = {**recipe.model_dump(exclude_unset=True), "model": settings}
    recipe = validate(table, type(recipe), origin="")
    torch.manual_seed(1)
    network = build_language_model(recipe.model, vocab=text.size).eval()
    return LoadedLanguageModel(model=network, text=text, recipe=recipe)


SETTINGS: dict[str, dict[str, Any]] = {
    "transformer": {"layers": 2, "model_dim": 16, "heads": 2, "context": 24},
    "bidirectional": {"family": "bidirectional", "layers": 2, "model_dim": 16, "heads": 2,
                      "context": 24},
    "recurrent": {"family": "recurrent", "cell": "gru", "hidden": 8, "embedding": 4},
}  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_language_models_are_traced(settings: dict[str, Any]) -> None:
    model = language_model(**settings)
    found = trace_language_model(model, "abca")
    np.testing.assert_allclose(found["probability"].sum(axis=1), 1, rtol=1e-5)
    if "heads" in settings:
        part = "encoder" if settings.get("family") == "bidirectional" else "decoder"
        z = found[f"{part}.1.weights"] @ found[f"{part}.1.V"]
        np.testing.assert_allclose(found[f"{part}.1.Z"], z, atol=1e-5)
    else:
        np.testing.assert_allclose(found["decoder.0.h"], found["features"], atol=1e-5)
    record = found.to_dict()
    assert len(record["layers"]) == len(found.inside)


def test_classifiers_are_traced() -> None:
    base = language_model(**SETTINGS["transformer"])
    recipe: Any = find_recipe("text-classifier", overrides=["model.context=24"])
    network = classifier_of(base.model, labels=2).eval()
    model = LoadedTextClassifier(model=network, text=base.text, labels=("no", "yes"), recipe=recipe)
    found = trace_classifier(model, "abc")
    assert found.output == ("no", "yes")[int(found["logit"].argmax())]
    assert "decoder.0.Q" in [array.name for array in found.inside]
    with pytest.raises(Exception, match="nothing to trace"):
        trace_classifier(model, " ")


def test_tables_of_a_layer() -> None:
    found = trace("transformer-tiny", *TINY)
    tables = dict(found.layer_tables(layer=1, part="cross", head=1, step=2))
    (title,) = (name for name in tables if name.startswith("cross.1.weights"))
    assert title.endswith(", head 1")
    table = tables[title]
    assert table.columns[:3] == ["target", "to", "be"]
    assert len(table.rows) == 1
    expected = [f"{value:.2f}" for value in found["cross.1.weights"][1, 2]]
    assert table.rows[0][1:] == expected
    keys = next(value for name, value in tables.items() if name.startswith("cross.1.K"))
    assert len(keys.rows) == 7
    for options, message in (
        ({"layer": 5}, "no layer 5 in this trace: the layers are 0 to 1"),
        ({"layer": 0, "part": "rnn"}, "no part 'rnn'"),
        ({"layer": 0, "head": 7}, "no head 7"),
        ({"layer": 0, "part": "decoder", "step": 99}, "no step 99"),
    ):
        with pytest.raises(SettingsError, match=message):
            list(found.layer_tables(**options))  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="shows no layers"):
        list(Trace("x", "", "", [], {}).layer_tables(layer=0))


def test_a_mixture_of_experts_shows_its_gate() -> None:
    model = language_model(**SETTINGS["transformer"], experts=3)
    found = trace_language_model(model, "abca")
    scores, gate = found["decoder.1.gate scores"], found["decoder.1.gate"]
    exponentials = np.exp(scores)
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    best = expected == expected.max(axis=1, keepdims=True)
    np.testing.assert_allclose(gate, expected * best, atol=1e-6)
