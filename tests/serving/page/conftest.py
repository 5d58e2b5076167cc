"""The page in Chromium: a screen to look at, and the server's own answers to compare with."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT = 60_000  # milliseconds: test machines are busy
SENTENCE = "badal kofen migon"

Route = Callable[[Any], Any]


class Screen:
    """A page as a reader sees it; `pane` counts the models from 0."""

    def __init__(self, page: Any, expect: Any):
        self.page = page
        self.expect = expect

    def pane(self, place: int = 0) -> Any:
        """Return what is shown of one model."""
        return self.page.locator(".pane").nth(place)

    def source(self, pane: int = 0) -> Any:
        """Return the words of the source sentence."""
        return self.pane(pane).locator('[aria-label="Source words"] .word')

    def target(self, pane: int = 0) -> Any:
        """Return the words of the translation."""
        return self.pane(pane).locator('[aria-label="Words of the translation"] .word')

    def sentence(self) -> Any:
        """Return the box in which a text is typed."""
        return self.page.get_by_label("Text", exact=True)

    def choice(self, name: str) -> Any:
        """Return a box in which one of several things is chosen."""
        return self.page.locator(f"select#{name}, select[name={name}]")

    def shows(self, answer: dict[str, Any], *, pane: int = 0) -> None:
        """Wait until a pane shows an answer of the server."""
        words = [*answer["target"]["word_texts"], "end"]
        self.expect(self.target(pane)).to_have_text(words)
        self.expect(self.pane(pane)).not_to_have_attribute("aria-busy", "true")

    def lit(self, words: Any) -> list[float]:
        """Return the weights by which words are lit."""
        return list(words.evaluate_all("all => all.map(word => Number(word.dataset.weight))"))

    def violations(self) -> list[str]:
        """Return what axe finds serious or worse."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']} ({each['impact']}): {node['html'][:200]}"
            for each in found
            for node in each["nodes"]
            if each["impact"] in ("serious", "critical")
        ]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """One page for the tests of a file; the browser's event loop must not outlive them."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page is tested where it is")
    api.expect.set_options(timeout=TIMEOUT)
    with api.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        opened = browser.new_page(permissions=["clipboard-read", "clipboard-write"])
        opened.set_default_timeout(TIMEOUT)
        yield opened
        browser.close()


@pytest.fixture
def visit(page: Any, server_url: str) -> Iterator[Callable[..., Screen]]:
    """Return a function that opens the page with a state, as if for the first time.

    At the end the console must be empty and no request may have gone to another server; `errors` is
    a pattern for messages that a test provokes.
    """
    from playwright.sync_api import expect

    messages: list[str] = []
    allowed: list[str] = []
    listeners = {
        "console": lambda line: line.type in ("error", "warning") and messages.append(line.text),
        "pageerror": lambda error: messages.append(str(error)),
        "request": lambda sent: sent.url.startswith(server_url) or messages.append(sent.url),
    }

    def call(
        state: Mapping[str, str] = MappingProxyType({}),
        *,
        size: tuple[int, int] = (1280, 900),
        scheme: str = "light",
        routes: dict[str, Route] | None = None,
        errors: str | None = None,
    ) -> Screen:
        allowed.extend([errors] if errors else [])
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.goto(f"{server_url}/static/icon.svg")  # or only the part after # would change
        page.evaluate("localStorage.clear()")
        for pattern, route in (routes or {}).items():
            page.route(pattern, route)
        for name, listener in listeners.items():
            page.on(name, listener)
        # The recurrent model is the quicker one: it has learned to end.
        page.goto(f"{server_url}/#{urlencode({'q': SENTENCE, 'model': 'attention', **state})}")
        return Screen(page, expect)

    yield call
    for name, listener in listeners.items():
        page.remove_listener(name, listener)
    page.unroute_all()
    assert [line for line in messages if not any(re.search(each, line) for each in allowed)] == []


@pytest.fixture(scope="session")
def attend(client: httpx.Client) -> Callable[..., dict[str, Any]]:
    """Return a function that asks the server for an answer, which the page must then show."""
    known: dict[str, dict[str, Any]] = {}

    def call(q: str = SENTENCE, model: str = "attention", **more: Any) -> dict[str, Any]:
        request = {"q": q, "model": model, **more}
        key = json.dumps(request)
        if key not in known:
            response = client.post("/attend", json=request)
            response.raise_for_status()
            known[key] = response.json()
        return known[key]

    return call


@pytest.fixture(scope="session")
def events() -> Callable[..., str]:
    """Return a function that writes server-sent events."""

    def call(*sent: tuple[str, Any]) -> str:
        return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in sent)

    return call


@pytest.fixture(scope="session")
def answering(events: Callable[..., str]) -> Callable[..., dict[str, Route]]:
    """Return a function that makes the server answer with pieces and words written down here."""

    def call(pieces: list[tuple[str, int]], words: list[str]) -> dict[str, Route]:
        answer = _answer([*pieces, ("</s>", -1)], words)
        body = events(("token", {"text": answer["text"]}), ("done", answer))
        return {
            "**/stream": lambda route: route.fulfill(content_type="text/event-stream", body=body)
        }

    return call


def _answer(pieces: list[tuple[str, int]], words: list[str]) -> dict[str, Any]:
    """Return an answer whose pieces look at all source words alike."""
    source = SENTENCE.split()
    row = [round(1 / (len(source) + 1), 4)] * (len(source) + 1)
    tokens = [token for token, _ in pieces]
    steps = [
        {
            "token": token,
            "id": place + 10,
            "probability": 0.9,
            "alternatives": [{"token": "x", "id": 99, "text": "x", "probability": 0.1}],
        }
        for place, token in enumerate(tokens)
    ]
    return {
        "model": "transformer",
        "text": " ".join(words),
        "score": -0.1,
        "source": {
            "tokens": [*source, "</s>"],
            "words": [*range(len(source)), -1],
            "word_texts": source,
        },
        "target": {
            "tokens": tokens,
            "ids": [step["id"] for step in steps],
            "words": [word for _, word in pieces],
            "word_texts": words,
            "probabilities": [0.9] * len(pieces),
        },
        "cross": [[[row] * len(pieces)]],
        "encoder": None,
        "decoder": None,
        "mean": [row] * len(pieces),
        "steps": steps,
        "beams": [],
    }
