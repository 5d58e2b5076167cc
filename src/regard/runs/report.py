"""What the reports of all tasks have in common: how a model learned, and how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from regard.models.inspection import layer_table, parameter_count
from regard.pictures.canvas import Value
from regard.pictures.curves import History, learning_curves_svg
from regard.pictures.heat_map import confusion_svg
from regard.pictures.report import Fold, Heading, Picture, Section, Table
from regard.scoring.classification import ClassificationScore
from regard.settings.recipe import Recipe

MOST_CONFUSED = 40  # labels that a confusion matrix can show


def learning_section(histories: Mapping[str, History]) -> Iterator[Section]:
    """Yield the learning curves of the trainings that have any."""
    known = {name: rows for name, rows in histories.items() if rows}
    if known:
        yield Heading("Learning")
        yield Picture("Loss and validation over the training", learning_curves_svg(known))


def making_section(name: str, model: nn.Module, recipe: Recipe) -> Iterator[Section]:
    """Yield the layers with their parameters, and the settings that a model was trained with."""
    yield Heading(f"How {name} was made")
    layers: list[list[Value]] = [
        [row.name, row.kind, row.shape, row.parameters] for row in layer_table(model)
    ]
    yield Fold(
        f"Layers: {parameter_count(model):,} parameters",
        [Table("Layers", ["layer", "kind", "weights", "parameters"], layers)],
    )
    settings = [[key, str(value)] for key, value in _flat(recipe.model_dump(mode="json"))]
    yield Fold("Recipe", [Table("Recipe", ["setting", "value"], settings)])


def minutes(history: History) -> float:
    """Return how long a training took."""
    return round(history[-1]["seconds"] / 60, 2) if history else 0.0


def confusion_section(score: ClassificationScore) -> Iterator[Section]:
    """Yield how well each label is found, and which are taken for which."""
    rows = [
        [each.label, each.examples, each.precision, each.recall, each.f1]
        for each in score.by_label()
    ]
    yield Table("By label, in percent", ["label", "examples", "precision", "recall", "F1"], rows)
    if len(score.labels) <= MOST_CONFUSED:
        yield Picture(
            "Which label is taken for which", confusion_svg(score.confusion, labels=score.labels)
        )


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif value not in (None, "", []):
            yield f"{prefix}{key}", value
