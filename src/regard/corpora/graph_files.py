"""Readers of graphs: Planetoid-style npz, an edge list with two tables, and GraphML."""

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from regard.base.errors import DataError, SettingsError
from regard.base.files import whole_file
from regard.corpora.graph import FeatureMatrix, Graph, Split, checked, class_numbers
from regard.corpora.lines import read_lines

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
        split = Split(*(_integers(arrays[name], name, path, axes=1) for name in PARTS))
    names = arrays.get("names")
    classes = arrays.get("classes")
    graph = Graph(
        features=_npz_features(arrays, path),
        labels=np.maximum(labels, -1),
        pairs=pairs,
        classes=tuple(str(number) for number in range(int(labels.max(initial=0)) + 1))
        if classes is None
        else tuple(str(name) for name in classes),
        split=split,
        names=None if names is None else tuple(str(name) for name in names),
    )
    return checked(graph, path=path)


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
        raise SettingsError("GraphML needs networkx: pip install 'regard[graph]'") from error
    try:
        found = networkx.read_graphml(path)
    except OSError as error:
        raise DataError(
            f"the file cannot be read ({error.strerror})", path=path, remedy="Check the path."
        ) from error
    except (SyntaxError, ValueError, KeyError, networkx.NetworkXError) as error:
        raise DataError(
            f"this is not GraphML ({error})", path=path, remedy="Export it again as GraphML."
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
    rows = [[float(own.get(key, 0.0)) for key in columns] for own in attributes]
    graph = Graph(
        features=FeatureMatrix.from_dense(np.array(rows, dtype=np.float32)),
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


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError("there is no such file", path=path, remedy="Check the path.") from None
    except ValueError as error:
        if "Object arrays" in str(error):
            raise DataError(
                "the file holds Python objects, which are never read: they could execute code",
                path=path,
                remedy="Save plain arrays of numbers and text.",
            ) from error
        raise _not_npz(path) from error
    except (OSError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise _not_npz(path) from error


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
    return FeatureMatrix(
        _integers(arrays["x_indptr"], "x_indptr", path, axes=1),
        _integers(arrays["x_indices"], "x_indices", path, axes=1),
        arrays["x_data"].astype(np.float32),
        int(arrays["x_shape"][1]),
    )


def _integers(array: np.ndarray, name: str, path: Path, *, axes: int) -> np.ndarray:
    if array.dtype.kind not in "iu" or array.ndim != axes:
        raise DataError(
            f"{name} has {array.ndim} axes of {array.dtype}",
            path=path,
            remedy=f"It should have {axes} of whole numbers.",
        )
    return array.astype(np.int64)


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
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"node {twice!r} has two rows", path=path, remedy="Keep one of them.")
    return names, np.array(rows, dtype=np.float32)


def _rows(path: Path, *, cells: int | None) -> list[tuple[int, list[str]]]:
    """Return the rows of a table with their line numbers, without header and empty lines."""
    lines = read_lines(path, expected="one row per line")
    separator = max(",;\t", key=lines[0].count)
    if not any(mark in lines[0] for mark in ",;\t"):
        separator = " "
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
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
