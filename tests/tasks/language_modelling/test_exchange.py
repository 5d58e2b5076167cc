from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import RunError, SettingsError
from regard.exchange.formats import ModelParts
from regard.exchange.hugging_face.gpt2 import write
from regard.models.language_model import build_language_model
from regard.runs.run import Run
from regard.settings.language_models import CausalTransformerSettings
from regard.tasks.language_modelling.exchange import export_gpt2
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.tokenizers import AnyTokenizer, train_tokenizer
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress

pytest.importorskip("tokenizers")
BYTES = train_tokenizer(["the cat sat"], kind="byte-bpe", size=262)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small model in GPT-2's layout."""
    torch.manual_seed(1)
    settings = CausalTransformerSettings.model_validate({"layers": 1, "model_dim": 8, "heads": 2})
    assert isinstance(BYTES, ByteBpeTokenizer)
    model = build_language_model(settings, vocab=BYTES.size)
    parts = ModelParts(model=model, settings=settings, tokenizers={"text": BYTES})
    write(parts, tmp_path / "gpt2")
    return tmp_path / "gpt2"


def run_of(folder: Path, model: dict[str, Any], tokenizer: AnyTokenizer) -> Path:
    recipe = LanguageModelRecipe.model_validate({"model": model})
    run = Run.create(folder, recipe)
    tokenizer.save(folder, "text")
    built = build_language_model(recipe.model, vocab=tokenizer.size)
    CheckpointStore(folder).save_best(built, Progress(), {})
    return run.folder


def test_there_and_back_by_the_commands(folder: Path, tmp_path: Path) -> None:
    from regard.cli.app import main

    for arguments in (
        ["import", folder, "--out", tmp_path / "run"],
        ["export", tmp_path / "run", "--to", "gpt2", "--output", tmp_path / "back"],
        ["export", tmp_path / "run", "--to", "gpt2"],
        ["export", tmp_path / "run", "--to", "gpt2"],  # again, in the same place
    ):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        assert stop.value.code == 0
    for name in ("model.safetensors", "vocab.json", "merges.txt"):
        assert (folder / name).read_bytes() == (tmp_path / "back" / name).read_bytes()
        assert (folder / name).read_bytes() == (tmp_path / "run" / "gpt2" / name).read_bytes()


def test_what_cannot_be_exported(folder: Path, tmp_path: Path) -> None:
    letters = train_tokenizer(["abc"], kind="character")
    small = {"layers": 1, "model_dim": 8, "heads": 2}
    runs = {
        "reads byte-level BPE": run_of(tmp_path / "letters", small, letters),
        "a recurrent model": run_of(tmp_path / "gru", {"family": "recurrent"}, BYTES),
        "GPT-2 has no model.norm": run_of(tmp_path / "rms", small | {"norm": "rms"}, BYTES),
    }
    for message, run in runs.items():
        with pytest.raises(SettingsError, match=message):
            export_gpt2(run, tmp_path / "out")
    with pytest.raises(RunError, match="exists already"):
        export_gpt2(runs["a recurrent model"], folder)
    with pytest.raises(RunError, match="holds no earlier export"):
        export_gpt2(runs["a recurrent model"], tmp_path / "letters", force=True)
    with pytest.raises(RunError, match="already holds a run"):
        regard.import_model(folder, out=runs["a recurrent model"])
