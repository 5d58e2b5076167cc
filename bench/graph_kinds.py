"""Claims about graph attention, measured: faster, slower, memory, expressiveness, optimisation.

    python bench/graph_kinds.py [--data FOLDER_OF_NPZ] [--seeds 3]

On Cora (standard split), with layers of equal width (64 inner units, two layers):

- time of an update and the bytes that are kept for its gradient, in turn, median of the rounds:
  graph convolution, attention with five scores, messages with vectors of edge types and with a
  learned vector for each edge;
- the vectors of edges that a model stores;
- test accuracy over seeds after 100 updates, nothing being chosen by validation, and how much of
  the training loss is left after 20 updates without dropout ("harder to optimise": more is left);
- expressiveness: a random graph whose classes depend on a number on each edge, not on the nodes;
  graph attention does not see it, messages with given vectors do.

Writes results/graph-kinds.json. The data is $REGARD_DATA/planetoid, or ../shared/data/planetoid.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.graph import GraphInput
from regard.corpora.graph import FeatureMatrix, Graph, GraphSplit
from regard.corpora.graph_files import read_npz
from regard.models.graph_classifier import GraphClassifier
from regard.settings.recipe import expect
from regard.studies.small_models import MeanOverSeeds
from regard.tasks import find_recipe
from regard.tasks.node_classification.data import graph_input
from regard.tasks.node_classification.model import fresh_network
from regard.tasks.node_classification.settings import GraphRecipe
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
CALM = ("model.dropout=0.5", "model.attention_dropout=0.5")
KINDS: dict[str, tuple[str, ...]] = {
    "convolution": ("model.layer=convolution", "model.hidden=64", *CALM),
    "additive": CALM,
    "dynamic": ("model.score=dynamic", *CALM),
    "scaled_dot": ("model.score=scaled-dot", *CALM),
    "distance": ("model.score=distance", *CALM),
    "gaussian": ("model.score=gaussian", *CALM),
    "edge_types": ("model.layer=messages", "model.hidden=64", *CALM),
    "edge_learned": (
        "model.layer=messages", "model.hidden=64", "model.edge_vectors=learned", *CALM,
    ),
}  # fmt: skip
EARLY, RATE = 20, 0.005
UPDATES, DECAY = 100, 5e-4  # of the trainings whose accuracy is measured


def main() -> None:
    """Measure everything, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=DATA / "planetoid")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    torch.set_num_threads(1)
    path = given.data / "cora.npz"
    figures: dict[str, float] = {}
    details: dict[str, Any] = {"rounds": given.rounds}
    costs(path, given.rounds, figures, details)
    accuracies(path, given.seeds, figures, details)
    expressiveness(given.seeds, figures, details)
    command = f"python bench/graph_kinds.py --seeds {given.seeds}"
    print(write_result("graph-kinds", figures, command=command, details=details))


def recipe_of(path: Path, *settings: str) -> GraphRecipe:
    """Return the recipe of a kind."""
    return expect(find_recipe("gat-cora", overrides=[f"data.graph={path}", *settings]), GraphRecipe)


def costs(path: Path, rounds: int, figures: dict[str, float], details: dict[str, Any]) -> None:
    """Measure time and memory of an update of each kind, in turn; and how the loss falls."""
    graph = read_npz(path)
    models: dict[str, GraphClassifier] = {}
    for name, settings in KINDS.items():
        torch.manual_seed(1)
        models[name] = fresh_network(recipe_of(path, *settings), graph)
    tensors = graph_input(graph, recipe_of(path).data)
    labels = torch.from_numpy(graph.labels)
    assert graph.split is not None
    train = torch.from_numpy(graph.split.train)
    times: dict[str, list[float]] = {name: [] for name in KINDS}
    for number in range(rounds + 2):
        for name, model in models.items():
            began = time.process_time()
            loss_of(model, tensors, labels, train).backward()  # type: ignore[no-untyped-call]
            if number >= 2:
                times[name].append(time.process_time() - began)
    edge_vectors = {"edge_types": 3 * (64 + 7), "edge_learned": tensors.edges.count * (64 + 7)}
    for name, model in models.items():
        figures[f"{name}_ms"] = round(1e3 * statistics.median(times[name]), 2)
        figures[f"{name}_kept_mb"] = round(kept_bytes(model, tensors, labels, train) / 1e6, 2)
        figures[f"{name}_edge_numbers_stored"] = edge_vectors.get(name, 0)
        left = MeanOverSeeds.of([early_loss(path, graph, name, seed) for seed in (1, 2, 3)])
        figures[f"{name}_loss_left"] = round(left.mean, 4)
        details[name] = {"loss_left": left.to_dict()}
        print(name, figures[f"{name}_ms"], left, flush=True)


