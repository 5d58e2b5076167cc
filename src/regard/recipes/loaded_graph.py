"""A trained node classifier with its graph: predictions, embeddings, attention by edge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int

from regard.attention.graph import GraphInput
from regard.base.errors import RegardError
from regard.corpora.graph import UNLABELLED, Graph
from regard.models.graph_classifier import GraphClassifier, NodeOutput
from regard.pictures.canvas import unknown_suffix, write_bytes
from regard.settings.graph import GraphRecipe


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
            np.savez_compressed(
                path,
                allow_pickle=False,
                source=self.source,
                target=self.target,
                weights=self.weights,
            )
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
        """Logits, embeddings and attention of all nodes."""
        self.model.eval()
        with torch.no_grad():
            output: NodeOutput = self.model(self.tensors, with_weights=True)
        return output

    @property
    def predictions(self) -> Int[np.ndarray, "nodes"]:
        """The class of each node."""
        return self.output.logits.argmax(1).numpy()

    def accuracy(self, nodes: Int[np.ndarray, "chosen"]) -> float:
        """Return the share of these nodes whose class is found, in percent."""
        return 100.0 * float((self.predictions[nodes] == self.graph.labels[nodes]).mean())

    def attention(self, layer: int = 0) -> EdgeAttention:
        """Return the attention of a layer (counted from 0) on every edge."""
        found = self.output.attention
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
