"""A text of several sentences: nothing vanishes, and each sentence can be looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

TEXT = "badal kofen\nmigon rulis\n\nzepur batam"
TRANSLATION = "LADAB NEFOK\nNOGIM SILUR\n\nRUPEZ MATAB"


def shows_whole(screen, text=TRANSLATION):
    """Wait until the whole translation is shown."""
    exact = "text => document.querySelector('.flow')?.textContent === text"  # null until it is made
    screen.page.wait_for_function(exact, arg=text)


def test_all_sentences_and_lines_are_translated(visit, attend):
    screen = visit()
    screen.sentence().fill(TEXT)
    shows_whole(screen)
    screen.shows(attend("badal kofen"))
    screen.expect(screen.page.get_by_text("Sentence 1 of 3")).to_be_visible()
    screen.expect(screen.page.get_by_role("status")).to_have_text("3 sentences are translated")
    screen.sentence().fill("badal")
    screen.shows(attend("badal"))
    screen.expect(screen.page.locator(".whole")).to_be_hidden()
    screen.expect(screen.page.locator("#chooser")).to_be_hidden()


def test_a_sentence_is_chosen_by_pointer_button_or_key(visit, attend):
    screen = visit({"q": TEXT})
    shows_whole(screen)
    sentences = screen.page.locator(".sentence")
    sentences.nth(2).click()
    screen.shows(attend("zepur batam"))
    screen.expect(sentences.nth(2)).to_have_attribute("aria-pressed", "true")
    screen.expect(screen.page.get_by_role("button", name="Next sentence")).to_be_disabled()
    screen.page.get_by_role("button", name="Previous sentence").click()
    screen.shows(attend("migon rulis"))
    sentences.nth(1).focus()
    screen.page.keyboard.press("ArrowLeft")
    screen.page.keyboard.press("Enter")
    screen.shows(attend("badal kofen"))
    screen.expect(sentences.nth(0)).to_be_focused()


def test_the_chosen_sentence_is_scrolled_to_and_stays_there(visit):
    screen = visit({"q": "badal kofen\n" * 60, "sentence": "58"})
    flow = screen.page.locator(".flow")
    screen.expect(flow).to_have_attribute("aria-busy", "false")
    there = flow.evaluate("box => box.scrollTop")
    assert there > 0
    screen.page.get_by_role("button", name="Next sentence").click()
    screen.expect(screen.page.locator(".sentence").last).to_have_attribute("aria-pressed", "true")
    assert flow.evaluate("box => box.scrollTop") == there  # it was visible already


def test_a_typed_line_break_begins_another_sentence(visit, attend):
    screen = visit({"q": ""})
    screen.expect(screen.sentence()).not_to_have_value("")  # the page begins with an example
    screen.sentence().fill("badal kofen")
    screen.sentence().press("Enter")
    screen.shows(attend("badal kofen"))
    screen.page.keyboard.type("migon rulis")
    shows_whole(screen, "LADAB NEFOK\nNOGIM SILUR")


def test_an_address_shows_the_chosen_sentence_and_what_was_forced(visit, attend):
    screen = visit({"q": TEXT, "sentence": "1"})
    answer = attend("migon rulis")
    screen.shows(answer)
    screen.target().first.click()
    screen.page.locator("button.option").first.click()
    screen.expect(screen.page.locator(".forced")).to_be_visible()
    changed = screen.page.locator(".sentence").nth(1)
    screen.expect(changed).not_to_have_text("NOGIM SILUR")
    said = changed.inner_text()
    screen.page.get_by_role("button", name="Previous sentence").click()
    screen.shows(attend("badal kofen"))
    screen.expect(changed).to_have_text(said)  # though another sentence is looked at
    screen.page.reload()
    screen.shows(attend("badal kofen"))
    screen.expect(changed).to_have_text(said)
    changed.click()
    screen.page.get_by_role("button", name="Undo").click()
    screen.expect(changed).to_have_text("NOGIM SILUR")


def test_two_models_look_at_the_same_sentence(visit, attend):
    screen = visit({"q": TEXT, "sentence": "2", "with": "transformer"})
    screen.shows(attend("zepur batam"))
    screen.shows(attend("zepur batam", model="transformer"), pane=1)
    screen.expect(screen.pane(1).locator(".sentence")).to_have_count(3)


def test_a_translation_is_copied_and_saved(visit, attend):
    screen = visit({"q": TEXT})
    shows_whole(screen)
    screen.page.get_by_role("button", name="Copy", exact=True).click()
    screen.expect(screen.page.get_by_role("button", name="Copied")).to_be_visible()
    assert screen.page.evaluate("navigator.clipboard.readText()") == TRANSLATION
    with screen.page.expect_download() as download:
        screen.page.get_by_role("button", name="Save").click()
    assert download.value.suggested_filename == "translation.de.txt"
    assert Path(download.value.path()).read_text(encoding="utf-8") == f"{TRANSLATION}\n"


def test_a_file_is_opened(visit, attend, tmp_path):
    (tmp_path / "text.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfeb\0a\0")
    screen = visit()
    screen.shows(attend())
    box = screen.page.locator("#file")
    box.set_input_files(tmp_path / "text.txt")
    shows_whole(screen)
    screen.expect(screen.sentence()).to_have_value(TEXT)
    box.set_input_files(tmp_path / "bad.txt")
    notice = screen.page.locator("#notice")
    screen.expect(notice).to_have_text("“bad.txt” is not a text file in UTF-8.")
    screen.sentence().fill("badal")
    screen.expect(notice).to_be_hidden()


def test_unknown_words_are_marked(visit, attend):
    screen = visit({"q": "Badal kofen.\nkofen migon\nRulis"})
    note = screen.page.locator(".unknown-note")
    screen.expect(note).to_have_text("The model does not know these 3 words: Badal, kofen., Rulis")
    screen.expect(screen.source()).to_have_text(["Badal", "kofen.", "end"])
    screen.expect(screen.page.locator(".word.unknown")).to_have_text(["Badal", "kofen."])
    screen.expect(screen.source().first).to_have_attribute(
        "title", "not in the vocabulary of the model"
    )
    screen.sentence().fill("kofen migon")
    screen.shows(attend("kofen migon"))
    screen.expect(note).to_be_hidden()
    screen.expect(screen.page.locator(".word.unknown")).to_have_count(0)


def test_what_is_too_long_to_be_looked_at_is_translated(visit):
    screen = visit({"q": " ".join(["badal"] * 120)}, errors="413")
    screen.expect(screen.pane().locator(".notice")).to_contain_text("at most 100")
    screen.expect(screen.page.locator(".sentence")).to_have_count(1)
    screen.expect(screen.page.locator(".sentence")).to_contain_text("LADAB LADAB")
    screen.expect(screen.page.get_by_role("button", name="Copy", exact=True)).to_be_visible()


def test_a_long_text_takes_several_requests_and_no_address(visit):
    lines = 4_200 // 6
    screen = visit({"q": ""})
    screen.page.on("request", lambda sent: sent.url.endswith("/text") and asked.append(sent.url))
    asked: list[str] = []
    screen.page.route(
        "**/models",
        lambda route: route.fulfill(json={**route.fetch().json(), "max_characters": 2_000}),
    )
    screen.page.reload()
    screen.expect(screen.sentence()).not_to_have_value("")  # the page begins with an example
    screen.sentence().fill("badal\n" * lines)
    screen.expect(screen.page.locator(".flow")).to_have_attribute("aria-busy", "false")
    screen.expect(screen.page.locator(".sentence")).to_have_count(lines)
    assert len(asked) == 3
    assert "badal" not in screen.page.url
    screen.page.get_by_role("button", name="Copy link").click()
    screen.expect(screen.page.get_by_role("button", name="Too long for a link")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_a_text_and_axe_finds_nothing_serious(visit, attend, scheme):
    screen = visit({"q": f"Badal\n{TEXT}", "sentence": "1"}, size=(360, 740), scheme=scheme)
    screen.expect(screen.page.locator(".sentence")).to_have_count(4)
    screen.shows(attend("badal kofen"))
    assert screen.page.evaluate("document.documentElement.scrollWidth") == 360
    assert screen.violations() == []
