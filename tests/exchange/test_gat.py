from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.base.errors import RunError, SettingsError
from regard.exchange.formats import read_foreign
from regard.exchange.gat import layout
from regard.exchange.layout import written
from regard.models.graph_classifier import build_graph_classifier
from regard.settings.models import GraphModelSettings

SETTINGS = GraphModelSettings.model_validate(
    {"heads": 3, "head_dim": 4, "features": 10, "classes": 2}
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A random model as its authors would keep it."""
    torch.manual_seed(1)
    model = build_graph_classifier(SETTINGS, features=10, classes=2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    tensors = {name: part.numpy() for name, part in written(model, layout(SETTINGS)).items()}
    np.savez(tmp_path / "gat.npz", **tensors, beta1_power=np.float32(0.1))
    return tmp_path / "gat.npz"


def test_one_table_reads_and_writes(file: Path) -> None:
    found = read_foreign(file)
    assert found.settings == SETTINGS
    assert found.leftovers == {"beta1_power": "a counter of Adam"}
    back = written(found.model, found.layout)
    with np.load(file) as arrays:
        assert set(arrays.files) == {*back, "beta1_power"}
        assert arrays["conv1d_3.kernel"].shape == (1, 10, 4)
        assert arrays["conv1d_10.kernel"].shape == (1, 2, 1)
        for name, part in back.items():
            np.testing.assert_array_equal(part.numpy(), arrays[name])


def graph_file(path: Path, *, features: int = 10) -> Path:
    draw = np.random.default_rng(1)
    np.savez(
        path,
        x=draw.random((60, features)).astype(np.float32),
        y=np.arange(60) % 2,
        edges=draw.integers(0, 60, (2, 200)),
        idx_train=np.arange(12),
        idx_val=np.arange(12, 30),
        idx_test=np.arange(30, 60),
    )
    return path


def test_a_run_holds_the_graph_and_its_test(file: Path, tmp_path: Path) -> None:
    graph = graph_file(tmp_path / "graph.npz")
    found = regard.import_model(file, out=tmp_path / "run", data=graph)
    loaded = regard.load(tmp_path / "run")
    accuracy = loaded.accuracy(loaded.graph.split.test)
    assert found.notes == (f"Test accuracy: {accuracy:.1f} %",)
    other = graph_file(tmp_path / "other.npz", features=9)
    with pytest.raises(RunError, match="has 9 features and 2 classes, but the model is for 10"):
        regard.import_model(file, out=tmp_path / "no", data=other)
    assert not (tmp_path / "no").exists()


def test_what_does_not_fit(file: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="name its file with --data"):
        regard.import_model(file, out=tmp_path / "run")
    with np.load(file) as arrays:
        kept = {name: arrays[name] for name in arrays.files if name != "conv1d_3.kernel"}
    np.savez(tmp_path / "less.npz", **kept)
    with pytest.raises(RunError, match="no tensor"):
        read_foreign(tmp_path / "less.npz")
    np.savez(tmp_path / "two.npz", **kept, **{"conv1d_3.kernel": np.zeros((1, 7, 4))})
    with pytest.raises(RunError, match="one output head is expected"):
        read_foreign(tmp_path / "two.npz")
    assert not (tmp_path / "run").exists()
