"""Graphs with node features and classes: checks, splits and neighbourhoods.

Duplicate edges count once. Self-loops of a file are ignored, because `neighbourhoods` adds one to
every node. In an undirected graph each edge goes both ways; in a directed graph a node attends to
the sources of its edges. A node without edges attends only to itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from jaxtyping import Float, Int

from regard.base.errors import DataError, SettingsError
from regard.base.files import fingerprint

UNLABELLED = -1
NUMBER = re.compile(r"-?[0-9]{1,18}")
MOST_FEATURES = 10_000_000
EDGE_TYPES = ("given", "reversed", "self-loop")
LOOP, NONE = 2, -1


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """The nonzero entries of a nodes x features matrix, row by row (CSR)."""

    starts: Int[np.ndarray, "boundaries"]
    columns: Int[np.ndarray, "entries"]
    values: Float[np.ndarray, "entries"]
    width: int

    @classmethod
    def from_dense(cls, matrix: Float[np.ndarray, "nodes features"]) -> FeatureMatrix:
        """Return the nonzero entries of a dense matrix."""
        rows, columns = np.nonzero(matrix)
        counts = np.bincount(rows, minlength=len(matrix))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(starts, columns.astype(np.int64), matrix[rows, columns], matrix.shape[1])

    @property
    def rows(self) -> Int[np.ndarray, "entries"]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def normalised(self) -> FeatureMatrix:
        """Return the matrix with rows that sum to one; rows that sum to zero are not changed."""
        sums = np.bincount(self.rows, weights=self.values, minlength=len(self.starts) - 1)
        sums[sums == 0] = 1.0
        return replace(self, values=(self.values / sums[self.rows]).astype(np.float32))


@dataclass(frozen=True, eq=False)
class GraphSplit:
    """The nodes for training, validation and test."""

    train: Int[np.ndarray, "train"]
    valid: Int[np.ndarray, "valid"]
    test: Int[np.ndarray, "test"]


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes with features and classes (-1: unknown), and the given edges."""

    features: FeatureMatrix
    labels: Int[np.ndarray, "nodes"]
    pairs: Int[np.ndarray, "2 edges"]
    classes: tuple[str, ...]
    split: GraphSplit | None = None
    names: tuple[str, ...] | None = None
    edge_vectors: Float[np.ndarray, "rows width"] | None = None
    """A row for each given edge, if the data says something of edges."""

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.labels)

    def name(self, node: int) -> str:
        """Return the name of a node in its file, or its number."""
        return str(node) if self.names is None else self.names[node]

    def find(self, name: str) -> int:
        """Return the number of a node, given its name or number."""
        if self.names is not None and name in self.names:
            return self.names.index(name)
        if self.names is None and name.isdecimal() and int(name) < self.nodes:
            return int(name)
        known = f"0 to {self.nodes - 1}" if self.names is None else f"{self.names[0]}, ..."
        raise SettingsError(f"There is no node {name!r}; the nodes are {known}.")

    def fingerprint(self) -> str:
        """Return a short digest that tells one graph, with its split, from another."""
        parts = [self.features.starts, self.features.columns, self.labels, self.pairs]
        parts += [self.split.train, self.split.valid, self.split.test] if self.split else []
        whole = [np.asarray(part, dtype=np.int64) for part in parts]
        numbers = [self.features.values]
        numbers += [] if self.edge_vectors is None else [self.edge_vectors]
        return fingerprint([*whole, *(np.asarray(part, dtype=np.float32) for part in numbers)])


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Distinct edges as a model reads them, with types (indices into `EDGE_TYPES`)."""

    source: Int[np.ndarray, "edges"]
    target: Int[np.ndarray, "edges"]
    types: Int[np.ndarray, "edges"]
    starts: Int[np.ndarray, "boundaries"]
    """Where the edges into each node begin."""


def neighbourhoods(graph: Graph, *, undirected: bool, self_loops: bool = True) -> Neighbourhoods:
    """Return the distinct edges sorted by target and source, with a self-loop for every node."""
    source, target = graph.pairs
    own = np.arange(graph.nodes if self_loops else 0)
    parts = [(source, target), *([(target, source)] if undirected else []), (own, own)]
    kinds = (0, 1, 2) if undirected else (0, 2)
    # An edge is one number, (target, source, type), sorted in place: 8 bytes each, not 60.
    keys = np.empty(sum(len(part) for part, _ in parts), dtype=np.int64)
    first = 0
    for (sources, targets), kind in zip(parts, kinds, strict=True):
        block = keys[first : first + len(sources)]
        np.multiply(targets, graph.nodes, out=block)
        block += sources
        block *= len(EDGE_TYPES)
        block += kind
        if kind != LOOP:
            block[sources == targets] = NONE
        first += len(sources)
    keys.sort()
    keys = keys[np.searchsorted(keys, 0) :]
    types = (keys % len(EDGE_TYPES)).astype(np.int8)
    keys //= len(EDGE_TYPES)
    if len(keys):
        fresh = np.concatenate([[True], keys[1:] != keys[:-1]])  # of duplicates a given edge
        keys, types = keys[fresh], types[fresh]
    target = keys // graph.nodes
    keys -= target * graph.nodes
    starts = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=graph.nodes))])
    return Neighbourhoods(keys, target, types, starts)


def vectors_of(graph: Graph, found: Neighbourhoods) -> Float[np.ndarray, "edges width"] | None:
    """Return the vector of each edge: reversed edges have that of the given one, self-loops zero.

    Of duplicates the first counts.
    """
    if graph.edge_vectors is None:
        return None
    source, target = graph.pairs
    keys = target * graph.nodes + source
    order = np.argsort(keys, kind="stable")
    back = found.types == EDGE_TYPES.index("reversed")
    wanted = np.where(
        back,
        found.source * graph.nodes + found.target,
        found.target * graph.nodes + found.source,
    )
    places = np.searchsorted(keys[order], wanted)
    rows = order[np.minimum(places, len(order) - 1)] if len(order) else places
    vectors = np.zeros((len(wanted), graph.edge_vectors.shape[1]), dtype=np.float32)
    given = found.types != LOOP
    vectors[given] = graph.edge_vectors[rows[given]]
    return vectors


def checked(graph: Graph, *, path: Path) -> Graph:
    """Return the graph; raise DataError if it cannot be trained on."""
    _check_features(graph, path)
    _check_edges(graph, path)
    if graph.split is not None:
        _check_split(graph, graph.split, path)
    return graph


def split_at_random(
    graph: Graph, *, path: Path, per_class: int, valid: int, test: int, seed: int
) -> Graph:
    """Return the graph with `per_class` training nodes per class; the others are valid and test.

    At most half of the nodes of a class are for training, and at most a third of the rest for
    validation.
    """
    random = np.random.default_rng(seed)
    train: list[int] = []
    for number in range(len(graph.classes)):
        own = random.permutation(np.flatnonzero(graph.labels == number))
        train += own[: min(per_class, max(1, len(own) // 2))].tolist()
    rest = random.permutation(np.setdiff1d(np.flatnonzero(graph.labels != UNLABELLED), train))
    valid = min(valid, len(rest) // 3)
    parts = GraphSplit(np.sort(train).astype(np.int64), rest[:valid], rest[valid : valid + test])
    return checked(replace(graph, split=parts), path=path)


def _check_features(graph: Graph, path: Path) -> None:
    matrix = graph.features
    if not graph.nodes:
        _refuse("there is no node", path, "Give each node a row of features and a label.")
    if not 0 < matrix.width <= MOST_FEATURES:
        _refuse(
            f"there are {matrix.width:,} features",
            path,
            f"A node may have 1 to {MOST_FEATURES:,} of them.",
        )
    if len(matrix.starts) != graph.nodes + 1:
        _refuse(
            f"there are features for {len(matrix.starts) - 1} nodes but labels for {graph.nodes}",
            path,
            "Give one row of features and one label per node (-1 if the class is unknown).",
        )
    broken = (
        matrix.starts[0] != 0
        or matrix.starts[-1] != len(matrix.columns)
        or (np.diff(matrix.starts) < 0).any()
        or len(matrix.columns) != len(matrix.values)
        or (matrix.columns < 0).any()
        or (matrix.columns >= matrix.width).any()
    )
    if broken:
        _refuse(
            "the arrays of the sparse features do not fit together", path, "Write the file again."
        )
    wrong = np.flatnonzero(~np.isfinite(matrix.values))
    if len(wrong):
        row, column = matrix.rows[wrong[0]], matrix.columns[wrong[0]]
        _refuse(
            f"feature {column} of node {graph.name(int(row))} is {matrix.values[wrong[0]]}",
            path,
            "Every feature must be a finite number; put 0 for unknown values.",
        )


def _check_edges(graph: Graph, path: Path) -> None:
    vectors = graph.edge_vectors
    if vectors is not None and len(vectors) != graph.pairs.shape[1]:
        _refuse(
            f"there are vectors for {len(vectors)} edges, but {graph.pairs.shape[1]} edges",
            path,
            "Give edge_vectors one row for each edge, in the same order.",
        )
    if vectors is not None and not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        _refuse(f"the vector of edge {row} is not finite", path, "Put 0 for unknown values.")
    outside = (graph.pairs < 0) | (graph.pairs >= graph.nodes)
    if outside.any():
        number = int(np.flatnonzero(outside.any(axis=0))[0])
        node = graph.pairs[:, number][outside[:, number]][0]
        _refuse(
            f"edge {number} names node {node}, but the nodes are 0 to {graph.nodes - 1}",
            path,
            "Remove the edge, or add the node with its features and label.",
        )


def _check_split(graph: Graph, split: GraphSplit, path: Path) -> None:
    parts = {"training": split.train, "validation": split.valid, "test": split.test}
    for name, part in parts.items():
        if not len(part):
            _refuse(f"the {name} part has no node", path, "Give it some, or data.split=random.")
        if part.min() < 0 or part.max() >= graph.nodes:
            _refuse(
                f"the {name} part names a node outside 0 to {graph.nodes - 1}",
                path,
                "Correct the split, or set data.split=random.",
            )
        if (graph.labels[part] == UNLABELLED).any():
            node = part[graph.labels[part] == UNLABELLED][0]
            _refuse(f"node {node} of the {name} part has no label", path, "Leave it out.")
    if len(np.intersect1d(split.train, np.concatenate([split.valid, split.test]))):
        _refuse(
            "some training nodes are also validated or tested on",
            path,
            "A node may be in one part only: the accuracy would mean nothing.",
        )
    for number, name in enumerate(graph.classes):
        if not (graph.labels[split.train] == number).any():
            _refuse(
                f"class {name!r} has no training node",
                path,
                "Add one to the training part, or set data.split=random.",
            )


def _refuse(problem: str, path: Path, remedy: str) -> NoReturn:
    raise DataError(problem, path=path, remedy=remedy)


def class_numbers(labels: Sequence[str]) -> tuple[Int[np.ndarray, "nodes"], tuple[str, ...]]:
    """Return the number of each label (-1 for an empty one) and the ordered classes."""
    known = {label for label in labels if label}
    numeric = all(NUMBER.fullmatch(label) for label in known)
    classes = tuple(sorted(known, key=int) if numeric else sorted(known))
    place = {name: number for number, name in enumerate(classes)}
    numbers = [place.get(label, UNLABELLED) for label in labels]
    return np.array(numbers, dtype=np.int64), classes
