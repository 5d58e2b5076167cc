"""A trained node classifier with its graph: predictions, embeddings, attention by edge."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.attention.graph import GraphInput
from regard.base.errors import RegardError, RunError, SettingsError
from regard.base.files import whole_file
from regard.compute.device import HOST, beside, moved, placed
from regard.corpora.graph import UNLABELLED, Graph, neighbourhoods
from regard.corpora.graph_files import read_npz
from regard.models.graph_classifier import (
    EdgeVectors,
    GraphClassifier,
    NodeOutput,
    build_graph_classifier,
)
from regard.models.sizes import build_for
from regard.pictures.canvas import unknown_suffix, write_bytes
from regard.runs.run import Run, TrainedRun, quoted
from regard.tasks.node_classification.data import graph_input
from regard.tasks.node_classification.settings import GraphRecipe
from regard.training.checkpoint import load_weights


@dataclass(frozen=True, eq=False)
class EdgeAttention:
    """The attention of one layer on every edge, labelled with the edge."""

    source: Int[np.ndarray, "edges"]
    target: Int[np.ndarray, "edges"]
    weights: Float[np.ndarray, "edges heads"]

    def of(self, node: int) -> EdgeAttention:
        """Return the edges that end in a node, the most attended first."""
        own = np.flatnonzero(self.target == node)
        own = own[np.argsort(-self.weights[own].mean(1), kind="stable")]
        return EdgeAttention(self.source[own], self.target[own], self.weights[own])

    def save(self, path: Path, *, graph: Graph) -> None:
        """Write source, target, head and weight: as TSV with names, or as npz with numbers."""
        if path.suffix.lower() == ".npz":
            path.parent.mkdir(parents=True, exist_ok=True)
            arrays = {"source": self.source, "target": self.target, "weights": self.weights}
            with whole_file(path) as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)
        elif path.suffix.lower() == ".tsv":
            lines = ["source\ttarget\thead\tweight"]
            for source, target, heads in zip(self.source, self.target, self.weights, strict=True):
                ends = f"{graph.name(int(source))}\t{graph.name(int(target))}"
                lines += [f"{ends}\t{head}\t{weight:.6g}" for head, weight in enumerate(heads)]
            write_bytes(path, ("\n".join(lines) + "\n").encode())
        else:
            raise unknown_suffix(path, (".tsv", ".npz"))


class LoadedGraphClassifier:
    """A model, the graph that it was trained on, and its recipe."""

    def __init__(
        self, *, model: GraphClassifier, graph: Graph, tensors: GraphInput, recipe: GraphRecipe
    ):
        self.model = model
        self.graph = graph
        self.tensors = tensors
        self.recipe = recipe

    @cached_property
    def output(self) -> NodeOutput:
        """Logits and embeddings of all nodes."""
        return self._output(with_weights=False)

    @cached_property
    def _attention(self) -> tuple[Float[torch.Tensor, "edges _"], ...]:
        """The attention of each layer, which takes far more memory."""
        return self._output(with_weights=True).attention

    def _output(self, *, with_weights: bool) -> NodeOutput:
        self.model.eval()
        with torch.no_grad():
            output: NodeOutput = self.model(
                beside(self.model, self.tensors), with_weights=with_weights
            )
        return moved(output, HOST)

    @property
    def predictions(self) -> Int[np.ndarray, "nodes"]:
        """The class of each node."""
        return self.output.logits.argmax(1).numpy()

    def accuracy(self, nodes: Int[np.ndarray, "chosen"]) -> float:
        """Return the share of these nodes whose class is found, in percent."""
        return 100.0 * float((self.predictions[nodes] == self.graph.labels[nodes]).mean())

    def attention(self, layer: int = 0) -> EdgeAttention:
        """Return the attention of a layer (counted from 0) on every edge."""
        found = self._attention
        if not found:
            raise RegardError("This model has no attention to look at.")
        if not 0 <= layer < len(found):
            raise RegardError(f"There is no layer {layer}; the layers are 0 to {len(found) - 1}.")
        edges = self.tensors.edges
        return EdgeAttention(edges.source.numpy(), edges.target.numpy(), found[layer].numpy())

    def embeddings(self) -> Float[np.ndarray, "nodes hidden"]:
        """Return the features of the last hidden layer, or the logits where there is none."""
        output = self.output
        return (output.logits if output.hidden is None else output.hidden).numpy()

    def save_predictions(self, path: Path) -> None:
        """Write node, part, class, predicted class and its probability as TSV."""
        graph, classes = self.graph, self.graph.classes
        probabilities = self.output.logits.softmax(1).numpy()
        parts = np.full(graph.nodes, "", dtype=object)
        if graph.split is not None:
            for name in ("train", "valid", "test"):
                parts[getattr(graph.split, name)] = name
        lines = ["node\tpart\tclass\tpredicted\tprobability"]
        for node, predicted in enumerate(self.predictions):
            label = graph.labels[node]
            known = "" if label == UNLABELLED else classes[label]
            lines.append(
                f"{graph.name(node)}\t{parts[node]}\t{known}\t{classes[predicted]}\t"
                f"{probabilities[node, predicted]:.6g}"
            )
        write_bytes(path, ("\n".join(lines) + "\n").encode())


GRAPH, RESULT, PREDICTIONS = "graph.npz", "test.json", "predictions.tsv"
METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class SeedResult:
    """One training: what validation said of its best model, and the test accuracy of that one."""

    seed: int
    steps: int
    valid_loss: float
    valid_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class NodeAccuracy:
    """Test accuracies in percent over seeds; the best seed is the one validation chose."""

    seeds: tuple[SeedResult, ...]

    @property
    def mean(self) -> float:
        """Return the mean over seeds."""
        return statistics.fmean(each.test_accuracy for each in self.seeds)

    @property
    def spread(self) -> float:
        """Return the standard deviation over seeds."""
        return statistics.pstdev(each.test_accuracy for each in self.seeds)

    @property
    def best(self) -> SeedResult:
        """Return the seed with the lowest validation loss, whatever its test."""
        return min(self.seeds, key=lambda each: each.valid_loss)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "accuracy_mean": self.mean,
            "accuracy_std": self.spread,
            "best_seed": self.best.seed,
            "seeds": [asdict(each) for each in self.seeds],
        }

    def __str__(self) -> str:
        over = f" over {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
        spread = f" ± {self.spread:.1f}" if len(self.seeds) > 1 else ""
        return f"{self.mean:.1f}{spread} %{over}"


def load(
    folder: str | Path,
    *,
    seed: int | None = None,
    known: tuple[Graph, GraphInput] | None = None,
) -> LoadedGraphClassifier:
    """Load a trained classifier with its graph; of several seeds the best in validation.

    `known` is the graph if it is in memory already.
    """
    run = Run.open(Path(folder))
    recipe = run.recipe(GraphRecipe)
    path = run.folder / RESULT
    if seed is None:
        try:
            seed = int(json.loads(path.read_text(encoding="utf-8"))["best_seed"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{path} is missing or damaged: continue the training with --resume."
            ) from error
    graph, tensors = known or (read_npz(run.folder / GRAPH), None)
    weights = Run(seed_folder(run, seed)).weights()
    model = build_for(lambda: fresh_network(recipe, graph), weights)
    load_weights(model, weights)
    model.eval()
    return LoadedGraphClassifier(
        model=placed(model),
        graph=graph,
        tensors=tensors or graph_input(graph, recipe.data),
        recipe=recipe,
    )


def fresh_network(recipe: GraphRecipe, graph: Graph) -> GraphClassifier:
    """Return an untrained classifier for a graph."""
    return build_graph_classifier(
        recipe.model,
        features=graph.features.width,
        classes=len(graph.classes),
        edges=_edge_vectors(recipe, graph),
    )


def _edge_vectors(recipe: GraphRecipe, graph: Graph) -> EdgeVectors:
    """Return what vectors a graph has, or may learn, for its edges."""
    kind = recipe.model.edge_vectors
    if kind == "types":
        return EdgeVectors()
    if kind == "given" and graph.edge_vectors is None:
        raise SettingsError(
            'model.edge_vectors = "given", but the graph has none: add an array edge_vectors to '
            'the npz, one row for each edge, or use "types" or "learned".'
        )
    if kind == "given" and graph.edge_vectors is not None:
        return EdgeVectors(kind, graph.edge_vectors.shape[1])
    found = neighbourhoods(graph, undirected=recipe.data.undirected)
    return EdgeVectors(kind, len(found.source))


def seed_folder(run: Run, seed: int) -> Path:
    """Return where the training of a seed is kept."""
    return run.folder / "seeds" / f"{seed:04d}"


def build(recipe: GraphRecipe) -> GraphClassifier:
    """Return an untrained classifier; model.features and model.classes stand in for a graph's."""
    settings = recipe.model
    return build_graph_classifier(
        settings,
        features=settings.features,
        classes=settings.classes,
        edges=EdgeVectors(settings.edge_vectors),
    )


@dataclass(frozen=True)
class TrainedNodeClassifier(TrainedRun):
    """A finished training: its run, the model that validation chose, and the test over seeds."""

    model: LoadedGraphClassifier
    accuracy: NodeAccuracy

    def to_dict(self) -> dict[str, Any]:
        """Return where everything is, and the accuracies, as plain values."""
        return {**super().to_dict(), **self.accuracy.to_dict()}

    def next_commands(self) -> list[str]:
        """Return what can be done with the run now."""
        return [f"regard look {quoted(self.run.folder)} --node 0 --out node.png"]

    def lines(self) -> list[str]:
        """Return the test as a person reads it."""
        folder = self.run.folder
        return [
            f"Test accuracy: {self.accuracy}",
            f"Run: {folder}   predictions: {folder / PREDICTIONS}   report: {self.report}",
        ]
