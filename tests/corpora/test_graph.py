from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError, SettingsError
from regard.corpora.graph import (
    FeatureMatrix,
    Graph,
    GraphSplit,
    class_numbers,
    neighbourhoods,
    split_at_random,
    vectors_of,
)
from regard.corpora.graph_files import read_graphml, read_npz, read_tables, write_npz


def arrays(**changes: Any) -> dict[str, Any]:
    """A good graph of six nodes and two classes, with changes; None removes an array."""
    good = {
        "x": np.eye(6, 4, dtype=np.float32) + 0.5,
        "y": np.array([0, 0, 0, 1, 1, -1]),
        "edges": np.array([[0, 1, 3, 3, 2], [1, 2, 4, 4, 2]]),
        "idx_train": np.array([0, 3]),
        "idx_val": np.array([1]),
        "idx_test": np.array([2, 4]),
    }
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def saved(folder: Path, **changes: Any) -> Path:
    path = folder / "graph.npz"
    np.savez(path, **arrays(**changes))
    return path


def test_an_npz_is_read_and_comes_back_from_writing(tmp_path: Path) -> None:
    graph = read_npz(saved(tmp_path))
    assert (graph.nodes, graph.features.width, graph.classes) == (6, 4, ("0", "1"))
    assert graph.split is not None
    assert graph.split.test.tolist() == [2, 4]
    again = tmp_path / "again.npz"
    write_npz(graph, again)
    assert read_npz(again).fingerprint() == graph.fingerprint()


def test_sparse_features_are_read(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        x=None,
        x_data=np.array([1.0, 2.0]),
        x_indices=np.array([3, 0]),
        x_indptr=np.array([0, 1, 1, 1, 1, 1, 2]),
        x_shape=np.array([6, 4]),
    )
    features = read_npz(path).features
    assert (features.rows.tolist(), features.columns.tolist(), features.width) == (
        [0, 5],
        [3, 0],
        4,
    )


def test_vectors_of_edges_are_read_and_stay_with_their_edges(tmp_path: Path) -> None:
    vectors = np.arange(10.0).reshape(5, 2)
    graph = read_npz(saved(tmp_path, edge_vectors=vectors))
    again = tmp_path / "again.npz"
    write_npz(graph, again)
    assert read_npz(again).fingerprint() == graph.fingerprint()
    assert graph.fingerprint() != read_npz(saved(tmp_path)).fingerprint()
    for undirected in (True, False):
        found = neighbourhoods(graph, undirected=undirected)
        of_edges = vectors_of(graph, found)
        assert of_edges is not None
        for source, target, kind, vector in zip(
            found.source, found.target, found.types, of_edges, strict=True
        ):
            ends = [target, source] if kind == 1 else [source, target]
            first = np.flatnonzero((ends == graph.pairs.T).all(axis=1))[:1]  # of duplicates
            expected = np.zeros(2) if kind == 2 else vectors[first[0]]
            np.testing.assert_array_equal(vector, expected)


