"""The page's own routes, over a real connection."""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
import pytest

SENTENCE = "badal kofen migon"


def attend(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    answer = client.post("/attend", json={"q": SENTENCE, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_models_are_described_for_the_page(client: httpx.Client) -> None:
    transformer, recurrent = client.get("/models").json()["models"]
    assert transformer["name"] == "transformer"
    assert transformer["family"] == "transformer"
    assert (transformer["layers"], transformer["heads"], transformer["encoder_layers"]) == (2, 2, 2)
    assert (recurrent["layers"], recurrent["heads"], recurrent["encoder_layers"]) == (1, 1, 0)
    assert recurrent["attends"]
    assert (recurrent["source"], recurrent["target"]) == ("en", "de")
    assert recurrent["parameters"] > 1_000
    assert recurrent["examples"]


@pytest.mark.parametrize(("model", "layers", "heads"), [("transformer", 2, 2), ("attention", 1, 1)])
def test_a_view_has_all_its_parts(
    client: httpx.Client, model: str, layers: int, heads: int
) -> None:
    seen = attend(client, model=model)
    source, target = len(seen["source"]["tokens"]), len(seen["target"]["tokens"])
    assert seen["source"]["tokens"][-1] == seen["target"]["tokens"][-1] == "</s>"
    assert seen["source"]["words"] == [0, 1, 2, -1]
    assert seen["source"]["word_texts"] == SENTENCE.split()
    assert np.shape(seen["cross"]) == (layers, heads, target, source)
    np.testing.assert_allclose(np.sum(seen["cross"], axis=-1), 1, atol=1e-3)
    np.testing.assert_allclose(seen["mean"], np.mean(seen["cross"][-1], axis=0), atol=2e-4)
    if model == "transformer":
        assert np.shape(seen["encoder"]) == (2, 2, source, source)
        assert np.shape(seen["decoder"]) == (2, 2, target, target)
    else:
        assert seen["encoder"] is None
        assert seen["decoder"] is None
    assert len(seen["steps"]) == len(seen["target"]["probabilities"]) == target
    assert [step["token"] for step in seen["steps"]] == seen["target"]["tokens"]
    assert len(seen["target"]["ids"]) == target - 1
    assert all(len(step["alternatives"]) == 8 for step in seen["steps"])
    assert seen["beams"][0]["text"] == seen["text"]
    assert len(seen["beams"]) == 5
    assert len(seen["beams"][0]["log_probabilities"]) == target


def test_a_trained_model_is_seen_translating(client: httpx.Client) -> None:
    seen = attend(client, model="attention")
    assert seen["text"] == "LADAB NEFOK NOGIM"
    assert min(seen["target"]["probabilities"]) > 0.5


def test_a_word_can_be_forced(client: httpx.Client) -> None:
    seen = attend(client, model="attention")
    other = seen["steps"][0]["alternatives"][0]
    forced = attend(client, model="attention", prefix_tokens=[other["id"]])
    assert forced["text"].startswith(other["text"])
    assert forced["target"]["ids"][0] == other["id"]
    assert attend(client, model="attention", prefix=other["text"] + " ")["text"].startswith(
        other["text"]
    )


def test_a_translation_can_be_given_to_its_end(client: httpx.Client) -> None:
    ids = attend(client, model="attention")["target"]["ids"]
    ended = attend(client, model="attention", prefix_tokens=[*ids[:2], 3])
    assert ended["target"]["ids"] == ids[:2]
    assert len(ended["beams"]) == 1


def test_the_beam_can_be_chosen(client: httpx.Client) -> None:
    seen = attend(client, model="attention", beam=3, top=2)
    assert len(seen["beams"]) == 3
    assert len(seen["steps"][0]["alternatives"]) == 2


def events(client: httpx.Client, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    answer = client.post("/stream", json={"q": SENTENCE, **fields})
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_translation_streams_in(client: httpx.Client) -> None:
    *tokens, (last, seen) = events(client, model="attention")
    assert {name for name, _ in tokens} == {"token"}
    texts = [data["text"] for _, data in tokens]
    assert texts == ["LADAB", "LADAB NEFOK", "LADAB NEFOK NOGIM"]
    assert last == "done"
    assert seen == attend(client, model="attention")


def test_a_stream_begins_with_what_is_forced(client: httpx.Client) -> None:
    other = attend(client, model="attention")["steps"][0]["alternatives"][0]
    first, *_ = events(client, model="attention", prefix_tokens=[other["id"]])
    assert first == ("token", {"text": other["text"]})


def test_a_stream_says_what_is_wrong(client: httpx.Client) -> None:
    assert events(client, model="attention", beam=50) == [
        ("error", {"error": "beam (50) must not exceed 12.", "status": 400})
    ]


def sent(client: httpx.Client, path: str, **fields: Any) -> list[tuple[str, Any]]:
    """Return the names and the data of all events of an answer."""
    answer = client.post(path, json=fields)
    assert answer.status_code == 200, answer.text
    blocks = [block.split("\n") for block in answer.text.split("\n\n") if block]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in blocks
    ]


def test_a_text_is_translated_whole(client: httpx.Client) -> None:
    q = "badal kofen. Migon rulis!\n\nzepur batam\u2028kodal"
    events = sent(client, "/text", q=q, model="attention")
    assert [name for name, _ in events] == ["sentences", "translations", "done"]
    sentences = events[0][1]["sentences"]
    assert [each["text"] for each in sentences] == [
        "badal kofen.", "Migon rulis!", "zepur batam", "kodal",
    ]  # fmt: skip
    assert [each["gap"] for each in sentences] == [" ", "\n\n", "\n", ""]
    found = events[1][1]
    assert found["from"] == 0
    assert [each["unknown"] for each in found["translations"]] == [
        ["kofen."], ["Migon", "rulis!"], [], [],
    ]  # fmt: skip
    assert [each["text"] for each in found["translations"][2:]] == ["RUPEZ MATAB", "LADOK"]


def test_a_long_text_is_translated_some_sentences_at_a_time(client: httpx.Client) -> None:
    events = sent(client, "/text", q="badal\n" * 40, model="attention")
    parts = [data for name, data in events if name == "translations"]
    assert [part["from"] for part in parts] == [0, 16, 32]
    assert sum(len(part["translations"]) for part in parts) == 40
    assert all(each["text"] == "LADAB" for part in parts for each in part["translations"])


def test_a_sentence_that_cannot_be_translated_stands_alone(client: httpx.Client) -> None:
    events = sent(client, "/text", q="badal\n" + "ko " * 600 + "\nmigon", model="attention")
    one, other, last = events[1][1]["translations"]
    assert (one["text"], last["text"]) == ("LADAB", "NOGIM")
    assert "600 tokens, more than 512" in other["error"]


def test_a_text_that_is_too_long_is_refused(client: httpx.Client) -> None:
    limit = client.get("/models").json()["max_characters"]
    answer = client.post("/text", json={"q": "a" * (limit + 1)})
    assert answer.status_code == 413
    assert f"more than {limit}" in answer.json()["error"]


def test_unknown_words_are_named(client: httpx.Client) -> None:
    seen = attend(client, q="Badal kofen migon.", model="attention")
    assert seen["unknown"] == ["Badal", "migon."]
    assert [seen["source"]["words"][place] for place in seen["source"]["unknown"]] == [0, 2]
    assert attend(client, model="attention")["unknown"] == []
