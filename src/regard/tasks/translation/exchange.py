"""Translators of other programs as runs."""

from pathlib import Path
from typing import Any

from regard.exchange.formats import ForeignModel
from regard.runs.run import Run
from regard.settings.models import TransformerSettings
from regard.tasks.exchange import recipe_of
from regard.tasks.translation.settings import BatchSettings, TranslationRecipe
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress


def store(found: ForeignModel, folder: Path) -> None:
    """Write a foreign model as a run, to translate with, to look into and to fine-tune."""
    model, tables = found.settings, dict[str, Any]()
    longest = BatchSettings().max_length  # type: ignore[call-arg]
    if isinstance(model, TransformerSettings) and model.positions == "learned":
        tables["batches"] = {"max_length": min(longest, model.max_length)}
    run = Run.create(folder, recipe_of(found, TranslationRecipe, **tables))
    run.save_tokenizers(found.tokenizers["source"], found.tokenizers["target"])
    CheckpointStore(run.folder).save_best(found.model, Progress(), {})
