"""Models with experts: trained, resumed, used and looked at like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import regard
from regard.base.errors import SettingsError
from regard.exchange.ctranslate2 import unsupported
from regard.tasks import look_at
from regard.tasks.looking import LookRequest

SMALL = {"model.layers": 2, "model.model_dim": 16, "model.heads": 2, "training.processes": 1}
EXPERTS = {"model.experts": 3, "model.balance_loss": 0.1, "model.expert_capacity": 1.5}
TEXT = "the cat sat on a mat. " * 60
PAIRS = [("cats sleep", "Katzen schlafen"), ("dogs sleep", "Hunde schlafen")] * 6


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "writer"
    more = {"training.steps": 4, "model.context": 12, "decoding.max_tokens": 4}
    regard.train("gpt-nano", data=TEXT, out=folder, set=SMALL | EXPERTS | more, progress=False)
    return folder


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "translator"
    more = {"training.steps": 3, "tokenizer.kind": "word", "tokenizer.shared": False,
            "model.feed_forward": 16, "model.tie": "target"}  # fmt: skip
    data = {"train": PAIRS, "valid": PAIRS[:2], "test": PAIRS[:2]}
    regard.train(
        "transformer-tiny", data=data, out=folder, set=SMALL | EXPERTS | more, progress=False
    )
    return folder


def test_each_token_of_a_text_has_one_expert_in_every_layer(writer: Path, tmp_path: Path) -> None:
    view = look_at(LookRequest(run=writer, text="the cat", part="experts"))
    weights = np.array(view.record["weights"])
    assert weights.shape == (2, 1, 7, 3)
    assert ((weights > 0).sum(axis=-1) == 1).all()
    assert view.shown is not None
    assert "layer 1\n  expert 0" in view.shown(80)
    view.save(tmp_path / "experts.png")
    assert (tmp_path / "experts.png").stat().st_size > 1_000


def test_one_layer_can_be_chosen(writer: Path) -> None:
    view = look_at(LookRequest(run=writer, text="the cat", part="experts", layer=1))
    assert view.shown is not None
    assert "layer 0" not in view.shown(80)
    with pytest.raises(SettingsError, match="There is no layer 7"):
        look_at(LookRequest(run=writer, text="the cat", part="experts", layer=7))


@pytest.mark.parametrize("part", ["experts", "target-experts"])
def test_both_sides_of_a_translator_have_experts(translator: Path, part: str) -> None:
    view = look_at(LookRequest(run=translator, text="cats sleep", part=part))
    weights = np.array(view.record["weights"])
    assert weights.shape[:2] == (2, 1)
    assert weights.shape[2:] == (len(view.record["target"]), 3)


def test_what_has_no_experts_says_so(tmp_path: Path) -> None:
    more = {"training.steps": 1, "model.context": 12, "decoding.max_tokens": 0}
    regard.train("gpt-nano", data=TEXT, out=tmp_path / "r", set=SMALL | more, progress=False)
    with pytest.raises(SettingsError, match=r"has no experts; train one with --set model\.experts"):
        look_at(LookRequest(run=tmp_path / "r", text="the cat", part="experts"))


def test_other_parts_of_a_language_model_are_refused(writer: Path) -> None:
    with pytest.raises(SettingsError, match="--part cross is for translators"):
        look_at(LookRequest(run=writer, text="the cat", part="cross"))


def test_a_text_of_one_line_is_trained_on_without_samples(writer: Path) -> None:
    assert not (writer / "samples.jsonl").exists()


def test_other_engines_do_not_know_experts(translator: Path) -> None:
    settings = regard.load(translator).recipe.model
    assert unsupported(settings) == "model.experts = 3"
