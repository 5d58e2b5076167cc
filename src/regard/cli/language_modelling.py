"""The commands of the task `language-model`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from regard.base.errors import RegardError
from regard.cli.display import TrainingDisplay, waiting
from regard.models.inspection import LayerRow, layer_table
from regard.models.language_model import build_language_model
from regard.recipes.language_model_report import report_language_model
from regard.recipes.loaded_language_model import load_language_model
from regard.recipes.pretrain import SAMPLES, prepare, train_language_model
from regard.recipes.resume import limits_of, open_run
from regard.settings.language_model import LanguageModelRecipe
from regard.settings.schema import Recipe, expect

# A recipe does not know its vocabulary before it has seen text; this stands in for characters.
ASSUMED_CHARACTERS = 100


def train(recipe: Recipe, out: Path, *, name: str, resume: bool) -> dict[str, Any]:
    """Train a language model and show what it writes."""
    settings = expect(recipe, LanguageModelRecipe)
    console = Console(stderr=True)
    run = open_run(out, settings, resume=resume)
    try:
        with waiting(console, "Reading the text ..."):
            data = prepare(run, settings)
        with TrainingDisplay(console, limits_of(settings.training), title=name) as display:
            trained = train_language_model(settings, run, data=data, observers=[display])
    except RegardError:
        if not resume:
            run.discard()
        raise
    report = out / "report.html"
    with waiting(console, "Writing the report ..."):
        report_language_model(trained, report, title=settings.title or name)
    found = trained.metrics
    bits = found.get("bits_per_character")
    console.print(
        f"Validation: loss {found['loss']:.4f}, perplexity {found['perplexity']:.4g}"
        f"{'' if bits is None else f', {bits:.4f} bits a character'}.\n"
        f"Run: {out}   samples: {out / SAMPLES}   report: {report}",
        highlight=False,
        soft_wrap=True,
    )
    return {"run": str(out), "samples": str(out / SAMPLES), "report": str(report), **found}


def summarise_recipe(recipe: Recipe) -> list[LayerRow]:
    """Return the layers of the language model that a recipe builds."""
    settings = expect(recipe, LanguageModelRecipe)
    vocab = settings.model.vocab or settings.tokenizer.size or ASSUMED_CHARACTERS
    return layer_table(build_language_model(settings.model, vocab=vocab))


def summarise_run(folder: Path) -> list[LayerRow]:
    """Return the layers of a trained language model."""
    return layer_table(load_language_model(folder).model)
