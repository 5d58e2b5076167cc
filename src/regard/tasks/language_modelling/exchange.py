"""GPT-2 folders as runs, and runs as GPT-2 folders."""

from pathlib import Path

from regard.base.errors import RunError, SettingsError
from regard.exchange.gpt2 import Gpt2, read_gpt2, write_gpt2
from regard.runs.run import Run
from regard.settings.models import CausalTransformerSettings
from regard.tasks.language_modelling.data import TOKENIZER
from regard.tasks.language_modelling.model import load
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress

INSIDE = "gpt2"


def import_gpt2(folder: Path, out: Path) -> Run:
    """Make a run of a GPT-2 folder, to generate with and to fine-tune."""
    Run.require_free(out)
    found = read_gpt2(folder)
    recipe = LanguageModelRecipe.model_validate(
        {
            "title": f"Imported from {folder.name}",
            "tokenizer": {"kind": "byte-bpe", "size": found.tokenizer.size},
            "model": found.settings,
        }
    )
    run = Run.create(out, recipe)
    found.tokenizer.save(run.folder, TOKENIZER)
    CheckpointStore(run.folder).save_best(found.model, Progress(), {})
    return run


def export_gpt2(folder: Path, output: Path | None = None) -> Path:
    """Write the best model of a run as `transformers` reads it; return the folder.

    Without `output` that is `gpt2` in the run, written anew each time.
    """
    out = output or folder / INSIDE
    if output is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out} is not empty; choose another folder with --output.")
    loaded = load(folder)
    settings, tokenizer = loaded.recipe.model, loaded.text.tokenizer
    if not isinstance(settings, CausalTransformerSettings):
        raise SettingsError("GPT-2 is a Transformer: a recurrent model cannot be written as one.")
    if not isinstance(tokenizer, ByteBpeTokenizer):
        raise SettingsError(
            'GPT-2 reads byte-level BPE: train with tokenizer.kind="byte-bpe" to export a model.'
        )
    write_gpt2(Gpt2(loaded.model, settings, tokenizer), out)
    return out
