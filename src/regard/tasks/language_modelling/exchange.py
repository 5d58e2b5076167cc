"""Language models of other programs as runs, and runs in the layout of GPT-2."""

from collections.abc import Callable
from pathlib import Path

from regard.base.errors import RunError
from regard.base.files import require_free
from regard.exchange.formats import ForeignModel, ModelParts
from regard.exchange.hugging_face import bert, gpt2, llama
from regard.runs.run import Run
from regard.settings.language_models import BidirectionalSettings, CausalTransformerSettings
from regard.tasks.exchange import recipe_of
from regard.tasks.language_modelling.data import TOKENIZER
from regard.tasks.language_modelling.model import load
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress

INSIDE, OUTSIDE = "gpt2", "hugging-face"


def store(found: ForeignModel, folder: Path) -> None:
    """Write a foreign model as a run, to generate with and to fine-tune."""
    run = Run.create(folder, recipe_of(found, LanguageModelRecipe))
    found.tokenizers["text"].save(run.folder, TOKENIZER)
    CheckpointStore(run.folder).save_best(found.model, Progress(), {})


def export_gpt2(folder: Path, output: Path | None = None, *, force: bool = False) -> Path:
    """Write the best model of a run as `transformers` reads GPT-2; return the folder.

    Without `output` that is `gpt2` in the run, written anew each time. An `output` that exists is
    replaced only with `force`, and only if it holds such a model.
    """
    return _written(folder, output, inside=INSIDE, force=force, write=gpt2.write)


def export_language_model(folder: Path, output: Path | None = None, *, force: bool = False) -> Path:
    """Write the best model of a run for `transformers`: as GPT-2, Llama, Qwen or BERT.

    Its settings decide; without `output` the folder is `hugging-face` in the run.
    """
    settings = load(folder).recipe.model
    write = gpt2.write
    if isinstance(settings, BidirectionalSettings):
        write = bert.write
    elif isinstance(settings, CausalTransformerSettings) and settings.positions == "rotary":
        write = llama.write
    return _written(folder, output, inside=OUTSIDE, force=force, write=write)


def _written(
    folder: Path,
    output: Path | None,
    *,
    inside: str,
    force: bool,
    write: Callable[[ModelParts, Path], None],
) -> Path:
    out = output or folder / inside
    if output is not None:
        require_free(output, force=force)
        if force and output.exists() and not (output / "config.json").is_file():
            raise RunError(f"{output} holds no earlier export; choose another with --output.")
    loaded = load(folder)
    parts = ModelParts(
        model=loaded.model,
        settings=loaded.recipe.model,
        tokenizers={"text": loaded.text.tokenizer},
    )
    write(parts, out)
    return out
