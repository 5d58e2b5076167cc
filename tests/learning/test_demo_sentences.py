"""The demo's model must translate a sentence as people type it, and as the corpus has it."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard

QUICK = {
    "data.grammar.size": 5_000,
    "data.grammar.max_words": 7,
    "batches.tokens": 1_000,
    "data.grammar.valid_size": 40,
    "data.grammar.test_size": 40,
    "training.steps": 400,
    "training.minutes": 20,
    "training.validate_every": 400,
    "training.checkpoint_every": 400,
}


@pytest.mark.learning
@pytest.mark.slow
def test_capitals_and_full_stops_are_understood(tmp_path: Path) -> None:
    model = regard.train("demo-attention", set=QUICK, out=tmp_path / "run", progress=False).model
    found = model.translate(["Cats do not like dogs.", "cats do not like dogs", "Eggs are old."])
    assert [one.text for one in found] == [
        "Katzen mögen keine Hunde.",
        "Katzen mögen keine Hunde",
        "Eier sind alt.",
    ]
    assert [one.unknown for one in found] == [(), (), ()]
