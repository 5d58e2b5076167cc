from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DataError, RegardError, RunError, SettingsError
from regard.runs.run import Run, open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.exchange import import_model
from regard.tasks.node_classification.data import read_graph
from regard.tasks.node_classification.model import load
from regard.tasks.node_classification.settings import GraphRecipe
from regard.tasks.node_classification.training import train_node_classifier
from regard.tasks.node_classification.views import draw_classes, draw_node, look_at_node


@pytest.fixture(scope="module")
def communities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two groups of nodes that mostly know their own; the features say little by themselves."""
    random = np.random.default_rng(0)
    nodes, labels = 60, np.arange(60) % 2
    likely = np.where(labels[:, None] == labels[None], 0.25, 0.01)
    edges = np.argwhere(np.triu(random.random((nodes, nodes)) < likely, 1)).T
    features = (random.random((nodes, 8)) < 0.3 + 0.2 * labels[:, None] * (np.arange(8) < 4)) * 1.0
    path = tmp_path_factory.mktemp("graph") / "communities.npz"
    np.savez(
        path,
        x=features.astype(np.float32),
        y=labels,
        edges=edges,
        idx_train=np.arange(0, 12),
        idx_val=np.arange(12, 30),
        idx_test=np.arange(30, 60),
    )
    return path


def recipe_for(graph: Path, *overrides: str) -> GraphRecipe:
    small = ["model.heads=2", "model.head_dim=4", "model.dropout=0.2", "training.steps=60"]
    small += ["training.seeds=2", "training.learning_rate=0.02"]
    found = find_recipe("gat-cora", overrides=[f"data.graph={graph}", *small, *overrides])
    return expect(found, GraphRecipe)


@pytest.fixture(scope="module")
def trained(communities: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "graph"
    recipe = recipe_for(communities)
    train_node_classifier(recipe, open_run(folder, recipe, resume=False))
    return folder


def test_it_learns_the_communities_and_says_how_well(trained: Path) -> None:
    result = json.loads((trained / "test.json").read_text())
    assert result["accuracy_mean"] > 75
    assert len(result["seeds"]) == 2
    best = min(result["seeds"], key=lambda each: each["valid_loss"])
    assert result["best_seed"] == best["seed"]
    loaded = load(trained)
    assert loaded.graph.split is not None
    assert loaded.accuracy(loaded.graph.split.test) == pytest.approx(best["test_accuracy"])


def test_predictions_are_written_with_their_parts(trained: Path) -> None:
    lines = (trained / "predictions.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["node", "part", "class", "predicted", "probability"]
    assert len(lines) == 61
    assert lines[1].split("\t")[:3] == ["0", "train", "0"]


def test_attention_is_labelled_with_its_edges(trained: Path, tmp_path: Path) -> None:
    loaded = load(trained)
    attention = loaded.attention()
    assert attention.weights.shape == (loaded.tensors.edges.count, 2)
    own = attention.of(7)
    assert set(own.target.tolist()) == {7}
    assert own.weights.sum(axis=0) == pytest.approx([1.0, 1.0], abs=1e-5)
    attention.save(tmp_path / "a.tsv", graph=loaded.graph)
    attention.save(tmp_path / "a.npz", graph=loaded.graph)
    lines = (tmp_path / "a.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["source", "target", "head", "weight"]
    assert len(lines) == 1 + attention.weights.size
    with np.load(tmp_path / "a.npz") as arrays:
        assert np.array_equal(arrays["weights"], attention.weights)
    with pytest.raises(RegardError, match="cannot tell a format from the suffix"):
        attention.save(tmp_path / "a.txt", graph=loaded.graph)


def test_a_node_and_all_nodes_can_be_drawn(trained: Path, tmp_path: Path) -> None:
    loaded = load(trained)
    seen = look_at_node(loaded, 7, head=1)
    assert [each.weight for each in seen] == sorted((e.weight for e in seen), reverse=True)
    draw_node(loaded, 7, tmp_path / "n.svg")
    drawn = (tmp_path / "n.svg").read_text()
    assert drawn.count("edge-") == len(seen) - 1
    draw_classes(loaded, tmp_path / "e.png")
    assert (tmp_path / "e.png").stat().st_size > 1_000
    with pytest.raises(RegardError, match="There is no head 5; the heads are 0 to 1"):
        look_at_node(loaded, 7, head=5)
    with pytest.raises(RegardError, match="There is no layer 2; the layers are 0 to 1"):
        look_at_node(loaded, 7, layer=2)


def test_a_stopped_training_ends_as_one_that_was_not(communities: Path, tmp_path: Path) -> None:
    short = recipe_for(communities, "training.steps=10", "training.seeds=1")
    recipe = recipe_for(communities, "training.steps=20", "training.seeds=1")
    train_node_classifier(short, open_run(tmp_path / "a", short, resume=False))
    resumed = train_node_classifier(recipe, open_run(tmp_path / "a", recipe, resume=True))
    straight = train_node_classifier(recipe, open_run(tmp_path / "b", recipe, resume=False))
    assert resumed.accuracy.to_dict() == straight.accuracy.to_dict()


def test_other_data_or_settings_cannot_be_resumed(
    communities: Path, trained: Path, tmp_path: Path
) -> None:
    other = recipe_for(communities, "model.heads=3")
    with pytest.raises(SettingsError, match="The settings under 'model' differ"):
        open_run(trained, other, resume=True)
    recipe = recipe_for(communities)
    changed = read_graph(recipe.data)
    changed.features.values[0] += 1
    with pytest.raises(RunError, match="The graph has changed since the run"):
        train_node_classifier(recipe, Run.open(trained), graph=changed)


@pytest.mark.parametrize(
    "settings",
    [
        ["model.layer=convolution"],
        ["model.layer=messages"],
        ["model.layer=messages", "model.edge_vectors=learned"],
    ],
    ids=lambda settings: settings[-1],
)
def test_other_layers_train_on_sampled_neighbourhoods(
    settings: list[str], communities: Path, tmp_path: Path
) -> None:
    recipe = recipe_for(
        communities,
        *settings,
        "training.batch_nodes=5",
        "training.neighbours=3",
        "training.seeds=1",
        "training.steps=6",
    )
    trained = train_node_classifier(recipe, open_run(tmp_path / "run", recipe, resume=False))
    loaded, accuracy = trained.model, trained.accuracy
    assert str(accuracy).endswith(" %")
    with pytest.raises(RegardError, match="no attention to look at"):
        loaded.attention()


def test_vectors_of_edges_must_be_in_the_data(communities: Path, tmp_path: Path) -> None:
    recipe = recipe_for(communities, "model.layer=messages", "model.edge_vectors=given")
    with pytest.raises(SettingsError, match="but the graph has none: add an array edge_vectors"):
        train_node_classifier(recipe, open_run(tmp_path / "run", recipe, resume=False))


def test_a_run_without_result_says_what_to_do(communities: Path, tmp_path: Path) -> None:
    Run.create(tmp_path / "run", recipe_for(communities))
    with pytest.raises(RunError, match="continue the training with --resume"):
        load(tmp_path / "run")


def test_what_data_can_be_read(communities: Path, tmp_path: Path) -> None:
    settings = recipe_for(communities, "data.split=random", "data.train_per_class=3").data
    split = read_graph(settings).split
    assert split is not None
    assert len(split.train) == 6
    with pytest.raises(SettingsError, match="There is no graph to learn from"):
        read_graph(expect(find_recipe("gat-cora"), GraphRecipe).data)
    with pytest.raises(DataError, match="cannot tell the kind of graph from the suffix"):
        read_graph(recipe_for(tmp_path / "graph.txt").data)
    for name, text in {
        "edges": "a,b\nb,c\nc,d\nd,e\ne,f\n",
        "features": "".join(f"{node},1,{number}\n" for number, node in enumerate("abcdef")),
        "labels": "".join(f"{node},{number % 2}\n" for number, node in enumerate("abcdef")),
    }.items():
        (tmp_path / name).write_text(text)
    tables = [f"data.{name}={tmp_path / name}" for name in ("edges", "features", "labels")]
    read = expect(find_recipe("gat-cora", overrides=tables), GraphRecipe)
    assert read_graph(read.data).nodes == 6
    own = expect(find_recipe("gat-cora", overrides=[*tables, "data.split=standard"]), GraphRecipe)
    with pytest.raises(DataError, match="there is no split in the file"):
        read_graph(own.data)


@pytest.mark.realdata
def test_the_authors_weights_give_the_authors_accuracy(real_data: Path, tmp_path: Path) -> None:
    """Velickovic et al. 2018 published a trained model: it must score 84.4 % in our layers."""
    found = import_model(
        real_data / "weights" / "gat-cora",
        out=tmp_path / "run",
        data=real_data / "planetoid" / "cora.npz",
    )
    assert found.notes == ("Test accuracy: 84.4 %",)
    loaded = load(tmp_path / "run")
    assert loaded.graph.split is not None
    assert loaded.accuracy(loaded.graph.split.test) == pytest.approx(84.4, abs=0.01)
