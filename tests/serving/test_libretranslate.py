"""LibreTranslate's routes, over a real connection; its own client among the callers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libretranslatepy import LibreTranslateAPI

from regard.serving.languages import Pair
from regard.serving.models import ServedModel
from regard.serving.requests import prepare


def translate(client: httpx.Client, q: Any, **fields: Any) -> dict[str, Any]:
    body = {"q": q, "source": "en", "target": "de", **fields}
    answer = client.post("/translate", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_published_client_works_unchanged(server_url: str) -> None:
    api = LibreTranslateAPI(server_url)
    assert api.translate("badal kofen", "en", "de") == "LADAB NEFOK"
    assert api.detect("badal kofen") == [{"confidence": 100.0, "language": "en"}]
    assert [language["code"] for language in api.languages()] == ["en", "fr", "de"]


def test_languages_have_names_and_targets(client: httpx.Client) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "targets": []},
        {"code": "de", "name": "German", "targets": []},
    ]


def test_frontend_settings_give_the_limits(client: httpx.Client) -> None:
    found = client.get("/frontend/settings").json()
    assert found["charLimit"] == 10_000
    assert not found["keyRequired"]
    assert found["language"]["source"] == {"code": "en", "name": "English"}


@pytest.mark.parametrize(
    ("text", "translated"),
    {
        "a sentence": ("badal kofen", "LADAB NEFOK"),
        "lines": ("badal\nkofen\n\nmigon\n", "LADAB\nNEFOK\n\nNOGIM\n"),
        "windows": ("badal\r\nkofen", "LADAB\r\nNEFOK"),
        "indented": ("  badal\n\tkofen ", "  LADAB\n\tNEFOK "),
        "nothing": ("", ""),
        "only space": (" \n ", " \n "),
    }.values(),
    ids=["a sentence", "lines", "windows", "indented", "nothing", "only space"],
)
def test_line_breaks_and_spaces_are_kept(client: httpx.Client, text: str, translated: str) -> None:
    assert translate(client, text)["translatedText"] == translated


def test_a_list_gives_a_list(client: httpx.Client) -> None:
    assert translate(client, ["badal", "kofen migon", ""]) == {
        "translatedText": ["LADAB", "NEFOK NOGIM", ""]
    }
    assert translate(client, []) == {"translatedText": []}


def test_the_source_language_can_be_detected(client: httpx.Client) -> None:
    known = {"confidence": 100.0, "language": "en"}
    assert translate(client, "badal", source="auto") == {
        "translatedText": "LADAB",
        "detectedLanguage": known,
    }
    assert translate(client, ["badal", "kofen"], source="auto")["detectedLanguage"] == [known] * 2


def test_alternatives_are_other_translations(client: httpx.Client) -> None:
    found = translate(client, "badal kofen", alternatives=3)
    assert found["translatedText"] == "LADAB NEFOK"
    assert len(found["alternatives"]) == 3
    assert found["translatedText"] not in found["alternatives"]
    lists = translate(client, ["badal kofen", "migon"], alternatives=2)["alternatives"]
    assert [len(others) for others in lists] == [2, 2]


@pytest.mark.parametrize(
    ("page", "translated"),
    [
        ("<p>badal <b>kofen</b></p>", "<p>LADAB <b>NEFOK</b></p>"),
        ("badal<br>kofen", "LADAB<br>NEFOK"),
        ("<div><p>badal</p>\n<p>kofen</p></div>", "<div><p>LADAB</p>\n<p>NEFOK</p></div>"),
        ("<i><b><u>badal</u></b> kofen</i>", "<i><b><u>LADAB</u></b> NEFOK</i>"),
        ("<!-- badal --><script>badal</script>", "<!-- badal --><script>badal</script>"),
    ],
)
def test_tags_are_kept(client: httpx.Client, page: str, translated: str) -> None:
    assert translate(client, page, format="html")["translatedText"] == translated


def test_a_form_is_as_good_as_json(client: httpx.Client) -> None:
    fields = {"q": "badal", "source": "en", "target": "de"}
    several = {**fields, "q": ["badal", "kofen"], "alternatives": "1"}
    files = {name: (None, value.encode()) for name, value in fields.items()}
    curl = b' {"q": "badal", "source": "en", "target": "de"}'
    as_form = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/translate", data=fields).json() == {"translatedText": "LADAB"}
    assert client.post("/translate", data=several).json()["translatedText"] == ["LADAB", "NEFOK"]
    assert client.post("/translate", files=files).json() == {"translatedText": "LADAB"}
    assert client.post("/translate", content=curl, headers=as_form).json() == {
        "translatedText": "LADAB"
    }


def test_a_text_in_its_own_language_stays_as_it_is(client: httpx.Client) -> None:
    assert translate(client, "badal", target="en") == {"translatedText": "badal"}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"source": "xx"}, "xx is not supported"),
        ({"target": "xx"}, "xx is not supported"),
        ({"source": "de", "target": "fr"}, "de is not supported"),
    ],
)
def test_a_pair_that_is_not_served_is_named(
    client: httpx.Client, fields: dict[str, str], problem: str
) -> None:
    body = {"q": "badal", "source": "en", "target": "de", **fields}
    answer = client.post("/translate", json=body)
    assert (answer.status_code, answer.json()) == (400, {"error": problem})


def test_answers_are_those_of_the_translator(
    client: httpx.Client, served_models: list[ServedModel]
) -> None:
    """The answers do not depend on other sentences in the batch."""
    from concurrent.futures import ThreadPoolExecutor

    sentences = ["badal rulis", "kofen", "migon zepur batam"]
    expected = {
        model.pair.target: [one.text for one in model.translator.translate(sentences)]
        for model in served_models
    }
    requests = [(target, number) for target in expected for number in range(len(sentences))] * 3

    def ask(one: tuple[str, int]) -> str:
        return translate(client, sentences[one[1]], target=one[0])["translatedText"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, requests)) == [
            expected[target][number] for target, number in requests
        ]


@settings(deadline=None, max_examples=60)
@given(
    st.text(alphabet="ab. \n\r\t\f\u2028<>/&;!?1", max_size=60), st.sampled_from(["text", "html"])
)
def test_any_text_can_be_split_and_put_together_again(text: str, kind: Any) -> None:
    from regard.documents.segments import LinkedText

    prepared = prepare(text, kind=kind, pair=Pair("en", "de"))
    written = prepared.filled([LinkedText(sentence, None) for sentence in prepared.sentences])
    if kind == "text":
        assert written == text
    assert all(sentence.strip() for sentence in prepared.sentences)


def test_unknown_words_are_named(client: httpx.Client) -> None:
    assert translate(client, "Badal kofen.")["unknownWords"] == ["Badal", "kofen."]
    assert translate(client, ["badal", "Kofen"])["unknownWords"] == [[], ["Kofen"]]
    assert "unknownWords" not in translate(client, "badal kofen")
