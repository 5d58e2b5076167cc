"""What runs show: what the reports of all tasks share, the course of a training, examples.

Examples are sentences to try a run with, on the page and in the commands to type next.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from torch import nn

from regard.base.errors import RunError
from regard.base.files import write_file
from regard.models.architecture import architecture
from regard.models.inspection import layer_table, parameter_count
from regard.pictures.architecture import architecture_svg
from regard.pictures.canvas import Value
from regard.pictures.curves import History, learning_curves_svg
from regard.pictures.heat_map import confusion_svg
from regard.pictures.report import Fold, Heading, Picture, Section, Table
from regard.pictures.svg import notebook_lines, notebook_picture
from regard.runs.run import Run
from regard.scoring.measures import ClassificationScore
from regard.settings.recipe import Recipe
from regard.training.progress import read_metrics

MOST_CONFUSED = 40  # labels that a confusion matrix can show


def learning_section(histories: Mapping[str, History]) -> Iterator[Section]:
    """Yield the learning curves of the trainings that have any."""
    known = {name: rows for name, rows in histories.items() if rows}
    if known:
        yield Heading("Learning")
        yield Picture("Loss and validation over the training", learning_curves_svg(known))


def making_section(name: str, model: nn.Module, recipe: Recipe) -> Iterator[Section]:
    """Yield the architecture, the layers, and the settings that a model was trained with."""
    yield Heading(f"How {name} was made")
    yield Fold(
        "Architecture",
        [Picture("What feeds what", architecture_svg(architecture(model), title=name))],
    )
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


def histories_of(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a run by its name; those of several seeds by the seed."""
    run = Run.open(folder)
    seeds = sorted((run.folder / "seeds").glob("*/metrics.jsonl"))
    found = {f"seed {int(path.parent.name)}": read_metrics(path) for path in seeds}
    found = found or {run.folder.name: read_metrics(run.metrics)}
    if not any(found.values()):
        raise RunError(f"{run.folder} has no record of its training yet.")
    return found


def run_html(run: Run) -> str:
    """Return a run as HTML: a few lines, and its learning curves."""
    title = run.table.get("title")
    lines = [("run", str(run.folder)), ("task", run.task)]
    lines += [("title", str(title))] if title else []
    shown = notebook_lines(*lines, *_tested(run))
    try:
        histories = histories_of(run.folder)
    except RunError:  # nothing was trained yet
        return shown
    return shown + notebook_picture(learning_curves_svg(histories), label="learning curves")


def _tested(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the test; those that carry a signature with it."""
    path = run.folder / "test.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for name, value in found.items():
        if isinstance(value, dict) and "signature" in value:
            yield str(value["name"]), f"{value['value']:.2f} ({value['signature']})"
        elif isinstance(value, int | float):
            yield name, f"{value:.4g}"


EXAMPLES_FILE = "examples.txt"
EXAMPLE_COUNT = 6
# Long enough to be interesting, short enough for a screen.
FEWEST_WORDS, MOST_WORDS = 5, 14
EXAMPLE_CHARACTERS = 10_000  # of a file that is ours


def keep_examples(run: Path, sentences: Iterable[str]) -> None:
    """Keep the first sentences that are fit to be shown."""
    chosen = _fit_to_show(sentences)
    if chosen:
        write_file(run / EXAMPLES_FILE, "\n".join(chosen) + "\n")


def kept_examples(run: Path) -> tuple[str, ...]:
    """Return the sentences that a run has kept; none if there are none."""
    return _fit_to_show(_kept_text(run).splitlines())


MOST_CHARACTERS = 2_000  # of an input that is offered


def keep_inputs(run: Path, inputs: Iterable[str]) -> None:
    """Keep a few inputs that a page may offer: texts, windows of a series, nodes."""
    one_line = (" ".join(text.split()) for text in inputs)
    chosen = islice((text for text in one_line if 0 < len(text) <= MOST_CHARACTERS), EXAMPLE_COUNT)
    lines = list(dict.fromkeys(chosen))
    if lines:
        write_file(run / EXAMPLES_FILE, "\n".join(lines) + "\n")


def kept_inputs(run: Path) -> tuple[str, ...]:
    """Return the inputs that a run has kept; none if there are none."""
    lines = (line.strip() for line in _kept_text(run).splitlines())
    fitting = (line for line in lines if 0 < len(line) <= MOST_CHARACTERS)
    return tuple(islice(fitting, EXAMPLE_COUNT))


def _kept_text(run: Path) -> str:
    path = run / EXAMPLES_FILE
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(EXAMPLE_CHARACTERS)


def _fit_to_show(sentences: Iterable[str]) -> tuple[str, ...]:
    fitting = (
        sentence.strip()
        for sentence in sentences
        if FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
    )
    return tuple(islice(dict.fromkeys(fitting), EXAMPLE_COUNT))
