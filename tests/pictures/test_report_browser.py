"""The report in Chromium: pointing, the keyboard, a phone, and what axe has to say."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.pictures.curves import learning_curves_svg
from regard.pictures.report import (
    Fold,
    Heading,
    HoverMap,
    Paragraph,
    Passage,
    Picture,
    Sample,
    Samples,
    Table,
    write_page,
)

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TIMEOUT = 120_000  # milliseconds: test machines are busy
SOURCE = ["cats", "do", "not", "like", "dogs", "that", "bark", "all", "night", "long"]
TARGET = ["Katzen", "mögen", "keine", "Hunde"]
HISTORY = [{"kind": "valid", "step": n, "seconds": n, "loss": 1.0, "bleu": 9.0} for n in (1, 2)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    weights = np.full((4, 10), 0.02)
    weights[[0, 1, 2, 3], [0, 3, 2, 4]] = 0.82
    hover = HoverMap(SOURCE, TARGET, weights, "a map")
    wide = Table("wide", [f"a long column {n}" for n in range(9)], [[float(n) for n in range(9)]])
    sections = [
        Heading("One"), Paragraph("text " * 30), wide, Heading("Two"), hover,
        Picture("curves", learning_curves_svg({"run": HISTORY})), Heading("Three"),
        Samples([Sample("cats", "Katzen", {"run": "Hunde"}, "chrF 9.0")]), Fold("more", [hover]),
        Passage("a text", "one\ntwo"),
    ]  # fmt: skip
    write_page(path, title="A report", sections=sections)
    return path


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Any]:
    """The report on the screen of a phone; in the end nothing may stand in the console."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the report is tested where it is")
    said: list[str] = []
    with api.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        # axe is a script of its own, which the report forbids as it should.
        opened = browser.new_page(viewport={"width": 375, "height": 800}, bypass_csp=True)
        opened.set_default_timeout(TIMEOUT)
        opened.on("console", lambda line: said.append(line.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.goto(report.as_uri())
        yield opened
        browser.close()
    assert not said


def test_pointing_at_a_word_highlights_what_it_attends_to(page: Any) -> None:
    figure = page.locator(".hover-map").first
    figure.locator("button.word", has_text="mögen").hover()
    assert figure.locator(".source-word.most").all_text_contents() == ["like"]
    assert figure.locator(".reading").text_content().startswith("mögen ← like 82")


def test_the_keyboard_does_the_same(page: Any) -> None:
    figure = page.locator(".hover-map").first
    page.mouse.move(0, 0)
    figure.locator("button.word").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert figure.locator(".source-word.most").all_text_contents() == ["dogs"]
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("details").get_attribute("open") is not None


def test_a_phone_scrolls_wide_parts_and_not_the_page(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    table = page.locator(".table").first
    assert table.evaluate("wide => wide.scrollWidth > wide.clientWidth")
    assert table.get_attribute("tabindex") == "0"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    found = axe.Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
