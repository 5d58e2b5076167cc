"""Layers computed twice, fewer bits and compilation, from the recipe to a training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from regard.compute import device as precision
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

SMALL = [
    "model.layers=1",
    "model.model_dim=16",
    "model.heads=2",
    "model.feed_forward=16",
    "model.attention_dropout=0.1",
    "model.activation_dropout=0.1",
    "training.average=0",
    "training.steps=2",
    "training.validate_sentences=2",
]


def trained(folder: Path, settings: list[str], *chosen: str) -> dict[str, torch.Tensor]:
    overrides = [*(line for line in settings if not line.startswith("model.")), *SMALL]
    recipe = expect(
        find_recipe("transformer-tiny", overrides=[*overrides, *chosen]), TranslationRecipe
    )
    train_translator(recipe, open_run(folder, recipe, resume=False))
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    return load_file(newest / "model.safetensors")


def test_options_reach_the_training(
    toy_settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[bool] = []
    monkeypatch.setattr(nn.Module, "compile", lambda self, dynamic: compiled.append(dynamic))
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    plain = trained(tmp_path / "plain", toy_settings)
    twice = trained(
        tmp_path / "twice", toy_settings, "training.recompute=true", "training.compile=true"
    )
    for name, tensor in plain.items():
        torch.testing.assert_close(twice[name], tensor, msg=name)
    assert compiled == [True]
    fewer_bits = trained(tmp_path / "bits", toy_settings, "training.precision=bf16")
    for name, tensor in plain.items():
        torch.testing.assert_close(fewer_bits[name], tensor, atol=0.05, rtol=0.05, msg=name)
    assert any(not torch.equal(tensor, plain[name]) for name, tensor in fewer_bits.items())
