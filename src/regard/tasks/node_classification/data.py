"""The graph of a recipe, and the same as a model reads it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.attention.edges import Edges
from regard.attention.graph import Features, GraphInput, SparseFeatures, dense
from regard.base.errors import DataError, SettingsError
from regard.base.shapes import Int, Tensor
from regard.batching.neighbours import NodeBatch
from regard.corpora.built_in import library_graph
from regard.corpora.graph import FeatureMatrix, Graph, neighbourhoods, split_at_random, vectors_of
from regard.corpora.graph_files import read_graphml, read_npz, read_tables
from regard.corpora.sources import no_data, require_files
from regard.tasks.node_classification.settings import (
    GraphDataSettings,
    GraphRecipe,
    GraphTrainingSettings,
)
from regard.training.progress import DataFacts, Fact

# Above this share of entries that are not zero, a full matrix is faster.
DENSE_SHARE = 0.25


MEMORY = Path("data")
BUILT_IN = "documents that cite each other"
FILES = ("graph", "edges", "features", "labels")
WHOLE = (".npz", ".graphml", ".xml")
# Words in the names of the three tables of a graph.
TABLE_NAMES = {"edges": ("edge",), "features": ("feature",), "labels": ("label", "class")}


GivenGraph = Graph | Mapping[str, Any] | Sequence[str | Path] | str | Path


def given_graph(recipe: GraphRecipe, data: GivenGraph | None) -> tuple[GraphRecipe, Graph]:
    """Return a graph that is given in Python or by names of files, or else the recipe's."""
    if data is None:
        return recipe, read_graph(recipe.data)
    if isinstance(data, Mapping):
        if [*data] != ["train"]:
            raise SettingsError(
                "A graph is given as a whole: its split is in the file or random "
                "(data.split), and it takes no --valid or --test."
            )
        data = data["train"]
    none: dict[str, Any] = dict.fromkeys(FILES)
    if isinstance(data, Graph):
        settings = recipe.data.model_copy(update={**none, "built_in": False, "from_memory": True})
        return recipe.model_copy(update={"data": settings}), _with_split(data, MEMORY, settings)
    files = (data,) if isinstance(data, str | Path) else tuple(data or ())
    named = graph_files([Path(file) for file in files])
    update = {**none, **named, "built_in": False, "from_memory": False}
    settings = recipe.data.model_copy(update=update)
    return recipe.model_copy(update={"data": settings}), read_graph(settings)


def graph_files(paths: Sequence[Path]) -> dict[str, str]:
    """Return which setting each file of a graph belongs to; a folder stands for its files."""
    if len(paths) == 1 and paths[0].is_dir():
        inside = sorted(path for path in paths[0].iterdir() if not path.name.startswith("."))
        whole = [path for path in inside if path.suffix.lower() in WHOLE]
        tables = [path for path in inside if path.suffix.lower() in (".csv", ".tsv", ".txt")]
        paths = whole if len(whole) == 1 else tables
        if len(whole) > 1 or len(tables) not in (0, 3) or not paths:
            raise DataError(
                "the graph of this folder is not clear",
                path=inside[0].parent if inside else ".",
                remedy="It should hold one .npz or .graphml, or edges, features and labels as CSV.",
            )
    if len(paths) == 1:
        return {"graph": str(paths[0])}
    found = {
        name: str(path)
        for name, words in TABLE_NAMES.items()
        for path in paths
        if any(word in path.stem.lower() for word in words)
    }
    if len(paths) != 3 or len({*found.values()}) != 3:
        raise SettingsError(
            "A graph is one file (.npz or .graphml), or three tables whose names tell edges, "
            f"features and labels; {', '.join(path.name for path in paths) or 'nothing'} was named."
        )
    return found


def read_graph(settings: GraphDataSettings) -> Graph:
    """Return the graph that the settings name, with its split."""
    require_files(settings.from_memory, what="a graph")
    return _with_split(*_read(settings), settings)


