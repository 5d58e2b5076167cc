"""What keeps a translator from memorising, from recipe to weights; all of it resumes exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard.base.errors import SettingsError
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

SMALL = [
    "tokenizer.kind=sentencepiece",
    "tokenizer.size=340",
    "model.hidden=8",
    "model.embedding=8",
    "batches.max_length=40",
    "training.validate_every=2",
    "training.validate_sentences=2",
    "training.checkpoint_every=2",
]
ALL = [
    "training.word_dropout=0.2",
    "training.subword_sampling=0.2",
    "training.r_drop=1.0",
    "training.coverage=0.1",
    "training.average=2",
]


def trained(folder: Path, settings: list[str], *, steps: int, resume: bool = False) -> Path:
    overrides = [*settings, f"training.steps={steps}"]
    recipe = expect(find_recipe("seq2seq-attention", overrides=overrides), TranslationRecipe)
    train_translator(recipe, open_run(folder, recipe, resume=resume))
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    return load_file(newest / "model.safetensors")


def test_it_changes_the_training_and_resumes_exactly(
    toy_settings: list[str], tmp_path: Path
) -> None:
    settings = [*toy_settings, *SMALL]
    plain = weights(trained(tmp_path / "plain", settings, steps=4))
    whole = weights(trained(tmp_path / "whole", [*settings, *ALL], steps=4))
    parts = trained(tmp_path / "parts", [*settings, *ALL], steps=2)
    trained(parts, [*settings, *ALL], steps=4, resume=True)
    for name, tensor in whole.items():
        assert torch.equal(tensor, weights(parts)[name]), name
    assert any(not torch.equal(tensor, plain[name]) for name, tensor in whole.items())


@pytest.mark.parametrize("kind", ["sentencepiece", "word"])
def test_changed_texts_resume_exactly(toy_settings: list[str], tmp_path: Path, kind: str) -> None:
    kinds = ("case", "typos", "punctuation", "diacritics", "joined", "markup", "copied")
    changes = [f"augmentation.{name}=0.3" for name in kinds]
    settings = [*toy_settings, *SMALL, f"tokenizer.kind={kind}", *changes]
    whole = weights(trained(tmp_path / "whole", settings, steps=4))
    parts = trained(tmp_path / "parts", settings, steps=2)
    trained(parts, settings, steps=4, resume=True)
    for name, tensor in whole.items():
        assert torch.equal(tensor, weights(parts)[name]), name
    with pytest.raises(SettingsError, match="augmentation"):
        trained(parts, [*settings, "augmentation.case=0.9"], steps=6, resume=True)


def test_sampling_ends_after_its_share(toy_settings: list[str], tmp_path: Path) -> None:
    settings = [*toy_settings, *SMALL]
    found = {
        share: weights(
            trained(
                tmp_path / share,
                [*settings, "training.subword_sampling=0.2", f"training.sampling_share={share}"],
                steps=4,
            )
        )
        for share in ("0", "0.5", "1")
    }
    plain = weights(trained(tmp_path / "plain", settings, steps=4))
    for name, tensor in plain.items():
        assert torch.equal(tensor, found["0"][name]), name
    for one, other in (("0", "0.5"), ("0.5", "1")):
        assert any(not torch.equal(found[one][name], found[other][name]) for name in plain)


def test_words_cannot_be_cut_otherwise(toy_settings: list[str], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r'needs tokenizer\.kind = "sentencepiece"'):
        trained(tmp_path / "run", [*toy_settings, "training.subword_sampling=0.1"], steps=1)
