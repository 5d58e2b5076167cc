"""The museum of bugs: each exhibit has its symptom, and what is to be seen shows why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import regard
from regard.base.errors import SettingsError
from regard.cli.app import app
from regard.lectures.museum import EXHIBITS, TICKETS, open_exhibit


def run(*words: str) -> str:
    found = CliRunner().invoke(app, ["museum", *words])
    assert found.exit_code == 0, found.output
    return found.output


def test_list_and_answer_say_what_there_is() -> None:
    listed = run("list")
    assert set(json.loads(run("list", "--json"))) == set(EXHIBITS)
    for name, exhibit in EXHIBITS.items():
        assert f"{name} " in listed
        assert run("answer", name).strip() == exhibit.answer
        assert all(" RUN" in command for command in exhibit.commands)
    with pytest.raises(SettingsError, match="Unknown exhibit 'tickt'"):
        open_exhibit("tickt", "nowhere")


def test_tickets_give_the_label_away_and_texts_do_not(tmp_path: Path) -> None:
    texts = EXHIBITS["ticket"].data(tmp_path)
    for text, label in texts:
        assert text.split()[-1][0] == TICKETS[label]
    shares: dict[str, list[bool]] = {}
    for text, label in texts:
        shares.setdefault(text.split()[0], []).append(label == "kept")
    frequent = [np.mean(found) for found in shares.values() if len(found) > 100]
    assert frequent and all(0.35 < share < 0.65 for share in frequent)


def test_a_visit_trains_the_run_and_says_where_to_look(tmp_path: Path) -> None:
    out = tmp_path / "sales"
    cheap = ("--set", "training.steps=3", "--set", "training.validate_every=3")
    text = run("visit", "tomorrow", "--out", str(out), *cheap)
    assert EXHIBITS["tomorrow"].symptom in text
    assert f"regard trace {out} last" in text
    assert "regard museum answer tomorrow" in text
    rows = (tmp_path / "sales-data" / "sales.csv").read_text().splitlines()[1:]
    cells = [row.split(",") for row in rows]
    assert [row[1] for row in cells[:-1]] == [row[0] for row in cells[1:]]


def test_a_turned_vocabulary_spells_every_word_wrongly(tmp_path: Path) -> None:
    few = [("cats sleep", "Katzen schlafen"), ("dogs sleep", "Hunde schlafen")] * 8
    damage = EXHIBITS["vocabulary"].damage
    assert damage is not None
    small = {"model.model_dim": 8, "model.heads": 1, "training.steps": 2, "decoding.max_length": 4}
    small["tokenizer.mark_capitals"] = False
    regard.train("demo-transformer", data=few, out=tmp_path / "run", set=small, progress=False)
    before = regard.load(tmp_path / "run").target_tokenizer
    damage(tmp_path / "run")
    after = regard.load(tmp_path / "run").target_tokenizer
    assert after.size == before.size
    pieces = [(before.pieces([i])[0], after.pieces([i])[0]) for i in range(before.size)]
    moved = {one for one, other in pieces if one != other}
    assert moved == {"Katzen", "Hunde", "schlafen"}
    assert moved == {other for one, other in pieces if one != other}


@pytest.mark.slow
def test_every_exhibit_has_its_symptom(tmp_path: Path) -> None:
    opened: dict[str, Any] = {
        name: open_exhibit(name, tmp_path / name, progress=False) for name in EXHIBITS
    }
    ticket = opened["ticket"]
    assert ticket.score.accuracy >= 0.98
    said = {each.label for each in ticket.model.classify(["the cat sleeps ticket A11"])}
    assert said == {"returned"}
    sales = opened["tomorrow"].score
    assert sales.mse < 0.05 * sales.naive_mse
    order = opened["order"].model
    for one, other in (("cats", "dogs"), ("birds", "mice"), ("girls", "cows")):
        both = [order.translate(f"{a} like {b}").text for a, b in ((one, other), (other, one))]
        assert both[0] == both[1]
    assert opened["vocabulary"].evaluation.bleu.value > 60  # before the damage
    wrong = regard.load(tmp_path / "vocabulary").translate("the dog sees the cat").text
    assert wrong != "der Hund sieht die Katze"
    long = opened["long"].evaluation
    exact = [
        one.text == pair.target for one, pair in zip(long.translations, long.pairs, strict=True)
    ]
    assert np.mean(exact) < 0.1
    assert opened["lines"].evaluation.bleu.value < 20
