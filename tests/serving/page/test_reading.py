"""Typing a sentence, and seeing its translation and attention."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.browser

SENTENCE = "badal kofen migon"
OTHER = "rulis zepur batam kodal"

# Notes the translation whenever a caret says that it is unfinished.
WATCH = """
window.seen = [];
new MutationObserver(() => {
  const row = document.querySelector('[aria-label="Words of the translation"]');
  if (row?.querySelector(".caret")) window.seen.push(row.textContent);
}).observe(document.body, {subtree: true, childList: true});
"""


def test_a_typed_sentence_is_translated_as_it_is_written(visit, attend):
    screen = visit()
    screen.shows(attend())
    screen.page.evaluate(WATCH)
    screen.sentence().fill(OTHER)  # and no key or button: a pause is enough
    answer = attend(OTHER)
    screen.shows(answer)
    screen.expect(screen.source()).to_have_text([*OTHER.split(), "end"])
    assert len(screen.page.evaluate("window.seen")) > 0
    screen.expect(screen.page.get_by_role("status")).to_have_text(answer["text"])


@pytest.mark.parametrize("way", ["Enter", "button", "example"])
def test_a_sentence_can_be_sent_at_once(visit, attend, way):
    screen = visit()
    screen.shows(attend())
    if way == "example":
        screen.page.get_by_role("button", name=OTHER).click()
    else:
        screen.sentence().fill(OTHER)
        if way == "Enter":
            screen.page.keyboard.press("Enter")
        else:
            screen.page.get_by_role("button", name="Translate").click()
    screen.shows(attend(OTHER))


def test_without_a_sentence_the_first_example_is_shown(visit, attend, client):
    screen = visit({"q": ""})
    example = client.get("/models").json()["models"][0]["examples"][0]
    screen.expect(screen.sentence()).to_have_value(example)
    screen.shows(attend(example))
    screen.sentence().fill("")
    screen.expect(screen.page.locator(".pane-body")).to_be_hidden()


@pytest.mark.parametrize("model", ["transformer", "attention"])
def test_a_word_highlights_what_it_attends_to(visit, attend, model):
    answer = attend(model=model)
    screen = visit({"model": model})
    screen.shows(answer)
    screen.target().nth(1).hover()
    row = answer["mean"][1]
    assert screen.lit(screen.source()) == pytest.approx(row, abs=2e-4)
    strongest = [*SENTENCE.split(), "end"][int(np.argmax(row))]
    shares = screen.source().evaluate_all("all => all.map(w => +w.style.getPropertyValue('--w'))")
    assert np.argmax(shares) == np.argmax(row)
    word = answer["target"]["word_texts"][1]
    screen.expect(screen.page.locator(".reading")).to_contain_text(f"{word} ← {strongest}")


def test_a_source_word_highlights_what_attends_to_it(visit, attend):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    screen.source().nth(2).hover()
    column = [row[2] for row in answer["mean"]]
    assert screen.lit(screen.target()) == pytest.approx(column, abs=2e-4)


def test_a_cell_of_the_map_highlights_its_word(visit, attend):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    screen.page.locator(".heatmap tbody tr").nth(1).locator("td").nth(2).hover()
    assert screen.lit(screen.source()) == pytest.approx(answer["mean"][1], abs=2e-4)
    screen.expect(screen.page.locator(".reading")).to_contain_text(f"← {SENTENCE.split()[2]}")


def test_the_keyboard_does_all_that_the_pointer_does(visit, attend):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    press = screen.page.keyboard.press
    screen.target().first.focus()
    press("ArrowRight")
    assert screen.lit(screen.source()) == pytest.approx(answer["mean"][1], abs=2e-4)
    press("Home")
    assert screen.lit(screen.source()) == pytest.approx(answer["mean"][0], abs=2e-4)
    press("End")
    press("Enter")
    screen.expect(screen.target().last).to_have_attribute("aria-pressed", "true")
    screen.expect(screen.page.get_by_role("heading", name="Instead of the end")).to_be_visible()
    press("Escape")
    screen.expect(screen.page.locator(".word[aria-pressed=true]")).to_have_count(0)
    screen.expect(screen.page.locator(".word[data-weight]")).to_have_count(0)
    press("Shift+Tab")  # a row is one stop
    screen.expect(screen.source().first).to_be_focused()


def test_every_part_can_be_reached_with_the_tab_key(visit, attend):
    screen = visit()
    screen.shows(attend())
    screen.page.get_by_role("button", name="Copy link").focus()
    reached = set()
    for _ in range(60):
        screen.page.keyboard.press("Tab")
        reached |= set(screen.page.evaluate("[...document.activeElement.classList]"))
    assert {"quiet", "word", "option", "primary", "example", "branch"} <= reached


def test_layer_head_and_view_can_be_changed(visit, attend):
    answer = attend(model="transformer")
    screen = visit({"model": "transformer"})
    screen.shows(answer)

    def lit_by(word):
        word.hover()
        return screen.lit(screen.source())

    screen.choice("layer").select_option("0")
    screen.choice("head").select_option("1")
    first = screen.target().first
    assert lit_by(first) == pytest.approx(answer["cross"][0][1][0], abs=2e-4)
    screen.page.get_by_role("button", name="Layer 1, head 0").click()
    assert lit_by(first) == pytest.approx(answer["cross"][1][0][0], abs=2e-4)
    screen.choice("view").select_option("encoder")
    assert lit_by(screen.source().nth(1)) == pytest.approx(answer["encoder"][1][0][1], abs=2e-4)
    screen.choice("view").select_option("decoder")
    screen.target().nth(1).hover()
    read = answer["decoder"][1][0][1][1:]  # the first column is the beginning mark
    assert screen.lit(screen.target())[: len(read)] == pytest.approx(read, abs=2e-4)
    screen.choice("view").select_option("cross")
    screen.choice("layer").select_option("mean")
    mean = np.mean(answer["cross"], axis=0)
    assert lit_by(first) == pytest.approx(mean[0][0].tolist(), abs=2e-4)


def test_a_model_without_heads_offers_none(visit, attend):
    screen = visit()
    screen.shows(attend())
    screen.expect(screen.choice("head")).to_be_hidden()
    screen.expect(screen.page.locator(".overview")).to_be_hidden()


def test_right_to_left_words_are_read_and_navigated_that_way(visit, answering):
    pieces = [("▁يكتب", 0), ("▁ال", 1), ("ولد", 1)]
    screen = visit(routes=answering(pieces, ["يكتب", "الولد"]))
    screen.expect(screen.target()).to_have_text(["يكتب", "الولد", "end"])
    first, second = (screen.target().nth(place).bounding_box() for place in (0, 1))
    assert first["x"] > second["x"]
    screen.target().first.focus()
    screen.page.keyboard.press("ArrowLeft")
    screen.expect(screen.target().nth(1)).to_be_focused()
    screen.page.get_by_label("Subwords").check()
    screen.expect(screen.target()).to_have_text(["يكتب", "ال", "ولد", "end"])


def test_sentences_without_spaces_are_shown_in_pieces(visit, answering):
    signs = "男孩在写一封信"
    screen = visit(routes=answering([(sign, 0) for sign in signs], [signs]))
    screen.expect(screen.target()).to_have_text([*signs, "end"])
    screen.expect(screen.page.get_by_label("Subwords")).to_be_checked()
    screen.page.get_by_label("Subwords").uncheck()
    screen.expect(screen.target()).to_have_text([signs, "end"])
