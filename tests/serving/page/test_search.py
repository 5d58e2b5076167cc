"""The search: alternatives, forced words and the beam."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.browser


def test_another_word_can_be_forced_and_undone(visit, attend):
    answer = attend()
    first, step = answer["steps"][:2]
    other = next(o for o in step["alternatives"] if o["id"] != step["id"] and o["text"])
    forced = attend(prefix_tokens=[first["id"], other["id"]])
    assert forced["target"]["tokens"][1] == other["token"]
    screen = visit()
    screen.shows(answer)
    screen.target().nth(1).click()
    options = screen.page.locator("button.option")
    options.filter(has=screen.page.get_by_text(other["text"], exact=True)).click()
    screen.shows(forced)
    screen.expect(screen.target().nth(1)).to_be_focused()
    note = screen.page.locator(".forced")
    screen.expect(note).to_have_text(re.compile(f"begin with .*{other['text']}"))
    screen.page.get_by_role("button", name="Undo").click()
    screen.shows(answer)
    screen.expect(note).to_be_hidden()


def test_back_undoes_a_forced_word_and_forward_restores_it(visit, attend):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    option = screen.page.locator("button.option").first
    screen.target().first.click()
    option.click()
    note = screen.page.locator(".forced")
    screen.expect(note).to_be_visible()
    screen.page.go_back()
    screen.shows(answer)
    screen.expect(note).to_be_hidden()
    screen.page.go_forward()
    screen.expect(note).to_be_visible()
    screen.page.get_by_role("button", name="Undo").click()
    screen.shows(answer)
    screen.expect(note).to_be_hidden()


def test_probabilities_of_the_alternatives_are_the_servers(visit, attend):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    screen.target().first.click()
    options = screen.page.locator(".option")
    shown = options.evaluate_all("all => all.map(o => +o.style.getPropertyValue('--p'))")
    step = answer["steps"][0]
    given = {other["id"]: other["probability"] for other in step["alternatives"]}
    given[step["id"]] = step["probability"]
    assert len(shown) >= 4
    assert shown == pytest.approx(sorted(given.values(), reverse=True)[: len(shown)], abs=2e-4)
    screen.expect(screen.page.locator(".option.chosen .name")).to_have_text(step["token"])


def test_the_beam_is_a_tree_whose_branches_can_be_taken(visit, attend):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    screen.expect(screen.page.locator(".tree .score")).to_have_count(len(answer["beams"]))
    branch = screen.page.locator("button.branch:not(.best)").first
    begins = branch.locator("bdi").inner_text().split()
    branch.click()
    screen.expect(screen.page.locator(".forced q")).to_have_text(
        re.compile(re.escape(" ".join(begins)) + "$")
    )