def early_loss(path: Path, graph: Graph, name: str, seed: int) -> float:
    """Return how much of the first training loss is left after some updates without dropout."""
    torch.manual_seed(seed)
    model = fresh_network(recipe_of(path, *KINDS[name]), graph).eval()
    tensors = graph_input(graph, recipe_of(path).data)
    labels = torch.from_numpy(graph.labels)
    assert graph.split is not None
    train = torch.from_numpy(graph.split.train)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    losses = []
    for _ in range(EARLY + 1):
        loss = loss_of(model, tensors, labels, train)
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return losses[-1] / losses[0]


def loss_of(model: GraphClassifier, graph: GraphInput, labels: Tensor, rows: Tensor) -> Tensor:
    """Return the loss on the training nodes."""
    return F.cross_entropy(model(graph).logits[rows], labels[rows])


def kept_bytes(model: GraphClassifier, graph: GraphInput, labels: Tensor, rows: Tensor) -> int:
    """Return the bytes that are kept for the gradient, without the weights and the graph."""
    known = {each.untyped_storage().data_ptr() for each in model.parameters()}
    known |= {
        part.untyped_storage().data_ptr() for part in (graph.edges.source, graph.edges.target)
    }
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = loss_of(model, graph, labels, rows)
    found = sum(storages.values())
    del loss  # until here it held the storages, so that no two had one address
    return found


def accuracies(path: Path, seeds: int, figures: dict[str, float], details: dict[str, Any]) -> None:
    """Train each kind over seeds, for a fixed number of updates."""
    graph = read_npz(path)
    for name, settings in KINDS.items():
        recipe = recipe_of(path, *settings)
        found = [trained_accuracy(recipe, graph, seed=seed) for seed in range(1, seeds + 1)]
        figures[f"{name}_accuracy"] = round(statistics.mean(found), 2)
        details[name]["accuracy"] = MeanOverSeeds.of(found).to_dict()
        print(name, found, flush=True)


def trained_accuracy(recipe: GraphRecipe, graph: Graph, *, seed: int) -> float:
    """Return the share of test nodes that are right after a fixed number of updates, in percent."""
    torch.manual_seed(seed)
    model = fresh_network(recipe, graph)
    tensors = graph_input(graph, recipe.data)
    labels = torch.from_numpy(graph.labels)
    assert graph.split is not None
    train, test = (torch.from_numpy(part) for part in (graph.split.train, graph.split.test))
    optimizer = torch.optim.Adam(model.parameters(), lr=2 * RATE, weight_decay=DECAY)
    for _ in range(UPDATES):
        optimizer.zero_grad()
        loss_of(model, tensors, labels, train).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(tensors).logits[test].argmax(dim=1) == labels[test]
    return 100 * float(right.double().mean())


def marked_graph(seed: int, nodes: int = 400, degree: int = 6) -> Graph:
    """Return a graph whose classes are told by its edges: is the mean of their numbers positive?"""
    random = np.random.default_rng(seed)
    source = random.integers(nodes, size=nodes * degree)
    target = np.repeat(np.arange(nodes), degree)
    source = np.where(source == target, (source + 1) % nodes, source)
    pairs = np.unique(np.stack([source, target], axis=1), axis=0).T
    marks = random.normal(size=pairs.shape[1]).astype(np.float32)
    labels = (np.bincount(pairs[1], weights=marks, minlength=nodes) > 0).astype(np.int64)
    places = random.permutation(nodes)
    parts = GraphSplit(places[:200], places[200:300], places[300:])
    return Graph(
        features=FeatureMatrix.from_dense(random.normal(size=(nodes, 8)).astype(np.float32)),
        labels=labels,
        pairs=pairs.astype(np.int64),
        classes=("0", "1"),
        split=parts,
        edge_vectors=marks[:, None],
    )


def expressiveness(seeds: int, figures: dict[str, float], details: dict[str, Any]) -> None:
    """Train attention and messages on classes that only the edges tell."""
    kinds = {
        "attention": ("model.score=dynamic",),
        "given": ("model.layer=messages", "model.hidden=64", "model.edge_vectors=given"),
    }
    common = ("data.undirected=false", "data.normalise=false", "model.layers=1",
              "model.dropout=0", "model.attention_dropout=0")  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in kinds}
    for seed in range(1, seeds + 1):
        for name, settings in kinds.items():
            chosen = ["data.from_memory=true", *settings, *common]
            recipe = expect(find_recipe("gat-cora", overrides=chosen), GraphRecipe)
            found[name].append(trained_accuracy(recipe, marked_graph(seed), seed=seed))
    for name, values in found.items():
        figures[f"marked_edges_{name}_accuracy"] = round(statistics.mean(values), 2)
        details[f"marked_edges_{name}"] = MeanOverSeeds.of(values).to_dict()
        print("marked edges", name, values, flush=True)


if __name__ == "__main__":
    main()
