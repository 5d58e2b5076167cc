"""What length costs, and the published table beside runs of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import regard
from regard.base.errors import RunError
from regard.cli.app import app
from regard.models.language_model import build_language_model
from regard.studies.efficiency import (
    ATTENTION,
    VOCAB,
    LengthCosts,
    efficiency,
    growth,
    models,
    path_length,
)
from regard.studies.published import PUBLISHED, own_runs


def test_all_models_have_about_the_same_size() -> None:
    sizes = {
        name: sum(p.numel() for p in build_language_model(settings, vocab=VOCAB).parameters())
        for name, settings in models(64).items()
    }
    whole = sizes["Transformer, full"]
    for name, size in sizes.items():
        assert 0.85 < size / whole < 1.1, name


@pytest.mark.parametrize(
    ("name", "length", "steps"),
    [
        ("LSTM", 100, 100),
        ("Transformer, full", 100, 1),
        ("Transformer, window", 33, 1),
        ("Transformer, window", 100, 4),
        ("Transformer, strided", 97, 1),
        ("Transformer, strided", 100, 2),
        ("Transformer, fixed", 100, 2),
    ],
)
def test_path_lengths(name: str, length: int, steps: int) -> None:
    model = build_language_model(models(128)[name], vocab=VOCAB)
    assert path_length(model, length) == steps


@pytest.mark.parametrize("kind", ["strided", "window", "memory"])
def test_a_path_is_the_way_of_the_gradient(kind: str) -> None:
    settings = models(128)[f"Transformer, {kind}"]
    for layers in (1, 2, 3):
        torch.manual_seed(1)
        chosen = settings.model_copy(update={"layers": layers})
        model = build_language_model(chosen, vocab=VOCAB).double().eval()
        text = torch.randint(VOCAB, (1, 100))
        other = text.clone()
        other[0, 0] = (text[0, 0] + 1) % VOCAB
        reached = not torch.equal(model(text).features[0, -1], model(other).features[0, -1])
        path = path_length(model, 100)
        assert reached == (path is not None and path <= layers)


def test_costs_are_measured_by_length(tmp_path: Path) -> None:
    found = efficiency(lengths=(16, 64), rounds=1, tokens=128)
    assert [one.name for one in found] == ["LSTM", "GRU", *(f"Transformer, {k}" for k in ATTENTION)]
    for one in found:
        assert set(one.seconds) == set(one.kept_bytes) == set(one.path) == {16, 64}
        assert growth(one.seconds) > 0
        assert one.to_dict()["parameters"] == one.parameters


def test_the_command_measures_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = LengthCosts("LSTM", 1_000, {16: 0.1, 64: 0.4}, {16: 10, 64: 40}, {16: 16, 64: 64})
    monkeypatch.setattr("regard.studies.efficiency.efficiency", lambda **_: [costs])
    out = tmp_path / "costs.png"
    command = ["study", "efficiency", "--longest", "64", "--rounds", "1", "--out", str(out)]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.output
    assert "LSTM (1,000 parameters)" in found.output
    assert "path 64" in found.output
    assert out.stat().st_size > 10_000


def test_the_published_table_is_that_of_the_lectures() -> None:
    rows = {one.name: (one.bleu, one.above_moses, one.days, one.gpus) for one in PUBLISHED}
    assert rows == {
        "Transformer, large": (28.4, 7.8, 3, 8),
        "Transformer, small": (24.9, 4.3, 1, 1),
        "GNMT + mixture of experts": (26.0, 5.4, 1, 64),
        "ConvS2S": (25.1, 4.5, 18, 1),
        "GNMT": (24.6, 4.0, 1, 96),
    }
    from regard.tasks import find_recipe

    for one in PUBLISHED:
        if one.recipe:
            assert find_recipe(one.recipe).task == "translate"


def test_runs_of_ones_own_stand_beside_it(tmp_path: Path) -> None:
    pairs = [("cats sleep", "Katzen schlafen"), ("dogs sleep", "Hunde schlafen")] * 6
    settings = {"training.steps": 2, "tokenizer.kind": "word", "tokenizer.shared": False,
                "model.tie": "target", "model.layers": 1, "model.model_dim": 16,
                "model.heads": 2, "training.processes": 1}  # fmt: skip
    data = {"train": pairs, "valid": pairs[:2], "test": pairs[:2]}
    folder = tmp_path / "mine"
    regard.train("transformer-tiny", data=data, out=folder, set=settings, progress=False)
    (own,) = own_runs([folder])
    assert own.bleu is not None
    assert own.minutes > 0
    assert "tok:13a" in own.signature
    shown = CliRunner().invoke(app, ["study", "published", str(folder)]).output
    assert "28.4  +7.8   3 days, 8 GPUs" in shown
    assert "mine" in shown
    assert "BLEU of different tests cannot be compared" in shown
    table = CliRunner().invoke(app, ["study", "published", str(folder), "--json"]).output
    assert json.loads(table)["published"][0]["gpu_days"] == 24


def test_only_translators_stand_beside_it(tmp_path: Path) -> None:
    settings = {"training.steps": 1, "model.context": 12, "decoding.max_tokens": 0,
                "model.layers": 1, "model.model_dim": 16, "model.heads": 2}  # fmt: skip
    folder = tmp_path / "book"
    regard.train("gpt-nano", data="a cat sat. " * 30, out=folder, set=settings, progress=False)
    with pytest.raises(RunError, match="the published table is about translators"):
        own_runs([folder])
