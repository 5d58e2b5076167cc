"""The film of a training: each frame is what `look` shows of the checkpoint at that update."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regard
from regard.runs.film import FILM, film_of, is_frame
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.film import filmed_pairs
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from regard.training.checkpoint import checkpoint_folders, load_weights, step_of


def trained(folder: Path, settings: list[str], *more: str) -> Path:
    overrides = [*settings, "training.steps=60", "training.checkpoint_every=25", "training.keep=9",
                 "training.validate_every=30", *more]  # fmt: skip
    recipe = expect(find_recipe("seq2seq-attention", overrides=overrides), TranslationRecipe)
    train_translator(recipe, open_run(folder, recipe, resume=False))
    return folder


@pytest.fixture(scope="module")
def filmed(toy_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a film."""
    folder = tmp_path_factory.mktemp("film") / "run"
    return trained(folder, toy_settings, "training.film=true")


def test_frames_are_close_at_first(filmed: Path) -> None:
    assert [frame["step"] for frame in film_of(filmed)] == [0, 25, 50, 60]
    steps = [step for step in range(100_001) if is_frame(step)]
    assert steps[:10] == [0, 25, 50, 75, 100, 125, 150, 175, 200, 250]
    assert len(steps) < 60


def test_each_frame_is_what_look_shows_of_the_checkpoint(filmed: Path) -> None:
    loaded = regard.load(filmed)
    pairs = filmed_pairs(read_splits(loaded.recipe.data).valid)
    frames = {frame["step"]: frame for frame in film_of(filmed)}
    steps = []
    for folder in checkpoint_folders(filmed):
        step = step_of(folder)
        load_weights(loaded.model, folder)
        for pair, shown in zip(pairs, frames[step]["texts"], strict=True):
            said = loaded.translate(pair.source)
            assert (shown["text"], shown["said"]) == (pair.source, said.text)
            assert shown["attention"] == said.by_word().to_dict()  # what `look` records
            assert shown["reference"]["target"] == pair.target.split()
        steps.append(step)
    assert steps == [25, 50, 60]


def test_a_film_does_not_change_the_training(
    filmed: Path, toy_settings: list[str], tmp_path: Path
) -> None:
    plain = regard.load(trained(tmp_path / "plain", toy_settings)).model.state_dict()
    for name, value in regard.load(filmed).model.state_dict().items():
        assert torch.equal(value, plain[name])
    assert not (tmp_path / "plain" / FILM).exists()


def test_damaged_frames_are_left_out(tmp_path: Path) -> None:
    lines = ['{"step": 3, "texts": []}', "[" * 9_000, '{"step": "x"}', '{"step": 1, "texts": []}']
    (tmp_path / FILM).write_text("\n".join(lines))
    assert [frame["step"] for frame in film_of(tmp_path)] == [1, 3]
    assert film_of(tmp_path / "nowhere") == []
