"""The page as a whole: two models, addresses, sizes, themes, accessibility and hostile text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import regard.serving

PAGE = Path(regard.serving.__file__).parent / "page"
OTHER = "rulis zepur batam kodal"
EVIL = "<img/src=x/onerror=alert(1)><script>alert(2)</script>"

pytestmark = pytest.mark.browser


def test_two_models_are_shown_side_by_side(visit, attend):
    one, other = attend(), attend(model="transformer")
    screen = visit()
    screen.shows(one)
    screen.choice("with").select_option("transformer")
    screen.shows(other, pane=1)
    screen.shows(one)
    left, right = (screen.pane(place).bounding_box() for place in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] < right["x"]
    screen.source().first.hover()  # the same word lights up in the other too
    column = [row[0] for row in other["mean"]]
    assert screen.lit(screen.target(1)) == pytest.approx(column, abs=2e-4)
    screen.choice("with").select_option("")
    screen.expect(screen.page.locator(".pane")).to_have_count(1)


def test_an_address_shows_the_same_page_again(visit, attend):
    one, other = attend(OTHER, model="transformer"), attend(OTHER)
    screen = visit({"q": OTHER, "model": "transformer"})
    screen.shows(one)
    screen.choice("layer").select_option("0")
    screen.choice("head").select_option("1")
    screen.choice("with").select_option("attention")
    screen.shows(other, pane=1)
    screen.page.get_by_role("button", name="Copy link").click()
    screen.expect(screen.page.get_by_role("button", name="Copied")).to_be_visible()
    address = screen.page.evaluate("navigator.clipboard.readText()")
    screen.page.goto(f"{address.partition('#')[0]}static/icon.svg")
    screen.page.goto(address)
    screen.shows(one)
    screen.shows(other, pane=1)
    screen.expect(screen.choice("head")).to_have_value("1")
    screen.target().first.hover()
    assert screen.lit(screen.source()) == pytest.approx(one["cross"][0][1][0], abs=2e-4)


def test_nonsense_in_an_address_is_ignored(visit, attend):
    answer = attend(model="transformer")  # the first
    nonsense = {"model": "none such", "with": "no", "layer": "-3", "head": "99", "force": "x"}
    screen = visit(nonsense)
    screen.shows(answer)
    screen.target().first.hover()
    last = answer["cross"][-1][-1][0]
    assert screen.lit(screen.source()) == pytest.approx(last, abs=2e-4)


@pytest.mark.parametrize("state", [{}, {"with": "transformer"}])
def test_a_phone_needs_no_sideways_scrolling(visit, attend, state):
    screen = visit(state, size=(360, 740))
    screen.shows(attend())
    if "with" in state:
        screen.shows(attend(model="transformer"), pane=1)
    screen.target().first.click()
    screen.expect(screen.target().first).to_have_attribute("aria-pressed", "true")
    assert screen.page.evaluate("document.documentElement.scrollWidth") == 360


def test_dark_and_light_follow_the_system_until_the_reader_chooses(visit, attend):
    def is_dark() -> bool:
        colour = screen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) < 200

    screen = visit(scheme="dark")
    screen.shows(attend())
    assert is_dark()
    switch = screen.page.get_by_role("button", name="Dark")
    screen.expect(switch).to_have_attribute("aria-pressed", "true")
    switch.click()
    assert not is_dark()
    screen.page.reload()
    screen.shows(attend())
    assert not is_dark()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit, attend, scheme):
    screen = visit({"with": "transformer"}, scheme=scheme)
    screen.shows(attend(model="transformer"), pane=1)
    screen.shows(attend())
    assert screen.violations() == []
    screen.target().nth(1).click()  # words are lit, alternatives are those of a choice
    assert screen.violations() == []


def test_text_of_the_server_is_never_read_as_html(visit, answering):
    dialogs: list[str] = []
    screen = visit({"q": EVIL}, routes=answering([(EVIL, 0), ("</b>", 1)], [EVIL, "</b>"]))
    screen.page.on("dialog", lambda dialog: dialogs.append(dialog.message) or dialog.dismiss())
    screen.expect(screen.target()).to_have_text([EVIL, "</b>", "end"])
    screen.target().first.click()
    screen.expect(screen.sentence()).to_have_value(EVIL)
    assert screen.page.locator("main img, main script, main b").count() == 0
    assert dialogs == []


def test_text_of_the_reader_is_never_read_as_html(visit):
    words = ["<b>badal</b>", "<script>alert(1)</script>"]
    screen = visit({"q": " ".join(words), "pieces": "no"})
    screen.expect(screen.source()).to_have_text([*words, "end"])
    assert screen.page.locator("main img, main script, main b").count() == 0


def test_nothing_in_the_page_is_inline_or_from_elsewhere():
    html = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|\son\w+=|<script>|https?://", html)
    for named in re.findall(r'(?:src|href)="static/([^"]+)"', html):
        assert (PAGE / named).is_file()
    for path in PAGE.glob("*.js"):
        code = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", code)
        for imported in re.findall(r'from "\./([^"]+)"', code):
            assert (PAGE / imported).is_file(), f"{path.name} imports {imported}"
