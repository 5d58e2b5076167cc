"""The time of an epoch of graph attention, compared with PyTorch Geometric in alternation.

Both train the paper's two layers (8 heads x 8, dropout 0.6) with Adam; an epoch is one update on
the whole graph. Peak memory is measured in a separate process for each. Usage:

    python bench/graph_speed.py [--data FOLDER_OF_NPZ] [--threads 2]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.edges import Edges
from regard.attention.graph import GraphInput, dense
from regard.models.graph_classifier import build_graph_classifier
from regard.settings.models import GraphModelSettings
from regard.tasks.node_classification.data import graph_input, read_graph
from regard.tasks.node_classification.settings import GraphDataSettings
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
# The layers of the lecture, timed in turn; convolution as wide as all heads together.
OURS = {
    "regard": GraphModelSettings(),
    "regard-dense": GraphModelSettings(),
    "convolution": GraphModelSettings(layer="convolution", hidden=64),
    "messages": GraphModelSettings(layer="messages", hidden=64),
}
LARGE_NODES, LARGE_EDGES, LARGE_FEATURES, LARGE_CLASSES = 200_000, 2_000_000, 64, 16


def cora(data: Path) -> tuple[GraphInput, torch.Tensor, torch.Tensor, int]:
    """Return graph, training nodes, their labels and the number of classes."""
    settings = GraphDataSettings(graph=str(data / "cora.npz"))
    graph = read_graph(settings)
    train = torch.from_numpy(graph.split.train)
    return graph_input(graph, settings), train, torch.from_numpy(graph.labels)[train], 7


def large() -> tuple[GraphInput, torch.Tensor, torch.Tensor, int]:
    """Return a generated graph: random edges, and a self-loop for every node."""
    torch.manual_seed(0)
    pairs = torch.randint(0, LARGE_NODES, (2, LARGE_EDGES))
    loops = torch.arange(LARGE_NODES).repeat(2, 1)
    source, target = torch.cat([pairs[:, pairs[0] != pairs[1]], loops], 1)
    edges = Edges.sort(source, target, sources=LARGE_NODES, targets=LARGE_NODES)
    types = torch.zeros(edges.count, dtype=torch.int64)
    features = torch.randn(LARGE_NODES, LARGE_FEATURES)
    train = torch.arange(0, LARGE_NODES, 2)
    labels = torch.randint(0, LARGE_CLASSES, (len(train),))
    return GraphInput(features, edges, types), train, labels, LARGE_CLASSES


class PygClassifier(nn.Module):
    """The same two layers from PyTorch Geometric, as its own example builds them."""

    def __init__(self, features: int, classes: int):
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch_geometric.nn import GATConv
        self.first = GATConv(features, 8, heads=8, dropout=0.6, add_self_loops=False)
        self.second = GATConv(64, classes, heads=1, concat=False, dropout=0.6, add_self_loops=False)

    def forward(self, features: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
        """Return the logits of all nodes; self-loops are among the pairs."""
        hidden = F.elu(self.first(F.dropout(features, 0.6, self.training), pairs))
        return self.second(F.dropout(hidden, 0.6, self.training), pairs)


def epoch_of(kind: str, name: str, data: Path) -> Callable[[], Any]:
    """Return a function that takes one update."""
    graph, train, labels, classes = cora(data) if name == "cora" else large()
    torch.manual_seed(1)
    if kind in OURS:
        full = GraphInput(dense(graph.features), graph.edges, graph.edge_types)
        read = full if kind == "regard-dense" else graph
        model: nn.Module = build_graph_classifier(
            OURS[kind], features=graph.features.shape[1], classes=classes
        )
        logits = lambda: model(read).logits  # noqa: E731
    else:
        features = dense(graph.features)
        pairs = torch.stack([graph.edges.source, graph.edges.target])
        model = PygClassifier(features.shape[1], classes)
        logits = lambda: model(features, pairs)  # noqa: E731
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(logits()[train], labels).backward()
        optimizer.step()

    return epoch


def alternate(name: str, data: Path, *, kinds: tuple[str, ...], rounds: int) -> dict[str, float]:
    """Return the median seconds of an epoch of each kind, taking turns."""
    epochs = {kind: epoch_of(kind, name, data) for kind in kinds}
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for round_number in range(rounds + 1):
        for kind, epoch in epochs.items():
            began = time.perf_counter()
            epoch()
            if round_number:  # the first one warms up
                times[kind].append(time.perf_counter() - began)
    return {kind: statistics.median(each) for kind, each in times.items()}


def peak_megabytes(kind: str, data: Path, threads: int) -> float:
    """Return the peak memory of a process that does nothing but train on the large graph."""
    command = [sys.executable, __file__, "--data", str(data), "--threads", str(threads)]
    done = subprocess.run([*command, "--memory", kind], check=True, capture_output=True, text=True)
    return float(done.stdout)


def own_peak_megabytes() -> float:
    """Return this process's peak memory; getrusage would also count its parent's."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    if found is None:
        raise RuntimeError("peak memory is read from /proc, which this system does not have")
    return int(found[1]) / 1024


def main() -> None:
    """Measure, print and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA / "planetoid")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30, help="on Cora; a tenth on the large one")
    parser.add_argument("--memory", choices=["regard", "pyg"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        epoch = epoch_of(options.memory, "large", options.data)
        epoch()
        epoch()
        print(own_peak_megabytes())
        return
    small = alternate("cora", options.data, kinds=(*OURS, "pyg"), rounds=options.rounds)
    print("cora", small, flush=True)
    big = alternate(
        "large", options.data, kinds=("regard", "pyg"), rounds=max(2, options.rounds // 10)
    )
    print("large", big, flush=True)
    memory = {kind: peak_megabytes(kind, options.data, options.threads) for kind in big}
    figures = {
        "cora_ratio": small["pyg"] / small["regard"],
        "cora_dense_ratio": small["pyg"] / small["regard-dense"],
        "cora_convolution_ratio": small["regard"] / small["convolution"],
        "cora_messages_ratio": small["regard"] / small["messages"],
        "large_ratio": big["pyg"] / big["regard"],
        "large_memory_ratio": memory["regard"] / memory["pyg"],
        **{f"cora_{kind}_ms": 1e3 * each for kind, each in small.items()},
        **{f"large_{kind}_ms": 1e3 * each for kind, each in big.items()},
        **{f"large_{kind}_peak_mb": each for kind, each in memory.items()},
    }
    write_result(
        "graph-speed",
        {name: round(value, 4) for name, value in figures.items()},
        command=f"python bench/graph_speed.py --threads {options.threads}",
        packages=("torch-geometric",),
    )
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
