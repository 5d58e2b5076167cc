"""The guide in Chromium: sliders, the switch of notation, the width of a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from regard.lectures.figures import Figures
from regard.lectures.local import local_page
from regard.lectures.server import LectureServer

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT = 120_000  # milliseconds: test machines are busy


@pytest.fixture(scope="module")
def figures() -> Figures:
    return Figures()


@pytest.fixture(scope="module")
def address(figures: Figures) -> Iterator[str]:
    server = LectureServer(figures)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server.address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page on the screen of a phone; in the end nothing may stand in the console."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the guide is tested where it is")
    said: list[str] = []
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 390, "height": 800})
        opened.set_default_timeout(TIMEOUT)
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        yield opened
        browser.close()
    assert [text for text in said if "400 (Bad Request)" not in text] == []


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_slider_asks_the_server(page: Any, address: str) -> None:
    page.goto(f"{address}/graphs")
    assert fits(page)
    slider = page.get_by_role("slider")
    before = page.locator(".lecture-drawing").inner_html()
    slider.press("ArrowRight")
    page.locator(".lecture-command", has_text="slope=0.5").wait_for()
    assert slider.get_attribute("aria-valuetext") == "0.5"
    assert page.locator(".lecture-drawing").inner_html() != before
    assert page.locator(".lecture-problem").is_hidden()


def test_what_a_figure_cannot_be_is_told(page: Any, address: str) -> None:
    page.goto(f"{address}/graphs")
    slider = page.get_by_role("slider")
    slider.evaluate("input => { input.dataset.values = '0 7 0.5 1'; }")
    slider.press("ArrowLeft")
    slider.press("ArrowRight")
    page.locator(".lecture-problem", has_text="slope = 7: choose 0 to 1").wait_for()


def test_a_file_has_sliders_and_notations(page: Any, figures: Figures, tmp_path: Path) -> None:
    path = tmp_path / "decoders.html"
    path.write_text(local_page("decoders", figures, live=False, alone=True), encoding="utf-8")
    page.goto(path.as_uri())
    assert fits(page)
    step = page.get_by_role("slider", name="step").first
    drawing = page.locator(".lecture-figure.reads .lecture-drawing").first
    assert "keine" not in drawing.inner_text()
    step.press("ArrowRight")
    assert "keine" in drawing.inner_text()
    shown = page.locator(".in-notation:visible").first
    assert "α" in shown.text_content() or "𝛼" in shown.text_content()
    page.locator(".notation-choice").select_option("matrices")
    assert "Q" in page.locator(".in-notation:visible").first.text_content()
    page.reload()  # the choice is remembered
    assert page.locator(".notation-choice").input_value() == "matrices"
