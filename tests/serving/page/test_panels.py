"""The panels under a translation: the arithmetic of a cell, interventions and the layer lens."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from regard.base.special_tokens import END
from regard.tasks.interventions import InterventionRequest
from regard.tasks.translation.interventions import intervene_in_translator
from regard.tasks.translation.trace import trace_translator
from regard.tasks.translation.views import lens_of_translation

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
from page_cells import READ_CELLS, cells_of, different

pytestmark = pytest.mark.browser

SENTENCE = "badal kofen migon"


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_the_arithmetic_of_cells_is_that_of_the_trace(visit, served_models, count):
    loaded = served_models[0].translator
    forced = [*loaded.target_tokenizer.encode("LADAB NEFOK NOGIM"), END]
    trace = trace_translator(loaded, SENTENCE, target=forced)
    screen = visit(
        {"model": "transformer", "force": ",".join(map(str, forced)), "open": "arithmetic"}
    )
    screen.expect(screen.page.locator("[data-cell]")).to_be_visible()
    cells = cells_of(trace, count=count)
    shown = screen.page.evaluate(READ_CELLS, cells)
    assert [different(trace, *each) for each in zip(cells, shown, strict=True)] == [[]] * count


def test_a_click_on_a_cell_opens_its_arithmetic(visit, attend, served_models):
    answer = attend()
    screen = visit()
    screen.shows(answer)
    screen.page.locator(".heatmap").first.locator("tbody tr").nth(1).locator("td").nth(2).click()
    steps = screen.page.locator("[data-cell]")
    screen.expect(steps).to_have_attribute("data-cell", "cross.0.0.1.2")
    trace = trace_translator(
        served_models[1].translator, SENTENCE, target=[*answer["target"]["ids"], END]
    )
    score = steps.locator('[data-result="score"]')
    assert float(score.get_attribute("data-value")) == trace["cross.0.scores"][0, 1, 2]
    assert "open=arithmetic" in screen.page.url
    screen.page.locator('[data-choice="column"]').select_option("0")  # the keyboard's way
    screen.expect(steps).to_have_attribute("data-cell", "cross.0.0.1.0")


def test_words_are_hidden_and_both_outputs_shown(visit, attend, served_models):
    screen = visit({"open": "change"})
    screen.shows(attend())
    panel = screen.page.locator('[data-panel="change"]')
    word = SENTENCE.split()[1]
    panel.get_by_role("button", name=word, exact=True).focus()
    screen.page.keyboard.press("Enter")
    loaded = served_models[1].translator
    expected = intervene_in_translator(loaded, SENTENCE, InterventionRequest(hide=["#1"]))
    after = panel.locator('[data-output="after"]')
    screen.expect(after).to_have_text(f"after {expected.after.text}")
    assert expected.after.text != expected.before.text
    marked = panel.locator('[data-output="after"] mark').all_inner_texts()
    assert set(marked) <= set(expected.after.text.split())
    panel.get_by_role("button", name=f"Undo: “{word}” hidden").click()
    screen.expect(after).to_have_count(0)


def test_attention_is_set_by_dragging_and_by_sliders(visit, attend, served_models):
    answer = attend()
    screen = visit({"open": "change"})
    screen.shows(answer)
    panel = screen.page.locator('[data-panel="change"]')
    row = panel.locator(".editable tbody tr").first
    strongest = int(np.argmax(answer["mean"][0]))
    goal = (strongest + 1) % 3
    row.locator("td").nth(strongest).drag_to(row.locator("td").nth(goal))
    kept = panel.locator(".kept td").nth(1)
    loaded = served_models[1].translator

    def effect(weights):
        shares = ",".join(f"#{place}:{weight:.6f}" for place, weight in enumerate(weights[:3]))
        text = f"0={shares},</s>:{weights[3]:.6f}@cross"
        return intervene_in_translator(loaded, SENTENCE, InterventionRequest(force=[text]))

    moved = list(answer["mean"][0])
    moved[goal], moved[strongest] = moved[goal] + moved[strongest], 0.0
    screen.expect(panel.locator(".applied li")).to_have_count(1)
    screen.expect(kept).to_have_attribute("data-value", f"{effect(moved).to_dict()['kept'][0]}")
    slider = panel.locator(".sliders input").nth(strongest)
    slider.focus()
    screen.page.keyboard.press("End")  # all attention on one word
    only = [float(place == strongest) for place in range(4)]
    expected = effect(only).to_dict()
    screen.expect(kept).to_have_attribute("data-value", f"{expected['kept'][0]}")
    screen.expect(panel.locator('[data-output="after"]')).to_have_text(
        f"after {expected['after']['text']}"
    )


def test_heads_are_switched_off_and_layers_read(visit, attend, served_models):
    answer = attend(model="transformer")
    screen = visit({"model": "transformer", "open": "change,lens"}, size=(390, 844), scheme="dark")
    screen.shows(answer)
    panel = screen.page.locator('[data-panel="change"]')
    panel.get_by_role("button", name="cross layer 1 head 0 off").click()
    loaded = served_models[0].translator
    expected = intervene_in_translator(loaded, SENTENCE, InterventionRequest(off=["cross.1.0"]))
    screen.expect(panel.locator('[data-output="after"]')).to_have_text(
        f"after {expected.after.text}"
    )
    cells = screen.page.locator(".lens-guess")
    lens = lens_of_translation(loaded, SENTENCE, answer["target"]["ids"])
    screen.expect(cells).to_have_count(lens.probabilities.size)
    said = cells.evaluate_all("all => all.map(each => Number(each.dataset.said))")
    assert said == pytest.approx(lens.probabilities.flatten().tolist(), abs=1e-6)
    cells.last.click()
    screen.expect(screen.page.locator(".lens-guesses")).to_contain_text("in place of “end”")
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert screen.violations() == []


def test_all_panels_are_accessible_in_the_light(visit, attend):
    screen = visit({"open": "arithmetic,change"})
    screen.shows(attend())
    screen.expect(screen.page.locator("[data-cell]")).to_be_visible()
    screen.page.locator('[data-panel="change"] .toggle').first.click()
    screen.expect(screen.page.locator(".outcome .output")).to_have_count(2)
    assert screen.violations() == []


def frames_of(loaded, steps):
    """Return frames of a film, each with the weights of its own update."""
    source = SENTENCE.split()
    return [
        {
            "step": step,
            "seconds": 1.0,
            "texts": [
                {
                    "text": SENTENCE,
                    "said": f"said {step}",
                    "gold": "LADAB NEFOK NOGIM",
                    "attention": None,
                    "reference": {
                        "source": source,
                        "target": ["LADAB", "NEFOK", "NOGIM"],
                        "weights": [[step / 100, 0.0, 0.0]] * 3,
                    },
                }
            ],
        }
        for step in steps
    ]


def with_facts(**facts):
    """Return a route that adds facts to the descriptions of all models."""

    def answer(route):
        response = route.fetch()
        found = response.json()
        route.fulfill(
            response=response,
            json={**found, "models": [{**model, **facts} for model in found["models"]]},
        )

    return answer


def test_the_film_is_scrubbed_through(visit, attend, served_models):
    frames = frames_of(served_models[1].translator, [0, 25, 50])
    routes = {
        "**/models": with_facts(film=True),
        "**/film": lambda route: route.fulfill(json={"frames": frames}),
    }
    screen = visit({"open": "film"}, routes=routes, size=(390, 844), scheme="dark")
    screen.shows(attend())
    panel = screen.page.locator('[data-panel="film"]')
    first = panel.locator("tbody td").first
    screen.expect(first).to_have_attribute("style", "--w: 0.5000;")
    slider = panel.get_by_label("frame", exact=True)
    slider.focus()
    screen.page.keyboard.press("Home")
    screen.expect(first).to_have_attribute("style", "--w: 0.0000;")
    screen.page.keyboard.press("ArrowRight")
    screen.expect(panel.locator("output")).to_have_text("update 25 of 50")
    screen.expect(panel.locator(".output")).to_contain_text("said 25")
    panel.get_by_role("button", name="Play").click()
    screen.expect(panel.locator("output")).to_have_text("update 50 of 50")
    assert screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert screen.violations() == []


def test_other_places_of_a_head_are_listed(visit, attend):
    places = [{"source": "badal kofen", "target": "LADAB NEFOK", "attends": 1, "attended": 0,
               "weight": 0.75}]  # fmt: skip
    asked = []

    def answer(route):
        asked.append(route.request.post_data_json)
        route.fulfill(json={"searched": 100, "count": 7, "places": places})

    routes = {"**/models": with_facts(built_in=True), "**/where": answer}
    screen = visit({"open": "where", "model": "transformer"}, routes=routes)
    screen.shows(attend(model="transformer"))
    panel = screen.page.locator('[data-panel="where"]')
    panel.get_by_label("word that attends").fill("NEFOK")
    panel.get_by_label("word attended to").fill("badal")
    panel.get_by_label("layer to search").select_option("0")
    panel.get_by_label("head to search").select_option("1")
    screen.page.keyboard.press("Tab")
    panel.get_by_role("button", name="Search").press("Enter")
    screen.expect(panel.locator(".places li")).to_have_count(1)
    assert panel.locator("mark").all_inner_texts() == ["badal", "NEFOK"]
    assert asked == [{"model": "transformer", "attends": "NEFOK", "attended": "badal",
                      "part": "cross", "layer": 0, "head": 1}]  # fmt: skip
    assert screen.violations() == []
