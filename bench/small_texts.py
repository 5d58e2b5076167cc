"""The text on which benchmarks train small language models."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from regard.studies.small_models import Characters

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))


def shakespeare() -> Characters:
    """Return Tiny Shakespeare as characters; the last tenth is held out."""
    packed = (DATA / "language-model" / "tinyshakespeare.txt.gz").read_bytes()
    return Characters.of(gzip.decompress(packed).decode())
