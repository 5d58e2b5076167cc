"""The commands of the task `classify-text`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from regard.base.errors import RegardError
from regard.batching.order import BatchOrder
from regard.cli.display import TrainingDisplay
from regard.models.inspection import LayerRow, layer_table
from regard.recipes.classifier_report import report_text_classifier
from regard.recipes.finetune import TrainedTextClassifier, begin_with, train_text_classifier
from regard.recipes.labelled_data import LabelledSplits, read_labelled_splits
from regard.recipes.loaded_text_classifier import build_text_classifier, load_text_classifier
from regard.recipes.resume import open_run
from regard.settings.schema import Recipe, expect
from regard.settings.text_classification import TextClassificationRecipe
from regard.training.loop import Limits

if TYPE_CHECKING:
    from regard.scoring.classification import ClassificationScore

ASSUMED_VOCABULARY = 8_000
MOST_LABELS = 12  # of a confusion matrix in the terminal


def train(recipe: Recipe, out: Path, *, name: str, resume: bool) -> dict[str, Any]:
    """Train a text classifier and test it."""
    settings = expect(recipe, TextClassificationRecipe)
    if settings.pretrained is not None:
        settings = begin_with(settings, Path(settings.pretrained))
    splits = read_labelled_splits(settings.data)
    trained = train_one(settings, out, splits=splits, name=name, resume=resume)
    console = Console(stderr=True)
    for line in [*splits.doubts, *confusion_lines(trained.score)]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return {"run": str(out), **trained.score.to_dict()}


def train_one(
    recipe: TextClassificationRecipe,
    out: Path,
    *,
    splits: LabelledSplits,
    name: str,
    resume: bool = False,
    tokenizer_of: Path | None = None,
) -> TrainedTextClassifier:
    """Train into a folder, showing progress, and write the report there."""
    run = open_run(out, recipe, resume=resume)
    limits = Limits(steps=_steps(recipe, splits), minutes=recipe.training.minutes)
    console = Console(stderr=True)
    try:
        with TrainingDisplay(console, limits, title=name, unit="texts") as display:
            trained = train_text_classifier(
                recipe, run, splits=splits, tokenizer_of=tokenizer_of, observers=[display]
            )
    except RegardError:
        if not resume:
            run.discard()
        raise
    report_text_classifier(trained, out / "report.html", title=recipe.title or name)
    console.print(f"Run: {out}   report: {out / 'report.html'}", highlight=False, soft_wrap=True)
    return trained


def _steps(recipe: TextClassificationRecipe, splits: LabelledSplits) -> int:
    """Return about how many updates there will be, for the display: a symbol for four letters."""
    lengths = [(min(recipe.model.context, 1 + len(one.text) // 4), 1) for one in splits.train]
    order = BatchOrder(lengths, token_budget=recipe.training.tokens, seed=1)
    return recipe.training.epochs * len(order.batches(0))


def confusion_lines(score: ClassificationScore) -> list[str]:
    """Return the score as lines of text, with who is taken for whom if that is not too wide."""
    lines = [
        f"{score.examples} texts: accuracy {score.accuracy:.1%}, macro-F1 {score.macro_f1:.3f}"
    ]
    if len(score.labels) > MOST_LABELS:
        return lines
    width = max(6, *(len(label) + 2 for label in score.labels))
    lines.append(f"{'true / predicted':<18}" + "".join(f"{x:>{width}}" for x in score.labels))
    for label, row in zip(score.labels, score.confusion.tolist(), strict=True):
        lines.append(f"{label:<18}" + "".join(f"{count:>{width}}" for count in row))
    return lines


def summarise_recipe(recipe: Recipe) -> list[LayerRow]:
    """Return the layers of the classifier that a recipe builds, for two labels."""
    settings = expect(recipe, TextClassificationRecipe)
    vocab = settings.model.vocab or settings.tokenizer.size or ASSUMED_VOCABULARY
    return layer_table(build_text_classifier(settings, vocab=vocab, labels=2))


def summarise_run(folder: Path) -> list[LayerRow]:
    """Return the layers of a trained classifier."""
    return layer_table(load_text_classifier(folder).model)
