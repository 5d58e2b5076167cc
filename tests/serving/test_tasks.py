"""Runs of other tasks behind the server: what they say, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient

import regard
from regard.serving.app import create_app
from regard.serving.limits import ServerSettings
from regard.serving.models import stored_models
from regard.tasks.node_classification.views import look_at_node

KEPT = Path(__file__).parents[1] / "upgrades" / "format-1"
RUNS = ("language-model", "text-classifier", "forecaster", "node-classifier")


@pytest.fixture(scope="module")
def tasks() -> Iterator[TestClient]:
    """A client of a server with a run of each task, and no translator."""
    app = create_app(stored_models([KEPT / name for name in RUNS]), ServerSettings(view_tokens=40))
    with TestClient(app) as client:
        yield client


def look(client: TestClient, model: str, q: str, **fields: Any) -> httpx.Response:
    return client.post("/look", json={"q": q, "model": model, **fields})


def test_a_server_without_translators_answers(tasks: TestClient) -> None:
    listed = tasks.get("/models").json()["models"]
    assert [model["task"] for model in listed] == [
        "language-model", "classify-text", "forecast", "classify-nodes"]  # fmt: skip
    assert tasks.get("/health").status_code == tasks.get("/frontend/settings").status_code == 200
    assert tasks.get("/languages").json() == []
    refused = tasks.post("/translate", json={"q": "a", "source": "auto", "target": "de"})
    assert refused.json()["error"] == "This server has no translator."
    refused = tasks.post("/attend", json={"q": "a"})
    assert (refused.status_code, refused.json()["error"]) == (
        404, "There is no translator; there are: none.")  # fmt: skip


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_a_language_model_shows_what_it_expects(tasks: TestClient, temperature: float) -> None:
    import torch

    loaded = regard.load(KEPT / "language-model")
    text = "the cat sees"
    found = look(tasks, "language-model", text, temperature=temperature).json()
    ids = list(loaded.read_ids(text))
    with torch.inference_mode():
        logits = loaded.model.project(loaded.model(torch.tensor([ids])).features[0])
    expected = (logits / max(temperature, 1e-3)).softmax(-1).numpy()
    shown = [step["alternatives"][0]["probability"] for step in found["steps"]]
    assert shown == pytest.approx(expected.max(axis=1).tolist(), abs=1e-5)
    tokens = [step["probability"] for step in found["steps"][:-1]]
    assert tokens == pytest.approx(
        [float(expected[place, token]) for place, token in enumerate(ids[1:])], abs=1e-5
    )
    assert np.allclose(found["encoder"], loaded.heads(text).weights, atol=1e-4)


def test_a_language_model_writes_while_it_is_read(tasks: TestClient) -> None:
    request = {"q": "the cat", "model": "language-model", "max_tokens": 8, "seed": 3}
    lines = tasks.post("/generate", json=request).text.splitlines()
    sent = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    whole = regard.load(KEPT / "language-model").generate(
        "the cat", max_tokens=8, seed=3, temperature=0.8
    )[0]
    assert "".join(each["text"] for each in sent[:-1]) == whole.text == sent[-1]["text"]


def test_a_classifier_shows_which_words_decided(tasks: TestClient) -> None:
    found = look(tasks, "text-classifier", "the cat sees a dog").json()
    evidence = regard.load(KEPT / "text-classifier").explain("the cat sees a dog")
    assert (found["label"], found["words"]) == (evidence.label, list(evidence.words))
    assert found["values"] == pytest.approx(list(evidence.values), abs=1e-6)
    changed = tasks.post(
        "/intervene",
        json={"q": "the cat sees a dog", "model": "text-classifier", "off": ["0.0"]},
    ).json()
    assert changed["before"]["text"] == found["label"]


def test_a_forecaster_shows_its_window(tasks: TestClient) -> None:
    found = look(tasks, "forecaster", "5, 8 13").json()
    loaded = regard.load(KEPT / "forecaster")
    assert found["forecast"] == pytest.approx(loaded.forecast([5.0, 8.0, 13.0]).tolist())
    assert found["window"] == [[5], [8], [13]]
    assert sum(found["weights"]) == pytest.approx(1)
    assert look(tasks, "forecaster", "last").json()["window"][-1][0] > 1e8


def test_a_graph_shows_neighbourhoods(tasks: TestClient) -> None:
    found = look(tasks, "node-classifier", "1").json()
    loaded = regard.load(KEPT / "node-classifier")
    expected = look_at_node(loaded, 1, layer=0, head=0)
    shown = {each["name"]: each["weights"][0][0] for each in found["neighbours"]}
    assert shown == pytest.approx({each.name: each.weight for each in expected}, abs=1e-4)
    assert found["degree"] == len(expected)
    assert {each["name"] for each in found["neighbours"] if each["itself"]} <= {"1"}


@pytest.mark.parametrize(
    ("path", "fields", "status", "message"),
    [
        ("/look", {"model": "language-model", "q": ""}, 400, "q is empty"),
        ("/look", {"model": "language-model", "q": "cat " * 40}, 413, "at most 40"),
        ("/look", {"model": "language-model", "q": "a", "temperature": 9}, 400, "temperature"),
        ("/look", {"model": "text-classifier", "q": " "}, 400, "q is empty"),
        ("/look", {"model": "forecaster", "q": "1, 2"}, 400, "reads 3 numbers"),
        ("/look", {"model": "forecaster", "q": "1, 2, nan"}, 400, "reads 3 numbers"),
        ("/look", {"model": "forecaster", "q": "/etc/passwd.csv"}, 400, "reads 3 numbers"),
        ("/look", {"model": "node-classifier", "q": "99"}, 400, "There is no node '99'"),
        ("/look", {"model": "node-classifier", "q": " "}, 400, "There is no node"),
        ("/look", {"model": "nobody", "q": "1"}, 404, "There is no model 'nobody'"),
        ("/lens", {"model": "text-classifier", "q": "a"}, 400, "has no layer lens"),
        ("/head", {"model": "forecaster", "q": "first"}, 400, "no attention in layer 0"),
        ("/intervene", {"model": "forecaster", "q": "first", "off": ["0"]}, 400, "interventions"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(
    tasks: TestClient, path: str, fields: dict[str, Any], status: int, message: str
) -> None:
    response = tasks.post(path, json=fields)
    assert response.status_code == status
    assert message in response.json()["error"]


def test_only_a_language_model_writes_on(tasks: TestClient) -> None:
    body = tasks.post("/generate", json={"q": "a", "model": "text-classifier"}).text
    assert "Only a language model writes on." in body
    too_many = tasks.post("/generate", json={"q": "a", "model": "language-model",
                                             "max_tokens": 10**6})  # fmt: skip
    assert too_many.status_code == 400
