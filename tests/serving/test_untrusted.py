"""Requests that cannot be served: each is answered with a status and a message."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from regard.serving import server
from regard.serving.limits import Keys

FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PART = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
# It took Python's own parser of messages 76 seconds.
SEMICOLONS = b"--x\r\nContent-Disposition: form-data" + b";" * 170_000 + b"\r\n\r\na\r\n--x--"
SECONDS = 5
PAIR = {"source": "en", "target": "de"}


def body(**fields: Any) -> bytes:
    return json.dumps({**PAIR, **fields}).encode()


BAD_BODIES: dict[str, tuple[bytes, str, int, str]] = {
    "empty": (b"", "application/json", 400, "The request is neither JSON nor a form."),
    "not JSON": (b"q=", "application/json", 400, "The request is neither JSON nor a form."),
    "not an object": (b"[1]", "application/json", 400,
                      'The request must be a JSON object, as {"q": ...}.'),
    "deep JSON": (b"[" * 50_000, "application/json", 400,
                  "The request is neither JSON nor a form."),
    "a huge number": (b"9" * 5_000, "application/json", 400,
                      "The request is neither JSON nor a form."),
    "invalid UTF-8": (b'{"q": "\xff"}', "application/json", 400,
                      "The request is not UTF-8 (byte 7)."),
    "invalid UTF-8 in a form": (b"q=%ff&source=en&target=de", FORM, 400, "The form is not UTF-8."),
    "raw invalid UTF-8 in a form": (b"q=\xff", FORM, 400, "The form is not UTF-8."),
    "too many fields": (b"&".join([b"a=1"] * 5_000) + b"&q=%zz", FORM, 400,
                        "The form has more than 1020 fields."),
    "no boundary": (b"q", MULTIPART, 400, "The form is not valid multipart/form-data."),
    "a long boundary": (b"q", MULTIPART + "; boundary=" + "x" * 5_000, 400,
                        "The form is not valid multipart/form-data."),
    "a cut form": (b'--x\r\nContent-Dispo', f"{MULTIPART}; boundary=x", 400,
                   "Invalid request: missing q parameter"),
    "parts without names": (b'--x\r\nA: b\r\n\r\n\r\n--x--', f"{MULTIPART}; boundary=x", 400,
                            "Invalid request: missing q parameter"),
    "too many parts": (PART * 2_000 + b"--x--", f"{MULTIPART}; boundary=x", 400,
                       "The form has more than 1020 fields."),
    "a head of semicolons": (SEMICOLONS, f"{MULTIPART}; boundary=x", 400,
                             "The form is not valid multipart/form-data."),
    "many heads": (b"--x\r\n" + b"A: b\r\n" * 5_000, f"{MULTIPART}; boundary=x", 400,
                   "The form is not valid multipart/form-data."),
    "a multipart form in another": (
        b'--x\r\nContent-Disposition: form-data; name="source"\r\n'
        b"Content-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\n\r\na\r\n--y--\r\n--x--\r\n",
        f"{MULTIPART}; boundary=x", 400, "Invalid request: missing q parameter"),
    "half a pair in the source": (
        b'{"q": "a", "source": "\\ud800", "target": "de"}', "application/json", 400,
        "source holds half a surrogate pair, which is no character."),
    "half a pair in a list": (body(q=["a", "\udfff"]), "application/json", 400,
                              "q holds half a surrogate pair, which is no character."),
    "a long language": (body(q="a", source="x" * 5_000), "application/json", 400,
                        f"{'x' * 60} is not supported"),
    "invalid UTF-8 in parts": (
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n\xff\r\n--x--\r\n',
        "multipart/form-data; boundary=x", 400, "The form is not UTF-8."),
    "no q": (body(), "application/json", 400, "Invalid request: missing q parameter"),
    "no source": (b'{"q": "a", "target": "de"}', "application/json", 400,
                  "Invalid request: missing source parameter"),
    "no target": (b'{"q": "a", "source": "en"}', "application/json", 400,
                  "Invalid request: missing target parameter"),
    "a number": (body(q=5), "application/json", 400,
                 "Invalid request: q: Input should be a valid string"),
    "a list in a list": (body(q=[["a"]]), "application/json", 400,
                         "Invalid request: q: Input should be a valid string"),
    "an unknown format": (body(q="a", format="pdf"), "application/json", 400,
                          "Invalid request: format: Input should be 'text' or 'html'"),
    "negative alternatives": (
        body(q="a", alternatives=-1), "application/json", 400,
        "Invalid request: alternatives: Input should be greater than or equal to 0"),
    "many alternatives": (body(q="a", alternatives=500), "application/json", 400,
                          "Invalid request: alternatives (500) exceeds the limit (4)"),
    "a NUL": (body(q="a\0b"), "application/json", 400,
              "q holds a NUL character, which no text has."),
    "half a pair": (body(q="\ud800"), "application/json", 400,
                    "q holds half a surrogate pair, which is no character."),
    "much text": (body(q="a" * 20_000), "application/json", 400,
                  "Invalid request: request (20000) exceeds text limit (10000)"),
    "a megabyte": (body(q="a" * 1_000_000), "application/json", 413,
                   "The request is larger than 185536 bytes."),
    "thousands of texts": (body(q=["a"] * 5_000), "application/json", 400,
                           "Invalid request: the list of 5000 texts exceeds the limit (1000)"),
    "a long sentence": (body(q="a " * 600), "application/json", 400,
                        "A sentence has 600 tokens, more than 512: split it into shorter ones."),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_mistake_is_answered(client: httpx.Client, name: str) -> None:
    content, kind, status, problem = BAD_BODIES[name]
    answer = client.post("/translate", content=content, headers={"content-type": kind})
    assert (answer.status_code, answer.json()) == (status, {"error": problem})


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        ("<![ ", "<![ "),
        ("badal<![ x> kofen", "LADAB<![ x> NEFOK"),
        ("<a " * 3_000 + ">", "<a " * 3_000 + ">"),
        ("<!--" * 2_000, "<!--" * 2_000),
    ],
    ids=["unfinished", "a bogus comment", "tags in a tag", "unfinished comments"],
)
def test_odd_markup_is_answered(client: httpx.Client, text: str, answered: str) -> None:
    answer = client.post("/translate", content=body(q=text, format="html"), timeout=SECONDS)
    assert answer.json()["translatedText"] == answered


def test_hostile_forms_hold_up_nobody(start: Callable[..., httpx.Client], tmp_path: Path) -> None:
    """A server with keys answers its health while forms without a key are refused."""
    (tmp_path / "keys").write_text("alpha\n")
    client = start(keys=Keys.read(tmp_path / "keys"))
    kind = {"content-type": f"{MULTIPART}; boundary=x"}
    bodies = [SEMICOLONS, b"--x\r\n" + b"\r" * 170_000, b"--x\r\n" + b"\n-" * 80_000, PART * 3_000]
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(client.post, "/translate", content=each, headers=kind, timeout=SECONDS)
            for each in bodies * 4
        ]
        for _ in range(10):
            assert client.get("/health", timeout=SECONDS).is_success
        assert {each.result().status_code for each in asked} <= {400, 403}


def test_a_body_without_a_length_is_cut_off(client: httpx.Client) -> None:
    answer = client.post("/translate", content=(b"a" * 10_000 for _ in range(100)))
    assert answer.status_code == 413


@pytest.mark.parametrize("depth", [50, 150])
def test_nested_tags_survive_or_are_refused(client: httpx.Client, depth: int) -> None:
    page = "badal " + "<b>" * depth + "kofen" + "</b>" * depth + " migon"
    answer = client.post("/translate", content=body(q=page, format="html"))
    if depth == 50:
        expected = "LADAB " + "<b>" * 50 + "NEFOK" + "</b>" * 50 + " NOGIM"
        assert answer.json()["translatedText"] == expected
    else:
        assert (answer.status_code, answer.json()) == (
            400, {"error": "A paragraph has 300 tags inside it, more than 200."},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "status", "problem"),
    [
        ({}, 400, "Invalid request: missing q parameter"),
        ({"q": " "}, 400, "There is nothing to translate: q is empty."),
        ({"q": "a\0"}, 400, "q holds a NUL character, which no text has."),
        ({"q": "a", "prefix": "\0"}, 400, "prefix holds a NUL character, which no text has."),
        ({"q": "a", "model": "x"}, 404,
         "There is no translator 'x'; there are: transformer, attention."),
        ({"q": "a " * 200}, 413,
         "The sentence has 200 tokens; attention is shown for at most 100."),
        ({"q": "a", "beam": 99}, 400, "beam (99) must not exceed 12."),
        ({"q": "a", "beam": 0}, 400,
         "Invalid request: beam: Input should be greater than or equal to 1"),
        ({"q": "a", "top": 99}, 400,
         "Invalid request: top: Input should be less than or equal to 50"),
        ({"q": "a", "prefix_tokens": [2]}, 400, "prefix_tokens holds 2"),
        ({"q": "a", "prefix_tokens": [9_999_999]}, 400, "prefix_tokens holds 9999999"),
        ({"q": "a", "prefix_tokens": [3, 5]}, 400, "prefix_tokens holds 3"),
        ({"q": "a", "prefix_tokens": [5] * 700}, 413, "prefix_tokens has 700 ids, more than 400."),
        ({"q": "a", "prefix_tokens": [5] * 100}, 400, "Sentence 1: "),
        ({"q": "a", "prefix_tokens": "x"}, 400, "Invalid request: prefix_tokens: Input should be"),
        ({"q": "a", "prefix": "没有 "}, 400, "The prefix '没有' cannot be written"),
    ],
)  # fmt: skip
def test_a_view_that_cannot_be_shown(
    client: httpx.Client, fields: dict[str, Any], status: int, problem: str
) -> None:
    answer = client.post("/attend", json=fields)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"].startswith(problem)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/translate", 405),
        ("POST", "/translate_file", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/nothing", 404),
        ("GET", "/static", 404),
        ("GET", "/static/", 404),
        ("GET", "/docs/", 404),
        ("GET", "/static/%00", 404),
        ("GET", "/static/" + "a" * 5_000, 404),
    ],
)
def test_what_is_not_there(client: httpx.Client, method: str, path: str, status: int) -> None:
    for host in ("evil.example", "["):  # which no redirect may go to
        answer = client.request(method, path, headers={"host": host})
        assert answer.status_code == status
        assert "error" in answer.json()


def test_a_slow_body_is_not_waited_for(start: Callable[..., httpx.Client]) -> None:
    def slowly() -> Any:
        yield b'{"q": '
        time.sleep(0.6)
        yield b'"a"}'

    answer = start(body_seconds=0.2).post("/translate", content=slowly())
    assert (answer.status_code, answer.json()) == (
        408, {"error": "The request did not arrive within 0.2 seconds."},
    )  # fmt: skip


@pytest.mark.parametrize(
    "sent",
    [[], [b"GET / HTTP/1.1\r\nHost:"], [b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /hea"]],
    ids=["nothing", "half a head", "half a second head"],
)
def test_slow_headers_are_not_waited_for(
    server_url: str, monkeypatch: pytest.MonkeyPatch, sent: list[bytes]
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.2)
    place = urlsplit(server_url)
    with socket.create_connection((place.hostname, place.port), timeout=10) as connection:
        *whole, half = sent or [b""]
        for request in whole:
            connection.sendall(request)
            assert b"200 OK" in connection.recv(4_096)
        connection.sendall(half)
        rest = b"".join(iter(lambda: connection.recv(4_096), b""))  # until the server closes
        assert b"HTTP/1.1" not in rest
