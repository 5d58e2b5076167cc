"""Readers of graphs: Planetoid-style npz, an edge list with two tables, and GraphML."""

import io
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.base.budgets import SHOWN, Meter, open_input, require_small_archive
from regard.base.errors import DataError, SettingsError
from regard.base.files import npz_array, whole_file
from regard.corpora.formats.xml_events import parse_safely, safe_parser
from regard.corpora.graph import FeatureMatrix, Graph, GraphSplit, checked, class_numbers
from regard.corpora.lines import csv_rows, read_lines, read_whole

SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")
PARTS = ("idx_train", "idx_val", "idx_test")
# First cells of header lines.
HEADINGS = {"node", "id", "name", "source", "from", "src", "target"}


def read_npz(path: Path) -> Graph:
    """Return a graph from arrays: CSR features or `x`, `y`, `edges` and optionally a split.

    Files with Python objects are refused: reading them could execute code.
    """
    arrays = _arrays(path)
    for name in ("y", "edges"):
        if name not in arrays:
            raise DataError(
                f"there is no array {name!r}",
                path=path,
                remedy=f"Needed: {', '.join(SPARSE)} (or x), y, edges. Found: {_found(arrays)}.",
            )
    labels = _integers(arrays["y"], "y", path, axes=1)
    pairs = _integers(arrays["edges"], "edges", path, axes=2)
    if pairs.shape[0] != 2:
        raise DataError(
            f"edges has the shape {pairs.shape}",
            path=path,
            remedy="It should be (2, number of edges): sources above targets.",
        )
    split = None
    if all(name in arrays for name in PARTS):
        split = GraphSplit(*(_integers(arrays[name], name, path, axes=1) for name in PARTS))
    highest = int(labels.max(initial=0))
    if highest >= max(1, len(labels)):
        raise DataError(
            f"y holds the class {highest}, but there are {len(labels)} nodes",
            path=path,
            remedy="Number the classes from 0; each needs a node.",
        )
    names = _texts(arrays, "names", path, count=len(labels))
    classes = _texts(arrays, "classes", path)
    if classes is not None and len(classes) <= highest:
        raise DataError(
            f"y holds the class {highest}, but there are names for {len(classes)}",
            path=path,
            remedy="Name every class in `classes`.",
        )
    graph = Graph(
        features=_npz_features(arrays, path),
        labels=np.maximum(labels, -1),
        pairs=pairs,
        classes=tuple(map(str, range(highest + 1))) if classes is None else classes,
        split=split,
        names=names,
        edge_vectors=_edge_vectors(arrays, path),
    )
    return checked(graph, path=path)


def _edge_vectors(arrays: dict[str, np.ndarray], path: Path) -> np.ndarray | None:
    """Return what the file says of edges, if it does."""
    if "edge_vectors" not in arrays:
        return None
    found = arrays["edge_vectors"]
    if found.ndim != 2 or found.dtype.kind not in "fiub":
        raise DataError(
            f"edge_vectors has the shape {found.shape} and the type {found.dtype}",
            path=path,
            remedy="It should be numbers of the shape (number of edges, numbers an edge).",
        )
    return found.astype(np.float32)


def write_npz(graph: Graph, path: Path) -> None:
    """Write a graph so that `read_npz` returns it."""
    split = graph.split
    parts = (split.train, split.valid, split.test) if split else ()
    with whole_file(path) as file:
        np.savez_compressed(
            file,
            allow_pickle=False,
            x_data=graph.features.values,
            x_indices=graph.features.columns,
            x_indptr=graph.features.starts,
            x_shape=np.array([graph.nodes, graph.features.width]),
            y=graph.labels,
            edges=graph.pairs,
            classes=np.array(graph.classes),
            **dict(zip(PARTS, parts, strict=False)),
            **({} if graph.names is None else {"names": np.array(graph.names)}),
            **({} if graph.edge_vectors is None else {"edge_vectors": graph.edge_vectors}),
        )


