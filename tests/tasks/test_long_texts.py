"""Models that see less or remember more: trained, resumed, used and looked at like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.models.inspection import parameter_count
from regard.tasks import LookRequest, look_at, trace_run

SMALL = {"model.layers": 2, "model.model_dim": 16, "model.heads": 2, "training.processes": 1,
         "model.context": 24, "decoding.max_tokens": 3}  # fmt: skip
KINDS: dict[str, dict[str, Any]] = {
    "memory": {"model.positions": "segment", "model.memory": 8, "model.segment": 6},
    "strided": {"model.pattern": "strided", "model.stride": 4},
    "hashed": {"model.pattern": "hashed", "model.hash_buckets": 4, "model.hash_chunk": 4},
    "span": {"model.span": 12, "model.span_ramp": 2, "model.span_loss": 0.01},
}
TEXT = "the cat sat on a mat. the dog lay on a rug. " * 40
PAIRS = [("cats sleep", "Katzen schlafen"), ("dogs sleep", "Hunde schlafen")] * 6
LONG = "the cat sat on a mat. the dog lay"


def trained(folder: Path, kind: str, steps: int) -> Path:
    more = {"training.steps": steps, "training.checkpoint_every": 2} | KINDS[kind]
    regard.train("gpt-nano", data=TEXT, out=folder, set=SMALL | more, progress=False)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("runs") / request.param, request.param, 4)


def test_it_writes_beyond_its_context(run: Path) -> None:
    model = regard.load(run)
    (found,) = model.generate("the cat", max_tokens=40, temperature=0)
    (again,) = model.generate("the cat", max_tokens=40, temperature=0, cache=False)
    assert found.tokens == 40
    if run.name == "memory":  # reads texts of any length; others read the last of them again
        assert found.text == again.text
    assert model.bits_per_character(LONG) > 0


def test_every_head_can_be_seen(run: Path) -> None:
    weights = np.array(look_at(LookRequest(run=run, text=LONG)).record["weights"])
    shown = len(LONG) if run.name == "memory" else 24
    assert weights.shape == (2, 2, shown, shown)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-4)
    assert (np.triu(weights, k=1) == 0).all()


def test_every_number_can_be_traced(run: Path) -> None:
    found = trace_run(run, LONG)
    weights = found["decoder.1.weights"]
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-4)
    np.testing.assert_allclose(
        weights @ found["decoder.1.V"], found["decoder.1.Z"], rtol=1e-3, atol=1e-5
    )


def test_a_training_resumes_exactly(run: Path, tmp_path: Path) -> None:
    half = trained(tmp_path / run.name, run.name, 2)
    regard.train(resume=half, data=TEXT, set={"training.steps": 4}, progress=False)
    whole, again = (regard.load(folder) for folder in (run, half))
    sizes = [parameter_count(one.model) for one in (whole, again)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("kind", ["strided", "hashed", "span"])
def test_translators_have_them_too(kind: str, tmp_path: Path) -> None:
    more = {"training.steps": 2, "tokenizer.kind": "word", "tokenizer.shared": False,
            "model.feed_forward": 16, "model.tie": "target"}  # fmt: skip
    own = {name: value for name, value in (SMALL | KINDS[kind] | more).items()
           if name not in ("model.context", "decoding.max_tokens")}  # fmt: skip
    data = {"train": PAIRS, "valid": PAIRS[:2], "test": PAIRS[:2]}
    regard.train("transformer-tiny", data=data, out=tmp_path / "r", set=own, progress=False)
    model = regard.load(tmp_path / "r")
    assert len(model.translate(["cats sleep", "dogs sleep cats sleep"])) == 2
    view = look_at(LookRequest(run=tmp_path / "r", text="cats sleep", part="encoder"))
    assert np.array(view.record["weights"]).shape[:2] == (2, 2)
