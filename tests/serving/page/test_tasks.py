"""The page for language models, classifiers, forecasters and graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest

from regard.serving.app import create_app
from regard.serving.limits import ServerSettings
from regard.serving.models import stored_models

pytestmark = pytest.mark.browser

KEPT = Path(__file__).parents[2] / "upgrades" / "format-1"
RUNS = ("language-model", "text-classifier", "forecaster", "node-classifier")
TEXT = "the cat sees"


@pytest.fixture(scope="module")
def server_url(run_app: Any) -> Iterator[str]:
    """The address of a server with a run of each task."""
    with run_app(
        create_app(stored_models([KEPT / name for name in RUNS]), ServerSettings())
    ) as url:
        yield url


@pytest.fixture
def look(server_url: str) -> Callable[..., dict[str, Any]]:
    """Return a function that asks the server what the page must then show."""

    def call(model: str, q: str, **fields: Any) -> dict[str, Any]:
        response = httpx.post(f"{server_url}/look", json={"q": q, "model": model, **fields})
        found: dict[str, Any] = response.raise_for_status().json()
        return found

    return call


def test_a_language_model_reads_writes_and_expects(visit, look):
    screen = visit({"model": "language-model", "q": TEXT}, size=(390, 844))
    tokens = screen.page.locator('[aria-label="Tokens of the text"] .word')
    found = look("language-model", TEXT, temperature=0.8)
    screen.expect(tokens).to_have_count(found["read"])
    options = screen.page.locator(".alternatives .share")
    best = found["steps"][-1]["alternatives"][0]["probability"]
    screen.expect(options.first).to_have_attribute("data-value", f"{best}")
    tokens.nth(2).focus()
    screen.page.keyboard.press("Enter")
    best = found["steps"][2]["alternatives"][0]["probability"]
    screen.expect(options.first).to_have_attribute("data-value", f"{best}")
    assert screen.lit(tokens) == pytest.approx(
        np.mean([head[2] for head in found["encoder"][-1]], axis=0).tolist(), abs=2e-4
    )
    slider = screen.page.get_by_label("temperature", exact=True)
    slider.focus()
    screen.page.keyboard.press("Home")  # a temperature of 0
    screen.expect(options.first).to_have_attribute("data-value", "1")
    screen.page.get_by_label("most new tokens").fill("5")
    screen.page.get_by_role("button", name="Write on").click()
    screen.expect(screen.page.get_by_role("button", name="Look at all of it")).to_be_visible()
    written = screen.page.locator(".written").inner_text()
    assert written.startswith(TEXT)
    assert len(written) > len(TEXT)
    screen.expect(screen.page.locator(".arc").first).to_be_attached()
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert screen.violations() == []


def test_a_classifier_marks_the_words_that_decided(visit, look):
    text = "the cat sees a dog"
    screen = visit({"model": "text-classifier", "q": text, "open": "change"}, scheme="dark")
    found = look("text-classifier", text)
    words = screen.page.locator(".decided")
    screen.expect(words).to_have_text(found["words"])
    values = words.evaluate_all("all => all.map(word => Number(word.dataset.value))")
    assert values == found["values"]
    screen.expect(screen.page.locator(".verdict")).to_contain_text(f"Label: {found['label']}")
    panel = screen.page.locator('[data-panel="change"]')
    panel.get_by_role("button", name="layer 0 head 0 off").click()
    screen.expect(panel.locator(".output")).to_have_count(2)
    assert screen.violations() == []


def test_a_forecaster_shows_attention_over_time(visit, look):
    screen = visit({"model": "forecaster", "q": "last"}, errors="400")
    found = look("forecaster", "last")
    bars = screen.page.locator(".series rect")
    screen.expect(bars).to_have_count(3)
    values = bars.evaluate_all("all => all.map(bar => Number(bar.dataset.value))")
    assert values == pytest.approx(found["weights"])
    slider = screen.page.get_by_label("time", exact=True)
    slider.focus()
    screen.page.keyboard.press("Home")
    screen.expect(screen.page.locator(".forecast .reading")).to_contain_text("step 0")
    assert screen.violations() == []
    screen.page.get_by_label("Window", exact=True).fill("1 2")
    screen.expect(screen.page.get_by_role("alert").first).to_contain_text("reads 3 numbers")


def test_a_graph_is_walked_node_by_node(visit, look):
    screen = visit({"model": "node-classifier", "q": "1", "open": "change"})
    found = look("node-classifier", "1")
    neighbours = screen.page.locator(".neighbours li")
    screen.expect(neighbours).to_have_count(found["degree"])
    weights = screen.page.locator(".neighbours .share").evaluate_all(
        "all => all.map(share => Number(share.dataset.value))"
    )
    assert weights == sorted(weights, reverse=True)
    other = next(each["name"] for each in found["neighbours"] if not each["itself"])
    assert screen.violations() == []
    screen.page.locator(".neighbours").get_by_role("button", name=other, exact=True).click()
    screen.expect(screen.page.locator(".verdict")).to_contain_text(f"Node {other}:")
    screen.expect(screen.page.get_by_label("Node", exact=True)).to_have_value(other)


def test_models_of_several_tasks_share_a_page(visit):
    screen = visit({"model": "forecaster", "q": "first"}, errors="400")
    screen.expect(screen.page.locator(".series")).to_be_visible()
    screen.choice("model").select_option("node-classifier")
    screen.expect(screen.page.get_by_role("alert").first).to_contain_text("There is no node")
    screen.page.get_by_label("Node", exact=True).fill("3")
    screen.expect(screen.page.locator(".neighbourhood")).to_be_visible()
    assert urlencode({"model": "node-classifier"}) in screen.page.url
