"""A fairseq Transformer that others trained gives its own greedy outputs, token for token."""

from __future__ import annotations

from pathlib import Path

import pytest

import regard


@pytest.mark.realdata
def test_greedy_outputs_equal_the_reference(real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "weights" / "latin2nqo"
    found = regard.import_model(folder, out=tmp_path / "run")
    assert found.format == "fairseq"
    lines = (folder / "reference_greedy.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    outputs = regard.load(tmp_path / "run").translate([source for source, _ in pairs], beam=1)
    assert [one.text for one in outputs] == [expected for _, expected in pairs]
