"""Translators of other programs as runs."""

from pathlib import Path

from regard.exchange.formats import ForeignModel
from regard.runs.run import Run
from regard.tasks.exchange import recipe_of
from regard.tasks.translation.settings import TranslationRecipe
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress


def store(found: ForeignModel, folder: Path) -> None:
    """Write a foreign model as a run, to translate with, to look into and to fine-tune."""
    run = Run.create(folder, recipe_of(found, TranslationRecipe))
    run.save_tokenizers(found.tokenizers["source"], found.tokenizers["target"])
    CheckpointStore(run.folder).save_best(found.model, Progress(), {})