def read_tables(edges: Path, *, features: Path, labels: Path) -> Graph:
    """Return a graph from CSV files: `source,target`, `node,number,...` and `node,label`.

    The nodes are those of the feature table, named in its first column. Cells are separated by
    comma, semicolon or tab; files may have header lines. The class of a node without a label is
    unknown.
    """
    names, matrix = _feature_table(features)
    place = {name: number for number, name in enumerate(names)}
    given = [""] * len(names)
    for line, row in _rows(labels, cells=2):
        given[_place(row[0], place, path=labels, line=line, where=features)] = row[1]
    pairs = [
        [_place(name, place, path=edges, line=line, where=features) for name in row]
        for line, row in _rows(edges, cells=2)
    ]
    numbers, classes = class_numbers(given)
    graph = Graph(
        features=FeatureMatrix.from_dense(matrix),
        labels=numbers,
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2).T,
        classes=classes,
        names=tuple(names),
    )
    return checked(graph, path=features)


def read_graphml(path: Path, *, label: str = "label") -> Graph:
    """Return a graph from GraphML: `label` is the class, numeric attributes are features."""
    try:
        import networkx  # type: ignore[import-untyped]
    except ImportError as error:
        raise SettingsError("GraphML needs networkx: pip install networkx") from error
    content = read_whole(path, expected="a graph as GraphML")
    _require_plain_xml(content, path)
    try:
        found = networkx.read_graphml(io.BytesIO(content))
    except Exception as error:  # networkx raises whatever its parts raise
        raise DataError(
            f"this is not GraphML ({str(error)[:SHOWN]})",
            path=path,
            remedy="Export it again as GraphML.",
        ) from error
    names = [str(name) for name in found.nodes]
    place = {name: number for number, name in enumerate(names)}
    attributes = [dict(found.nodes[name]) for name in found.nodes]
    columns = sorted(
        {
            key
            for own in attributes
            for key, value in own.items()
            if key != label and isinstance(value, int | float)
        }
    )
    if not columns:
        raise DataError(
            "no node has a numeric attribute other than its label",
            path=path,
            remedy="Give the nodes numbers as features.",
        )
    numbers, classes = class_numbers([str(own.get(label, "")) for own in attributes])
    Meter(path).take(bytes=8 * len(attributes) * len(columns))
    graph = Graph(
        features=FeatureMatrix.from_dense(_matrix(attributes, columns, path)),
        labels=numbers,
        pairs=np.array(
            [[place[str(source)], place[str(target)]] for source, target in found.edges()],
            dtype=np.int64,
        )
        .reshape(-1, 2)
        .T,
        classes=classes,
        names=tuple(names),
    )
    return checked(graph, path=path)


def _require_plain_xml(content: bytes, path: Path) -> None:
    """Refuse XML that would grow without bound, before networkx reads it."""
    parser, meter = safe_parser(path), Meter(path)

    def start(name: str, attributes: dict[str, str]) -> None:
        meter.enter()
        meter.take(items=1 + len(attributes))

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: meter.leave()
    parse_safely(parser, content, path=path)


def _matrix(
    attributes: Sequence[Mapping[str, Any]], columns: Sequence[str], path: Path
) -> np.ndarray:
    try:
        rows = [[float(own.get(key, 0.0)) for key in columns] for own in attributes]
    except (ValueError, TypeError, OverflowError):
        raise DataError(
            "an attribute is a number at one node and something else at another",
            path=path,
            remedy="Give each attribute one type.",
        ) from None
    return np.array(rows, dtype=np.float32)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with open_input(path) as opened, zipfile.ZipFile(opened) as archive:
            require_small_archive(archive, path=path)
            members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
            return {one.filename.removesuffix(".npy"): npz_array(archive, one) for one in members}
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    except DataError:
        raise
    except ValueError as error:
        if "Object arrays" in str(error):
            raise DataError(
                "the file holds Python objects, which are never read: they could execute code",
                path=path,
                remedy="Save plain arrays of numbers and text.",
            ) from error
        raise _not_npz(path) from error
    except Exception as error:  # zipfile, its unpackers and numpy raise whatever they meet
        raise _not_npz(path) from error


def _texts(
    arrays: dict[str, np.ndarray], name: str, path: Path, *, count: int | None = None
) -> tuple[str, ...] | None:
    """Return an array of names; None if there is none."""
    if name not in arrays:
        return None
    found = arrays[name]
    if found.ndim != 1 or (count is not None and len(found) != count):
        raise DataError(
            f"{name} has the shape {found.shape}",
            path=path,
            remedy="It should be a list" + (f" of {count} names." if count else " of names."),
        )
    return tuple(map(str, found))


