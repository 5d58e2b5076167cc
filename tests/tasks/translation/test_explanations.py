from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.base.errors import RegardError, SettingsError
from regard.base.special_tokens import BEGIN, END, UNKNOWN
from regard.corpora.parallel import SentencePair
from regard.studies.explanations import grade_explanations
from regard.tasks.translation.explanations import METHODS, explain_translation, methods_of

TEXT, SAID = "badal kofen migon", "LADAB NEFOK NOGIM"


@pytest.fixture(scope="module")
def transformer(random_transformer_run: Path) -> Any:
    return regard.load(random_transformer_run)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_share_to_each_token(transformer: Any, method: str) -> None:
    found = explain_translation(transformer, TEXT, SAID, method=method)
    assert found.values.shape == found.shares.weights.shape
    assert np.isfinite(found.values).all()
    np.testing.assert_allclose(found.shares.weights.sum(axis=1), 1, atol=1e-5)
    if method not in ("gradient", "integrated-gradients", "occlusion"):
        assert (found.values >= -1e-6).all()


def chances(model: Any, source: list[int], target: list[int]) -> torch.Tensor:
    """Return the probabilities of target tokens and end mark, by the model alone."""
    ids = torch.tensor([[*source, END]])
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        features = model.model(ids, mask, torch.tensor([[BEGIN, *target]])).features[0]
    return model.model.project(features).softmax(-1)[range(len(target) + 1), [*target, END]]


def ids_of(model: Any) -> tuple[list[int], list[int]]:
    return model.source_tokenizer.encode(TEXT), model.target_tokenizer.encode(SAID)


def test_occlusion_is_what_an_unknown_word_costs(transformer: Any) -> None:
    source, target = ids_of(transformer)
    found = explain_translation(transformer, TEXT, SAID, method="occlusion").values
    whole = chances(transformer, source, target)
    for place in range(len(source)):
        without = [*source[:place], UNKNOWN, *source[place + 1 :]]
        fall = (whole - chances(transformer, without, target)).numpy()
        np.testing.assert_allclose(found[:, place], fall, atol=1e-6)


def test_integrated_gradients_add_up_to_the_difference(toy_run: Path, transformer: Any) -> None:
    for model in (transformer, regard.load(toy_run)):
        source, target = ids_of(model)
        found = explain_translation(model, TEXT, SAID, method="integrated-gradients").values
        unknown = chances(model, [UNKNOWN] * len(source), target)
        difference = (chances(model, source, target) - unknown).numpy()
        np.testing.assert_allclose(found.sum(axis=1), difference, atol=2e-3)


def test_attention_and_norms_are_those_of_the_model(toy_run: Path, transformer: Any) -> None:
    for model in (regard.load(toy_run), transformer):
        shown = model.translate(TEXT, beam=1)
        found = explain_translation(model, TEXT, shown.text, method="attention")
        np.testing.assert_allclose(found.values, shown.attention.weights, atol=1e-5)
    model = regard.load(toy_run)
    found = explain_translation(model, TEXT, SAID, method="weighted-values").values
    weights = explain_translation(model, TEXT, SAID, method="attention").values
    source, _ = ids_of(model)
    ids = torch.tensor([[*source, END]])
    memory = model.model.encode(ids, torch.ones_like(ids, dtype=torch.bool)).memory[0]
    np.testing.assert_allclose(found, weights * memory.norm(dim=-1).numpy(), atol=1e-5)


def test_rollout_follows_the_weights(transformer: Any) -> None:
    source, target = ids_of(transformer)
    ids = torch.tensor([[*source, END]])
    with torch.no_grad():
        maps = transformer.model.head_maps(
            ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[BEGIN, *target]])
        )
    encoder, decoder, cross = (
        part.mean(dim=2)[:, 0].numpy() for part in (maps.encoder, maps.decoder, maps.cross)
    )
    read, found = np.eye(len(source) + 1), np.zeros((len(target) + 1, len(source) + 1))
    for layer in encoder:
        read = (layer + np.eye(len(layer))) / 2 @ read
    for own, across in zip(decoder, cross, strict=True):
        found = (own + np.eye(len(own))) / 2 @ found
        found = found / 2 + across @ read / 2
    values = explain_translation(transformer, TEXT, SAID, method="rollout").values
    np.testing.assert_allclose(values, found, atol=1e-5)


def test_a_trained_model_is_explained_by_the_right_words(toy_run: Path) -> None:
    model = regard.load(toy_run)
    assert "rollout" not in methods_of(model)
    found = explain_translation(model, TEXT, SAID, method="occlusion")
    assert found.by_word().weights[0].argmax() == 0


def test_results_show_themselves(toy_run: Path, tmp_path: Path) -> None:
    every = regard.explain(toy_run, TEXT)
    assert [each.method for each in every] == list(methods_of(regard.load(toy_run)))
    assert "<svg" in every[0]._repr_html_()
    assert every[0].to_dict()["method"] == "attention"
    every[0].save(tmp_path / "map.csv")
    assert (tmp_path / "map.csv").is_file()


def test_refusals(toy_run: Path) -> None:
    with pytest.raises(SettingsError, match="rollout needs the layers and heads of a Transformer"):
        regard.explain(toy_run, TEXT, methods=["rollout"])
    with pytest.raises(SettingsError, match="method"):
        regard.explain(toy_run, TEXT, methods=["magic"])
    with pytest.raises(RegardError, match="nothing to explain"):
        explain_translation(regard.load(toy_run), " ", "x")
    with pytest.raises(SettingsError, match="those of translations"):
        regard.explain(object(), TEXT)
    with pytest.raises(RegardError, match="no test sentence"):
        grade_explanations(toy_run, pairs=[SentencePair("badal " * 30, "x")])


def test_grades(toy_run: Path, transformer: Any) -> None:
    gold = tuple((place, place) for place in range(3))
    pairs = [SentencePair(TEXT, SAID, alignment=gold), SentencePair("migon badal", "NOGIM LADAB",
             alignment=gold[:2])]  # fmt: skip
    found = grade_explanations(toy_run, pairs=pairs, sentences=2)
    assert found["occlusion"].deletion.value < found["random"].deletion.value
    assert found["occlusion"].insertion.value > found["random"].insertion.value
    assert found["occlusion"].alignment_error is not None
    assert found["random"].alignment_error is None
    assert "deletion" in str(found)
    assert "<table>" in found._repr_html_()
    assert found.to_dict()["sentences"] == 2
    heads = grade_explanations(transformer, pairs=pairs, methods=["best-head"])
    assert heads.head is not None
    plain = grade_explanations(toy_run, pairs=[SentencePair(TEXT, SAID)], methods=["attention"])
    assert plain["attention"].alignment_error is None
