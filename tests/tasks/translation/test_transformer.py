"""A Transformer from recipe to translation: trained, saved, loaded, looked at."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from regard.base.errors import RegardError
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

SMALL = [
    "model.layers=2",
    "model.model_dim=32",
    "model.heads=2",
    "model.feed_forward=64",
    "model.dropout=0.05",
    "model.norm_placement=pre",
    "model.positions=learned",
    "training.label_smoothing=0",
    "training.steps=20",
    "training.validate_every=20",
]


@pytest.fixture(scope="module")
def run(toy_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    general = [line for line in toy_settings if not line.startswith("model.")]
    recipe = expect(
        find_recipe("transformer-tiny", overrides=[*general, *SMALL]), TranslationRecipe
    )
    folder = tmp_path_factory.mktemp("transformer") / "run"
    train_translator(recipe, open_run(folder, recipe, resume=False))
    return folder


def test_it_shows_its_attention(run: Path) -> None:
    translator = load(run)
    assert translator.attends
    found = translator.translate("badal kofen")
    assert found.attention is not None
    weights = found.attention.weights
    assert weights.sum(axis=1) == pytest.approx([1] * len(weights), abs=1e-5)


def test_a_sentence_beyond_the_table_is_refused_and_an_output_ends_with_it(run: Path) -> None:
    translator = load(run)
    assert translator.model.longest_target == 512
    with pytest.raises(RegardError, match="longer than the 512 positions"):
        translator.translate("badal " * 600)
    with torch.inference_mode():
        short = translator.translate("badal " * 250, beam=1, attention=False)
    assert len(short.text.split()) < 512


def test_every_head_can_be_looked_at(run: Path) -> None:
    model = load(run).model
    source, target = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 5, 6]])
    maps = model.head_maps(source, torch.ones(1, 4, dtype=torch.bool), target)
    assert maps.encoder is not None
    assert maps.encoder.shape == (2, 1, 2, 4, 4)
    assert maps.cross.shape == (2, 1, 2, 3, 4)


def test_a_recurrent_model_has_no_heads(toy_run: Path) -> None:
    model = load(toy_run).model
    with pytest.raises(RegardError, match="no attention heads"):
        model.head_maps(
            torch.tensor([[5, 3]]), torch.ones(1, 2, dtype=torch.bool), torch.tensor([[2]])
        )
