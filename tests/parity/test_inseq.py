"""Explanations equal those of inseq on a model that was exported to Hugging Face's form."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("inseq")
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))


def test_gradients_and_occlusion_are_those_of_inseq(tmp_path: Path) -> None:
    from inseq_peer import SHARED, largest_differences

    found = largest_differences(tmp_path)
    assert set(found) == set(SHARED)
    assert max(found.values()) < 1e-4
