"""The report of a text classifier: accuracy, F1, and which label is taken for which."""

from collections.abc import Iterator
from pathlib import Path

from regard.models.inspection import parameter_count
from regard.pictures.report import Heading, Section, Table, write_page
from regard.runs.report import confusion_section, learning_section, making_section, minutes
from regard.tasks.text_classification.model import TrainedTextClassifier
from regard.training.progress import read_metrics


def write_report(trained: TrainedTextClassifier, path: Path, *, title: str) -> None:
    """Write one HTML file about a trained text classifier."""
    write_page(path, title=title, sections=list(_sections(trained)))


def _sections(trained: TrainedTextClassifier) -> Iterator[Section]:
    name, score = trained.run.folder.name, trained.score
    model, history = trained.model, read_metrics(trained.run.metrics)
    yield Heading(f"Scores on the {trained.part} texts")
    header = ["accuracy %", "macro-F1 %", "texts", "parameters", "minutes of training"]
    row = [
        100 * score.accuracy,
        100 * score.macro_f1,
        score.examples,
        parameter_count(model.model),
        minutes(history),
    ]
    yield Table("Macro-F1 is the mean F1 of the labels: rare ones count as much", header, [row])
    yield from confusion_section(score)
    yield from learning_section({name: history})
    yield from making_section(name, model.model, model.recipe)
