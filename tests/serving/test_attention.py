"""Attention requests to models that the shared test server does not have."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from regard.models.build import build_translator
from regard.serving.app import create_app
from regard.serving.attention import AttentionRequest, attention_view, encode_request
from regard.serving.languages import Pair
from regard.serving.models import ServedModel
from regard.tasks.translation.model import LoadedTranslator


def changed(
    loaded: LoadedTranslator, *, model: dict[str, Any] | None = None, **decoding: Any
) -> LoadedTranslator:
    """Return a translator with other settings; with those of the model its weights are random."""
    recipe = loaded.recipe
    settings = recipe.model.model_copy(update=model or {})
    sizes = (loaded.source_tokenizer.size, loaded.target_tokenizer.size)
    built = build_translator(settings, source_vocab=sizes[0], target_vocab=sizes[1])
    searched = recipe.decoding.model_copy(update=decoding)
    return LoadedTranslator(
        model=built.eval() if model else loaded.model,
        source_tokenizer=loaded.source_tokenizer,
        target_tokenizer=loaded.target_tokenizer,
        recipe=recipe.model_copy(update={"model": settings, "decoding": searched}),
    )


def view(translator: LoadedTranslator, **fields: Any) -> dict[str, Any]:
    request = AttentionRequest(**{"q": "badal kofen", **fields})
    encoded = encode_request(translator, request, max_tokens=50, max_beam=9)
    return attention_view(translator, "it", encoded)


@pytest.fixture
def trained(served_models: list[ServedModel]) -> LoadedTranslator:
    return served_models[1].translator


def test_a_model_without_attention_shows_the_rest(trained: LoadedTranslator) -> None:
    plain = changed(trained, model={"attention": "none"}, max_length=4)
    seen = view(plain, beam=2)
    assert [seen[name] for name in ("cross", "encoder", "decoder", "mean")] == [None] * 4
    assert len(seen["steps"]) == len(seen["target"]["tokens"])
    description = ServedModel("plain", Pair("en", "de"), plain).description()
    assert (description["attends"], description["layers"], description["heads"]) == (False, 0, 0)


def test_an_unknown_word_is_replaced_as_in_translating(trained: LoadedTranslator) -> None:
    assert view(trained, prefix_tokens=[1])["text"].startswith("<unk>")
    seen = view(changed(trained, replace_unknown=True), prefix_tokens=[1])
    assert seen["text"].split()[0] in ("badal", "kofen")
    assert seen["target"]["word_texts"][0] == seen["text"].split()[0]


@pytest.mark.parametrize(("beam", "shown"), [(None, 5), (2, 2)])
def test_a_model_that_samples_is_shown_with_a_beam(
    trained: LoadedTranslator, beam: int | None, shown: int
) -> None:
    seen = view(changed(trained, method="sample", temperature=0.7), beam=beam)
    assert (seen["text"], len(seen["beams"])) == ("LADAB NEFOK", shown)


def test_languages_that_are_both_served_need_not_be_a_pair(trained: LoadedTranslator) -> None:
    models = [
        ServedModel(str(pair), pair, trained) for pair in (Pair("en", "fr"), Pair("de", "en"))
    ]
    with TestClient(create_app(models)) as client:
        fields = {"q": "badal", "source": "de", "target": "fr"}
        assert client.post("/translate", json=fields).json() == {
            "error": "French (fr) is not available as a target language from German (de)"
        }