def _with_split(graph: Graph, path: Path, settings: GraphDataSettings) -> Graph:
    """Return the graph with its own split or a random one, as the settings ask for."""
    if settings.split == "random" or (settings.split == "auto" and graph.split is None):
        return split_at_random(
            graph,
            path=path,
            per_class=settings.train_per_class,
            valid=settings.valid_nodes,
            test=settings.test_nodes,
            seed=settings.split_seed,
        )
    if graph.split is None:
        raise DataError(
            "there is no split in the file",
            path=path,
            remedy="Set data.split=random, or add idx_train, idx_val and idx_test to an npz.",
        )
    return graph


def graph_facts(graph: Graph, settings: GraphTrainingSettings) -> DataFacts:
    """Return what a plan says of a graph with a split; one plan is enough for all seeds."""
    split = graph.split
    sizes = {"all": graph.nodes}
    for part in ("train", "valid", "test"):
        sizes[part] = 0 if split is None else len(getattr(split, part))
    shown = ", ".join(f"{count:,} {part}" for part, count in sizes.items())
    edges, width, classes = graph.pairs.shape[1], graph.features.width, len(graph.classes)
    return DataFacts(
        facts=(
            Fact("nodes", sizes, shown),
            Fact("edges", edges, f"{edges:,}"),
            Fact("features", width, f"{width:,} a node, {classes} classes"),
        ),
        batches=-(-sizes["train"] // (settings.batch_nodes or sizes["train"])),
        trainings=settings.seeds,
        unit="nodes",
    )


def graph_input(graph: Graph, settings: GraphDataSettings) -> GraphInput:
    """Return features and edges as tensors."""
    found = neighbourhoods(graph, undirected=settings.undirected)
    matrix = graph.features.normalised() if settings.normalise else graph.features
    edges = Edges(
        torch.from_numpy(found.source),
        torch.from_numpy(found.target),
        torch.from_numpy(found.starts),
        graph.nodes,
    )
    vectors = vectors_of(graph, found)
    return GraphInput(
        _features(matrix),
        edges,
        torch.from_numpy(found.types),
        None if vectors is None else torch.from_numpy(vectors),
    )


def node_batch(graph: Graph, tensors: GraphInput, nodes: Int[Tensor, "chosen"]) -> NodeBatch:
    """Return some nodes of the graph with their classes."""
    return NodeBatch(tensors, nodes, torch.from_numpy(graph.labels)[nodes])


def _read(settings: GraphDataSettings) -> tuple[Graph, Path]:
    if settings.edges and settings.features and settings.labels:
        features = Path(settings.features)
        graph = read_tables(Path(settings.edges), features=features, labels=Path(settings.labels))
        return graph, features
    if settings.built_in:
        return library_graph(), Path("built-in")
    if settings.graph is None:
        raise no_data("a graph", built_in=BUILT_IN)
    path = Path(settings.graph)
    if path.suffix.lower() == ".npz":
        return read_npz(path), path
    if path.suffix.lower() in WHOLE:
        return read_graphml(path, label=settings.label_attribute), path
    raise DataError(
        f"cannot tell the kind of graph from the suffix {path.suffix!r}",
        path=path,
        remedy="data.graph takes .npz or .graphml; give an edge list as data.edges.",
    )


def _features(matrix: FeatureMatrix) -> Features:
    nodes, rows = len(matrix.starts) - 1, matrix.rows
    columns, values = matrix.columns, matrix.values
    same_row = rows[1:] == rows[:-1]
    if (columns[1:][same_row] < columns[:-1][same_row]).any():  # a file may have any order
        order = np.lexsort((columns, rows))
        columns, values = columns[order], values[order]
    starts = torch.from_numpy(matrix.starts)
    entries = Edges(torch.from_numpy(columns), torch.from_numpy(rows), starts, matrix.width)
    sparse = SparseFeatures(entries, torch.from_numpy(values))
    full = nodes * matrix.width
    return dense(sparse) if entries.count > DENSE_SHARE * full else sparse
