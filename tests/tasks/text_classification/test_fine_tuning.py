"""Training that begins with another run: old words keep their weights, new ones are learned."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard.base.errors import RunError, SettingsError
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

FEW = ["training.steps=2", "training.validate_sentences=2", "training.validate_every=2"]


@pytest.fixture
def settings(toy_settings: list[str], toy_corpus: Path, tmp_path: Path) -> list[str]:
    """Overrides for a corpus with a word that the first one does not have."""
    for side, word in (("src", "neuwort"), ("tgt", "TROWUEN")):
        text = (toy_corpus / f"train.{side}").read_text("utf-8")
        (tmp_path / f"train.{side}").write_text(text + f"{word}\n", encoding="utf-8")
    files = f"data.train=[{tmp_path / 'train.src'},{tmp_path / 'train.tgt'}]"
    return [*toy_settings, files, *FEW]


def tuned(folder: Path, settings: list[str]) -> Path:
    recipe = expect(find_recipe("seq2seq-attention", overrides=settings), TranslationRecipe)
    train_translator(recipe, open_run(folder, recipe, resume=False))
    return folder


@pytest.fixture(scope="module")
def first_run(toy_settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tuned(tmp_path_factory.mktemp("first") / "run", [*toy_settings, *FEW])


def test_weights_and_words_are_taken_over(
    first_run: Path, settings: list[str], tmp_path: Path
) -> None:
    more = [f"training.start_from={first_run}", "training.freeze=[encoder.*]"]
    run = tuned(tmp_path / "run", [*settings, *more])
    old, new = load(first_run), load(run)
    assert new.source_tokenizer.size == old.source_tokenizer.size + 1
    ids = old.source_tokenizer.encode("badal kofen")
    assert new.source_tokenizer.encode("badal kofen neuwort") == [*ids, old.source_tokenizer.size]
    before = load_file(first_run / "best" / "model.safetensors")
    after = load_file(run / "best" / "model.safetensors")
    for name, tensor in before.items():
        kept = torch.equal(after[name][: len(tensor)], tensor)
        assert kept is name.startswith("encoder."), name


def test_a_kill_in_the_first_checkpoint_does_not_lose_the_first_weights(
    first_run: Path, settings: list[str], tmp_path: Path
) -> None:
    given = [*settings, f"training.start_from={first_run}"]
    recipe = expect(find_recipe("seq2seq-attention", overrides=given), TranslationRecipe)
    killed = open_run(tmp_path / "killed", recipe, resume=False)
    (killed.folder / "checkpoints" / ".step-00000002.writing").mkdir(parents=True)
    train_translator(recipe, killed)
    weights = [
        (folder / "best" / "model.safetensors").read_bytes()
        for folder in (killed.folder, tuned(tmp_path / "whole", given))
    ]
    assert weights[0] == weights[1]


def test_subwords_are_added_where_the_size_makes_room(
    toy_settings: list[str], settings: list[str], tmp_path: Path
) -> None:
    subwords = ["tokenizer.kind=sentencepiece", "tokenizer.size=290"]
    before = tuned(tmp_path / "before", [*toy_settings, *FEW, *subwords])
    more = [f"training.start_from={before}", "tokenizer.size=300", "training.freeze=[encoder.*]"]
    old, new = load(before), load(tuned(tmp_path / "run", [*settings, *subwords, *more]))
    assert old.source_tokenizer.size < new.source_tokenizer.size <= 300
    rows = old.source_tokenizer.size
    table = new.model.encoder.embedding.weight
    assert table.shape[0] == new.source_tokenizer.size
    assert torch.equal(table[:rows], old.model.encoder.embedding.weight)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("tokenizer.kind=character", "trained with tokenizer.kind = 'word', which 'character'"),
        ("tokenizer.shared=true", "trained with tokenizer.shared = False, which True"),
        ("model.hidden=16", "Use the same settings under 'model' as that run"),
        ("training.freeze=[nothing]", "no parameter is named like 'nothing'"),
    ],
)
def test_what_does_not_fit_is_refused(
    first_run: Path, settings: list[str], tmp_path: Path, change: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        tuned(tmp_path / "run", [*settings, f"training.start_from={first_run}", change])


def test_a_folder_without_a_run(settings: list[str], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="There is no run at"):
        tuned(tmp_path / "run", [*settings, f"training.start_from={tmp_path / 'none'}"])
