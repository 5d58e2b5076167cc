"""The report of a node classifier: accuracy over seeds, confusion, and the nodes as points."""

from collections.abc import Iterator
from pathlib import Path

from regard.base.errors import SettingsError
from regard.models.inspection import parameter_count
from regard.pictures.graph import embeddings_svg
from regard.pictures.report import Heading, Paragraph, Picture, Section, Table, write_page
from regard.runs.report import confusion_section, learning_section, making_section
from regard.scoring.measures import score_labels
from regard.tasks.node_classification import model
from regard.training.progress import read_metrics

SHOWN_SEEDS = 8
MOST_POINTS = 20_000  # nodes; more would make a file that no browser likes


def write_report(trained: model.TrainedNodeClassifier, path: Path, *, title: str) -> None:
    """Write one HTML file about a trained node classifier."""
    write_page(path, title=title, sections=list(_sections(trained)))


def _sections(trained: model.TrainedNodeClassifier) -> Iterator[Section]:
    run, loaded, accuracy = trained.run, trained.model, trained.accuracy
    graph = loaded.graph
    yield Heading("Accuracy on the test nodes")
    yield Paragraph(
        f"{accuracy}; {graph.nodes:,} nodes, {parameter_count(loaded.model):,} parameters. What "
        f"follows is seed {accuracy.best.seed}, which validation chose."
    )
    yield Table(
        "In percent, a training a seed",
        ["seed", "updates", "validation loss", "validation accuracy", "test accuracy"],
        [
            [f"{one.seed}", one.steps, one.valid_loss, one.valid_accuracy, one.test_accuracy]
            for one in accuracy.seeds
        ],
    )
    if graph.split is not None and len(graph.split.test):
        test = graph.split.test
        expected = graph.labels[test].tolist()
        yield from confusion_section(
            score_labels(loaded.predictions[test].tolist(), expected, labels=graph.classes)
        )
    yield from _points(loaded)
    yield from learning_section(
        {
            f"seed {one.seed}": read_metrics(model.seed_folder(run, one.seed) / model.METRICS)
            for one in accuracy.seeds[:SHOWN_SEEDS]
        }
    )
    yield from making_section(run.folder.name, loaded.model, loaded.recipe)


def _points(loaded: model.LoadedGraphClassifier) -> Iterator[Section]:
    """Yield all nodes as points; without scikit-learn, or with too many of them, nothing."""
    graph = loaded.graph
    if graph.nodes > MOST_POINTS:
        return
    try:
        drawn = embeddings_svg(loaded.embeddings(), labels=graph.labels, classes=graph.classes)
    except SettingsError:
        return
    yield Heading("The nodes by their features")
    yield Picture("The last hidden layer in two dimensions, coloured by class", drawn)
