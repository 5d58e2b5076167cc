"""The routes of the panels: a head's numbers, interventions and the layer lens."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from regard.base.special_tokens import END
from regard.tasks.translation.trace import trace_translator

SENTENCE = "badal kofen migon"


def post(client: httpx.Client, path: str, **fields: Any) -> httpx.Response:
    return client.post(path, json={"q": SENTENCE, "model": "transformer", **fields})


@pytest.mark.parametrize(("model", "part"), [("transformer", "encoder"), ("attention", "cross")])
def test_a_head_has_the_numbers_of_the_trace(client, served_models, model, part):
    found = post(client, "/head", model=model, part=part).json()
    loaded = {each.name: each.translator for each in served_models}[model]
    trace = trace_translator(loaded, SENTENCE)
    assert found["output"] == trace.output
    for name, array in found["arrays"].items():
        values = trace[f"{part}.0.{name}"]
        headed = "head" in next(a.axes for a in trace.inside if a.name == f"{part}.0.{name}")
        assert np.array_equal(array["values"], values[0] if headed else values)
    assert {"scores", "weights", "V", "Z"} <= set(found["arrays"])


def test_the_translation_may_be_given(client, served_models):
    loaded = served_models[0].translator
    ids = loaded.target_tokenizer.encode("LADAB NEFOK")
    found = post(client, "/head", tokens=ids).json()
    assert found["output"] == "LADAB NEFOK"
    again = post(client, "/head", tokens=[*ids, END]).json()
    assert again == found
    lens = post(client, "/lens", tokens=ids).json()
    assert lens["said"] == ["LADAB", "NEFOK", "</s>"]


def test_the_built_in_corpus_is_searched(served_models):
    from regard.serving.inspection import WhereRequest, places_found
    from regard.serving.limits import ServerSettings
    from regard.tasks.translation.data import grammar_splits
    from regard.tasks.translation.model import LoadedTranslator
    from regard.tasks.translation.search import GazeQuery, find_gazes

    loaded = served_models[1].translator
    grammar = loaded.recipe.data.grammar.model_copy(
        update={"size": 40, "valid_size": 1, "test_size": 1, "max_words": 8}
    )
    data = loaded.recipe.data.model_copy(update={"built_in": True, "grammar": grammar})
    built_in = LoadedTranslator(
        model=loaded.model,
        source_tokenizer=loaded.source_tokenizer,
        target_tokenizer=loaded.target_tokenizer,
        recipe=loaded.recipe.model_copy(update={"data": data}),
    )
    pairs = list(grammar_splits(grammar).train)
    attends, attended = pairs[0].target.split()[0], pairs[0].source.split()[0]
    asked = WhereRequest(attends=attends, attended=attended, least=0.01)
    found = places_found(built_in, asked, ServerSettings())
    query = GazeQuery(attends=attends, attended=attended, least=0.01)
    expected = find_gazes(built_in, pairs, query)
    assert found["count"] == len(expected) > 0
    assert found["places"][0] == expected[0].to_dict()


@pytest.mark.parametrize(
    ("path", "fields", "status", "message"),
    [
        ("/head", {"head": 9}, 400, "There is no head 9: the layer has 2"),
        ("/head", {"layer": 7}, 400, "no attention in layer 7 of 'cross'"),
        ("/head", {"part": "sideways"}, 400, "no attention in layer 0 of 'sideways'"),
        ("/head", {"layer": -1}, 400, "layer"),
        ("/head", {"q": " "}, 400, "q is empty"),
        ("/head", {"q": "badal " * 200}, 413, "a view is for at most 100"),
        ("/head", {"q": "x" * 10_001}, 413, "more than 10000"),
        ("/head", {"tokens": [10**9]}, 400, "tokens holds 1000000000"),
        ("/head", {"tokens": [5] * 500}, 413, "tokens has 500 ids"),
        ("/lens", {"model": "attention"}, 400, "lens is for Transformers"),
        ("/lens", {"model": "nobody"}, 404, "There is no model 'nobody'"),
        ("/film", {}, 400, "This training was not filmed"),
        ("/where", {"attends": "a", "attended": "b"}, 400, "searches the built-in corpus only"),
        ("/where", {"attends": "", "attended": "b"}, 400, "attends"),
        ("/where", {"attends": "a" * 101, "attended": "b"}, 400, "attends"),
        ("/intervene", {}, 400, "There is nothing to change"),
        ("/intervene", {"off": ["9.9"]}, 400, "There is no layer 9 in cross"),
        ("/intervene", {"hide": ["nobody"]}, 400, "The source has no word 'nobody'"),
        ("/intervene", {"hide": ["x"] * 101}, 400, "hide"),
        ("/intervene", {"hide": ["x" * 2001]}, 400, "hide"),
        ("/intervene", {"force": ["0=#0:0.5"]}, 400, "weights are not negative and sum to 1"),
        ("/intervene", {"patch": ["a=b"], "other": "b " * 200}, 413, "at most 100"),
    ],
)
def test_what_cannot_be_shown_is_refused(client, path, fields, status, message):
    response = post(client, path, **fields)
    assert response.status_code == status
    assert message in response.json()["error"]
