"""Which parameters go by which rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from regard.base.errors import SettingsError
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.runs.run import finish_or_start
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.objective import matrices_of, optimizer_of
from regard.tasks.translation.settings import TrainingSettings, TranslationRecipe
from regard.tasks.translation.training import train_translator
from regard.training.optimisers import Muon

MUON = TrainingSettings.model_validate({"optimizer": "muon"})


def model_of(recipe: str, *changes: str) -> Translator[Any]:
    found = expect(find_recipe(recipe, overrides=list(changes)), TranslationRecipe)
    return build_translator(found.model, source_vocab=20, target_vocab=20)


def test_layers_go_by_muon_and_tables_norms_and_biases_by_adam() -> None:
    model = model_of("transformer-tiny", "model.layers=1")
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    found = {names[id(matrix.parameter)]: matrix.parts for matrix in matrices_of(model)}
    assert found == {
        "encoder.layers.0.attention.projection.weight": 3,
        "encoder.layers.0.attention.output.weight": 1,
        "encoder.layers.0.feed_forward.inner.weight": 1,
        "encoder.layers.0.feed_forward.outer.weight": 1,
        "decoder.layers.0.self_attention.projection.weight": 3,
        "decoder.layers.0.self_attention.output.weight": 1,
        "decoder.layers.0.cross_attention.projection.weight": 3,
        "decoder.layers.0.cross_attention.output.weight": 1,
        "decoder.layers.0.feed_forward.inner.weight": 1,
        "decoder.layers.0.feed_forward.outer.weight": 1,
    }
    optimizer = optimizer_of(model, MUON)
    assert isinstance(optimizer, Muon)
    others, matrices = (
        {names[id(parameter)] for parameter in group["params"]} for group in optimizer.param_groups
    )
    assert matrices == set(found)
    assert others == set(names.values()) - matrices
    assert [group.get("rate_share", 1.0) for group in optimizer.param_groups] == [1.0, 0.6]


def test_without_a_word_everything_goes_by_adam() -> None:
    optimizer = optimizer_of(model_of("transformer-tiny"), TrainingSettings.model_validate({}))
    assert type(optimizer) is torch.optim.AdamW
    assert len(optimizer.param_groups) == 1


def test_a_model_without_such_matrices_is_refused() -> None:
    with pytest.raises(SettingsError, match="matrices of a Transformer, and this model has none"):
        optimizer_of(model_of("seq2seq"), MUON)


def recipe_of(toy_settings: list[str], *changes: str) -> TranslationRecipe:
    sizes = ["model.layers=1", "model.model_dim=16", "model.heads=2", "model.feed_forward=16"]
    kept = [line for line in toy_settings if not line.startswith("model.")]
    often = ["training.average=0", "training.checkpoint_every=2", "training.validate_sentences=2"]
    overrides = [*kept, *sizes, *often, *changes]
    return expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)


def test_a_training_in_two_parts_is_the_same_as_in_one(
    toy_settings: list[str], tmp_path: Path
) -> None:
    def train(name: str, steps: int) -> dict[str, torch.Tensor]:
        # A constant rate: one that falls would do so sooner in the shorter training.
        limits = [f"training.steps={steps}", "training.schedule=constant"]
        recipe = recipe_of(toy_settings, *limits)
        assert recipe.training.optimizer == "muon"
        train_translator(recipe, finish_or_start(tmp_path / name, recipe))
        newest = sorted((tmp_path / name / "checkpoints").iterdir())[-1]
        return load_file(newest / "model.safetensors")

    whole = train("whole", 4)
    train("parts", 2)
    for name, tensor in train("parts", 4).items():
        assert torch.equal(tensor, whole[name]), name


def test_a_resumed_training_keeps_its_optimiser(toy_settings: list[str], tmp_path: Path) -> None:
    finish_or_start(tmp_path, recipe_of(toy_settings, "training.optimizer=adam"))
    with pytest.raises(SettingsError, match=r"Resume it with --set training\.optimizer=adam"):
        finish_or_start(tmp_path, recipe_of(toy_settings))