BAD_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "an edge to a node that does not exist": (
        {"edges": np.array([[0, 9], [1, 2]])},
        "edge 1 names node 9, but the nodes are 0 to 5",
    ),
    "a negative node": ({"edges": np.array([[-1], [2]])}, "edge 0 names node -1"),
    "a feature that is not a number": (
        {"x": np.where(np.arange(24).reshape(6, 4) == 9, np.nan, 1.0)},
        "feature 1 of node 2 is nan",
    ),
    "an infinite feature": (
        {"x": np.where(np.arange(24).reshape(6, 4) == 0, np.inf, 1.0)},
        "feature 0 of node 0 is inf",
    ),
    "a class without training nodes": (
        {"idx_train": np.array([0])},
        "class '1' has no training node",
    ),
    "a node in two parts": ({"idx_val": np.array([0])}, "also validated or tested on"),
    "an unlabelled node in a part": ({"idx_test": np.array([5])}, "node 5 of the test part"),
    "an empty part": ({"idx_val": np.array([], dtype=int)}, "the validation part has no node"),
    "a part outside the graph": (
        {"idx_val": np.array([77])},
        "validation part names a node outside",
    ),
    "features of fewer nodes": ({"x": np.ones((5, 4))}, "features for 5 nodes but labels for 6"),
    "edges in rows": ({"edges": np.zeros((5, 2), dtype=int)}, r"edges has the shape \(5, 2\)"),
    "labels that are text": ({"y": np.array(["a"] * 6)}, "y has 1 axes of"),
    "vectors of fewer edges": (
        {"edge_vectors": np.ones((4, 2))},
        "there are vectors for 4 edges, but 5 edges",
    ),
    "a vector that is not finite": (
        {"edge_vectors": np.full((5, 1), np.nan)},
        "the vector of edge 0 is not finite",
    ),
    "vectors of edges in one row": ({"edge_vectors": np.ones(5)}, r"edge_vectors has the shape"),
    "no edges": ({"edges": None}, "there is no array 'edges'"),
    "no features": ({"x": None}, "there is no array 'x_data'"),
    "sparse features that do not fit": (
        {
            "x": None,
            "x_data": np.ones(1),
            "x_indices": np.array([4]),
            "x_indptr": np.array([0, 1, 1, 1, 1, 1, 1]),
            "x_shape": np.array([6, 4]),
        },
        "sparse features do not fit together",
    ),
    "Python objects": ({"y": np.array([{}] * 6, dtype=object)}, "holds Python objects"),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_a_bad_npz_is_refused(name: str, tmp_path: Path) -> None:
    changes, message = BAD_ARRAYS[name]
    with pytest.raises(DataError, match=message):
        read_npz(saved(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 cut short"])
def test_a_file_that_is_no_npz_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not an npz file, or it is damaged"):
        read_npz(path)


def test_a_missing_npz_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_npz(tmp_path / "none.npz")


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, allow_pickle=True, y=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="holds Python objects"):
        read_npz(path)


TABLES = {
    "edges": "source,target\nann,bob\nbob,cid\n",
    "features": "node,age,height\nann,1,2\nbob,3,4\ncid,0,6\n",
    "labels": "node,label\nann,cat\nbob,dog\n",
}


def tables(folder: Path, **changes: str) -> dict[str, Path]:
    paths = {}
    for name, text in {**TABLES, **changes}.items():
        paths[name] = folder / f"{name}.csv"
        paths[name].write_text(text)
    return paths


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_tables_are_read(separator: str, tmp_path: Path) -> None:
    changed = {name: text.replace(",", separator) for name, text in TABLES.items()}
    graph = read_tables(**_as_arguments(tables(tmp_path, **changed)))
    assert graph.names == ("ann", "bob", "cid")
    assert graph.labels.tolist() == [0, 1, -1]
    assert graph.classes == ("cat", "dog")
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    assert graph.find("cid") == 2


def _as_arguments(paths: dict[str, Path]) -> dict[str, Any]:
    return {"edges": paths["edges"], "features": paths["features"], "labels": paths["labels"]}


BAD_TABLES = {
    "an edge to a node that does not exist": (
        {"edges": "ann,zoe\n"},
        "line 1: there is no node 'zoe'",
    ),
    "a label of a node that does not exist": ({"labels": "zoe,cat\n"}, "there is no node 'zoe'"),
    "three cells in an edge": ({"edges": "ann,bob,1\n"}, "the row has 3 cells, not 2"),
    "a feature that is text": ({"features": "ann,1,x\n"}, "not every cell after 'ann' is a number"),
    "a feature that is NaN": (
        {"features": "ann,nan\nbob,1\ncid,2\n"},
        "feature 0 of node ann is nan",
    ),
    "rows of unequal width": ({"features": "ann,1,2\nbob,1\n"}, "the row has 1 features"),
    "a node twice": ({"features": "ann,1\nann,2\nbob,1\ncid,1\n"}, "node 'ann' has two rows"),
    "a header only": ({"edges": "source,target\n"}, "there is no row"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused(name: str, tmp_path: Path) -> None:
    changes, message = BAD_TABLES[name]
    with pytest.raises(DataError, match=message):
        read_tables(**_as_arguments(tables(tmp_path, **changes)))


GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="a" for="node" attr.name="age" attr.type="double"/>
<key id="l" for="node" attr.name="kind" attr.type="string"/>
<graph edgedefault="undirected">
<node id="n1"><data key="a">3</data><data key="l">cat</data></node>
<node id="n2"><data key="a">4</data></node>
<edge source="n1" target="n2"/>
</graph></graphml>
"""


def test_graphml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    path.write_text(GRAPHML)
    graph = read_graphml(path, label="kind")
    assert graph.names == ("n1", "n2")
    assert graph.labels.tolist() == [0, -1]
    assert graph.features.values.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<graphml", "not well-formed XML"),
        ("<graphml/>", "this is not GraphML"),
        (GRAPHML.replace('attr.type="double"', 'attr.type="string"'), "no node has a numeric"),
    ],
)
def test_bad_graphml_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_graphml(path)


def test_missing_graphml_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_graphml(tmp_path / "none.graphml")


def small_graph(pairs: list[list[int]], nodes: int = 4) -> Graph:
    return Graph(
        features=FeatureMatrix.from_dense(np.ones((nodes, 2), dtype=np.float32)),
        labels=np.zeros(nodes, dtype=np.int64),
        pairs=np.array(pairs, dtype=np.int64),
        classes=("0",),
    )


def test_undirected_edges_lead_both_ways_and_duplicates_count_once() -> None:
    found = neighbourhoods(small_graph([[0, 1, 0, 2], [1, 0, 1, 2]]), undirected=True)
    edges = list(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert edges == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 2), (3, 3)]
    assert found.types.tolist() == [2, 0, 0, 2, 2, 2]


def test_directed_edges_lead_one_way() -> None:
    found = neighbourhoods(small_graph([[0], [1]]), undirected=False, self_loops=False)
    assert (found.source.tolist(), found.target.tolist(), found.types.tolist()) == ([0], [1], [0])


def test_the_way_back_of_an_edge_has_a_type_of_its_own() -> None:
    found = neighbourhoods(small_graph([[0], [1]]), undirected=True, self_loops=False)
    assert found.types.tolist() == [1, 0]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_every_node_is_its_own_neighbour_and_no_edge_comes_twice(
    pairs: list[tuple[int, int]],
) -> None:
    graph = small_graph([[a for a, _ in pairs], [b for _, b in pairs]], nodes=7)
    found = neighbourhoods(graph, undirected=True)
    edges = list(zip(found.source.tolist(), found.target.tolist(), strict=True))
    assert len(set(edges)) == len(edges)
    assert {(node, node) for node in range(7)} <= set(edges)
    assert all((target, source) in set(edges) for source, target in edges)


def test_features_are_divided_by_their_sum() -> None:
    matrix = FeatureMatrix.from_dense(np.array([[1.0, 3.0], [0.0, 0.0]], dtype=np.float32))
    assert matrix.normalised().values.tolist() == [0.25, 0.75]


def test_a_random_split_keeps_the_parts_apart(tmp_path: Path) -> None:
    labels = np.array([0] * 30 + [1] * 5 + [-1] * 5)
    graph = Graph(
        features=FeatureMatrix.from_dense(np.ones((40, 2), dtype=np.float32)),
        labels=labels,
        pairs=np.zeros((2, 0), dtype=np.int64),
        classes=("a", "b"),
    )
    split = split_at_random(graph, path=tmp_path, per_class=10, valid=100, test=9, seed=1).split
    assert split is not None
    assert np.bincount(labels[split.train]).tolist() == [10, 2]
    assert (len(split.valid), len(split.test)) == (7, 9)
    everything = np.concatenate([split.train, split.valid, split.test])
    assert len(np.unique(everything)) == len(everything)
    again = split_at_random(graph, path=tmp_path, per_class=10, valid=100, test=9, seed=1).split
    assert again is not None
    assert again.test.tolist() == split.test.tolist()


def test_nodes_are_found_by_number_or_name() -> None:
    graph = small_graph([[0], [1]])
    assert (graph.find("3"), graph.name(3)) == (3, "3")
    with pytest.raises(SettingsError, match="There is no node '4'; the nodes are 0 to 3"):
        graph.find("4")


def test_classes_are_sorted_as_numbers_where_they_are() -> None:
    assert class_numbers(["10", "9", ""])[1] == ("9", "10")


def test_a_split_changes_the_fingerprint() -> None:
    graph = small_graph([[0], [1]])
    part = np.array([0])
    other = Graph(
        graph.features, graph.labels, graph.pairs, graph.classes, split=GraphSplit(part, part, part)
    )
    assert graph.fingerprint() != other.fingerprint()
