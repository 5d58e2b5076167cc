"""The built-in graph and text."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.base.errors import SettingsError
from regard.corpora.built_in import library_graph, story
from regard.tasks import find_recipe


def test_words_alone_do_not_tell_a_topic_but_neighbours_help() -> None:
    graph = library_graph()
    assert graph.fingerprint() == library_graph().fingerprint()
    assert graph.fingerprint() != library_graph(seed=2).fingerprint()
    source, target = graph.pairs
    assert (source != target).all()
    assert 0.7 < (graph.labels[source] == graph.labels[target]).mean() < 0.9
    assert graph.split is not None
    train, test = graph.split.train, graph.split.test
    assert sorted(np.concatenate([train, graph.split.valid, test])) == list(range(graph.nodes))
    assert np.bincount(graph.labels[train]).tolist() == [15] * 5
    words = np.zeros((graph.nodes, graph.features.width))
    words[graph.features.rows, graph.features.columns] = graph.features.values
    around = words.copy()
    np.add.at(around, source, words[target])
    np.add.at(around, target, words[source])
    shares = []
    for seen in (words, around):
        means = np.stack([seen[train][graph.labels[train] == each].mean(0) for each in range(5)])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        shares.append(((seen[test] @ means.T).argmax(1) == graph.labels[test]).mean())
    assert shares[0] < 0.65 < 0.8 < shares[1]


def test_the_text_is_paragraphs_of_written_sentences() -> None:
    text = story(sentences=60)
    assert text == story(sentences=60)
    assert 2_000 < len(text) < 4_000
    for line in text.splitlines():
        assert line[0].isupper() and line.endswith(".")
        assert 1 <= line.count(".") <= 7


def test_recipes_of_graphs_and_text_run_without_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With types checked at run time, the whole text would take a minute.
    monkeypatch.setattr("regard.tasks.language_modelling.data.story", partial(story, sentences=60))
    settings = {"training.steps": 4, "training.seeds": 1, "training.patience": 4}
    graph = regard.train(
        "gat-cora", built_in=True, out=tmp_path / "graph", progress=False, set=settings
    )
    assert graph.model.graph.nodes == 500
    settings = {"training.steps": 2, "model.layers": 1, "decoding.max_tokens": 1}
    regard.train("gpt-nano", built_in=True, out=tmp_path / "text", progress=False, set=settings)
    again = regard.train(resume=tmp_path / "text", set={"training.steps": 3}, progress=False)
    assert again.run.folder == tmp_path / "text"


@pytest.mark.parametrize(
    ("recipe", "override"), [("gat-cora", "data.graph=a.npz"), ("gpt-nano", "data.text=['a.txt']")]
)
def test_built_in_and_files_exclude_each_other(recipe: str, override: str) -> None:
    with pytest.raises(SettingsError, match="built_in and files exclude each other"):
        find_recipe(recipe, overrides=[override, "data.built_in=true"])
