"""Node classifiers of other programs as runs, with the graph that they are for."""

from pathlib import Path

import torch

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.corpora.graph_files import write_npz
from regard.exchange.formats import ForeignModel
from regard.models.graph_classifier import GraphClassifier
from regard.runs.run import Run
from regard.settings.models import GraphModelSettings
from regard.settings.recipe import expect
from regard.tasks.exchange import recipe_of
from regard.tasks.node_classification import model as loaded_model
from regard.tasks.node_classification.data import given_graph, graph_input, node_batch
from regard.tasks.node_classification.settings import GraphRecipe
from regard.tasks.node_classification.training import measure_nodes
from regard.training.checkpoint import CheckpointStore
from regard.training.progress import Progress

SEED = 1


def store(found: ForeignModel, folder: Path, *, data: Path | None = None) -> list[str]:
    """Write a foreign model as a run with its graph, and test it; return the accuracy as a note."""
    model, settings = found.model, found.settings
    if not isinstance(model, GraphClassifier) or not isinstance(settings, GraphModelSettings):
        raise RunError("The imported model is no node classifier.")
    if data is None:
        raise SettingsError(
            "A node classifier belongs to a graph: name its file with --data, as cora.npz."
        )
    recipe, graph = given_graph(expect(recipe_of(found, GraphRecipe), GraphRecipe), data)
    sizes = (graph.features.width, len(graph.classes))
    if sizes != (settings.features, settings.classes):
        raise RunError(
            f"{data} has {sizes[0]} features and {sizes[1]} classes, but the model is for "
            f"{settings.features} and {settings.classes}: it belongs to another graph."
        )
    if graph.split is None:
        raise SettingsError(f"{data} has no split into training, validation and test nodes.")
    run = Run.create(folder, recipe)
    write_npz(graph, run.folder / loaded_model.GRAPH)
    tensors = graph_input(graph, recipe.data)
    valid, test = (
        node_batch(graph, tensors, torch.from_numpy(part))
        for part in (graph.split.valid, graph.split.test)
    )
    with torch.no_grad():
        validated, tested = measure_nodes(model, valid), measure_nodes(model, test)
    result = loaded_model.SeedResult(
        seed=SEED,
        steps=0,
        valid_loss=validated["loss"],
        valid_accuracy=100.0 * validated["accuracy"],
        test_accuracy=100.0 * tested["accuracy"],
    )
    accuracy = loaded_model.NodeAccuracy((result,))
    CheckpointStore(loaded_model.seed_folder(run, SEED)).save_best(model, Progress(), {})
    write_json(run.folder / loaded_model.RESULT, accuracy.to_dict())
    return [f"Test accuracy: {accuracy}"]