def _not_npz(path: Path) -> DataError:
    return DataError(
        "this is not an npz file, or it is damaged", path=path, remedy="Copy or save it again."
    )


def _npz_features(arrays: dict[str, np.ndarray], path: Path) -> FeatureMatrix:
    if "x" in arrays and arrays["x"].ndim == 2 and arrays["x"].dtype.kind in "fiub":
        return FeatureMatrix.from_dense(arrays["x"].astype(np.float32))
    if missing := [name for name in SPARSE if name not in arrays]:
        raise DataError(
            f"there is no array {missing[0]!r}",
            path=path,
            remedy=f"Give the features as {', '.join(SPARSE)}, or as a matrix x. "
            f"Found: {_found(arrays)}.",
        )
    values = arrays["x_data"]
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        raise DataError(
            f"x_data has {values.ndim} axes of {values.dtype}",
            path=path,
            remedy="It should have 1 of numbers.",
        )
    shape = _integers(arrays["x_shape"], "x_shape", path, axes=1)
    if len(shape) != 2:
        raise DataError(
            f"x_shape has {len(shape)} numbers",
            path=path,
            remedy="It should hold the number of nodes and the number of features.",
        )
    return FeatureMatrix(
        _integers(arrays["x_indptr"], "x_indptr", path, axes=1),
        _integers(arrays["x_indices"], "x_indices", path, axes=1),
        values.astype(np.float32, copy=False),
        int(shape[1]),
    )


def _integers(array: np.ndarray, name: str, path: Path, *, axes: int) -> np.ndarray:
    if array.dtype.kind not in "iu" or array.ndim != axes:
        raise DataError(
            f"{name} has {array.ndim} axes of {array.dtype}",
            path=path,
            remedy=f"It should have {axes} of whole numbers.",
        )
    return array.astype(np.int64, copy=False)


def _found(arrays: dict[str, np.ndarray]) -> str:
    return ", ".join(sorted(arrays)) or "nothing"


def _feature_table(path: Path) -> tuple[list[str], np.ndarray]:
    names, rows, width = [], [], None
    for line, row in _rows(path, cells=None):
        try:
            numbers = [float(cell) for cell in row[1:]]
        except ValueError:
            raise DataError(
                f"not every cell after {row[0]!r} is a number",
                path=path,
                line=line,
                remedy="The first cell names the node; numbers follow.",
            ) from None
        width = width or len(numbers)
        if len(numbers) != width or not numbers:
            raise DataError(
                f"the row has {len(numbers)} features, but others have {width}",
                path=path,
                line=line,
                remedy="Give every node the same number of features.",
            )
        names.append(row[0])
        rows.append(numbers)
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"node {twice!r} has two rows", path=path, remedy="Keep one of them.")
    return names, np.array(rows, dtype=np.float32)


def _rows(path: Path, *, cells: int | None) -> list[tuple[int, list[str]]]:
    """Return the rows of a table with their line numbers, without header and empty lines."""
    lines = read_lines(path, expected="one row per line")
    separator = max(",;\t", key=lines[0].count)
    if not any(mark in lines[0] for mark in ",;\t"):
        separator = " "
    every = csv_rows(lines, separator=separator, path=path, spaced=True)
    rows = [(line, [cell.strip() for cell in row]) for line, row in every if any(row)]
    if rows and rows[0][1][0].casefold() in HEADINGS:
        rows = rows[1:]
    for line, row in rows:
        if cells is not None and len(row) != cells:
            raise DataError(
                f"the row has {len(row)} cells, not {cells}",
                path=path,
                line=line,
                remedy="Separate the cells by a comma, a semicolon or a tab.",
            )
    if not rows:
        raise DataError("there is no row", path=path, remedy="Give one row per line.")
    return rows


def _place(
    name: str, place: dict[str, int], *, path: Path, line: int, where: Path | Sequence[str]
) -> int:
    if name not in place:
        raise DataError(
            f"there is no node {name!r}",
            path=path,
            line=line,
            remedy=f"Every node needs a row of features in {where}.",
        )
    return place[name]
