from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

# The models of the tests are tiny: threads would wait for each other longer than they compute.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real corpora: REGARD_DATA, or `shared/data` beside the repository."""
    named = os.environ.get("REGARD_DATA")
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(named) if named else beside
    if not folder.is_dir():
        pytest.skip(f"no real corpora in {folder}; name their folder in REGARD_DATA")
    return folder
