"""A student of Marian gives its own greedy outputs, from float32 and from the int8 file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import regard
from regard.base.errors import RunError
from regard.exchange.binary import read_marian
from regard.exchange.sources import read_npz

NPZ, BINARY = "enpt.float32.npz", "model.enpt.intgemm.alphas.bin"


@pytest.mark.realdata
def test_outputs_and_log_probabilities_equal_the_reference(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "weights" / "marian-enpt"
    with pytest.raises(RunError, match=rf"{NPZ}, {BINARY}\. Name one with --weights"):
        regard.import_model(folder, out=tmp_path / "run")
    for name in (NPZ, BINARY):
        found = regard.import_model(folder, out=tmp_path / name, weights=name)
        assert found.notes == (
            "The shortlist lex.50.50.enpt.s2t.bin is absent and not needed: all words are "
            "searched.",
        )
    weights = [tmp_path / name / "best" / "model.safetensors" for name in (NPZ, BINARY)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    table = (folder / "enpt.flores100.greedy.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in table]
    outputs = regard.load(tmp_path / BINARY).translate([row[0] for row in rows], beam=1)
    assert sum(one.text == row[1] for one, row in zip(outputs, rows, strict=True)) == 100
    for one, row in zip(outputs, rows, strict=True):
        assert one.log_probability == pytest.approx(float(row[2]), abs=2e-4)


@pytest.mark.realdata
def test_the_binary_file_is_bit_equal_to_the_npz(real_data: Path) -> None:
    folder = real_data / "weights" / "marian-enpt"
    tensors, config = read_marian(folder / BINARY)
    expected = read_npz(folder / NPZ)
    assert "dec-cell: ssru" in config
    assert {name for name in tensors if not name.endswith("_QuantMultA")} == expected.keys()
    assert all(torch.equal(tensors[name], expected[name]) for name in expected)
