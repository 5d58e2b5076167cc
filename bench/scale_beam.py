"""How much faster a long beam search is than before keys and values were kept once a sentence.

    python bench/scale.py --part beam

Both sides are this program: the source of commit 7426679, which copied all keys and values at each
step, and that of today. They take turns, each in a process of its own with one thread, and search
with the same weights; what counts is time of the processor inside the search. All sentences are
written to the same length, and the outputs of both sides are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

from scale import Measured

ROOT = Path(__file__).parent.parent
BEFORE = "7426679"
SENTENCES, BEAM, VOCABULARY = 8, 5, 8000
# Weights are fresh: what a step costs does not depend on them, and how often prefixes change
# places hardly does. Sizes are those of the recipes transformer-tiny and transformer-base.
MODELS: dict[str, dict[str, object]] = {
    "tiny": {
        "layers": 4,
        "model_dim": 128,
        "heads": 4,
        "feed_forward": 256,
        "norm_placement": "pre",
    },
    "base": {},
}


def measure(*, small: bool) -> Measured:
    """Return the speedups at 300 tokens, and how far the outputs agree."""
    length = 20 if small else 300
    rounds = {"tiny": 1} if small else {"tiny": 5, "base": 1}
    figures: dict[str, float] = {}
    details: dict[str, object] = {"before": BEFORE, "tokens": length, "sentences": SENTENCES}
    with tempfile.TemporaryDirectory() as folder:
        sources = {"before": unpacked(BEFORE, Path(folder)) / "src", "now": ROOT / "src"}
        for size, count in rounds.items():
            found: dict[str, list[dict[str, object]]] = {side: [] for side in sources}
            for _ in range(count):
                for side, source in sources.items():
                    found[side].append(run(source, size=size, length=length))
            seconds = {side: [one["seconds"] for one in runs] for side, runs in found.items()}
            before, now = (statistics.median(seconds[side]) for side in sources)
            name = "beam_long_speedup" if size == "tiny" else f"beam_long_speedup_{size}"
            figures[name] = round(before / now, 3)
            old, new = (found[side][0] for side in sources)
            details[size] = {
                "seconds": seconds,
                "same_outputs": old["outputs"] == new["outputs"],
                "largest_difference_of_scores": max(
                    abs(a - b) for a, b in zip(old["scores"], new["scores"], strict=True)
                ),
                "peak_megabytes": {side: runs[0]["megabytes"] for side, runs in found.items()},
            }
            print(size, details[size], flush=True)
    return Measured(figures, details)


def unpacked(commit: str, folder: Path) -> Path:
    """Return the folder with the source of a commit."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def run(source: Path, *, size: str, length: int) -> dict[str, object]:
    """Search in a process of its own that imports the program from this source."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--size", size, "--length", str(length)]
    found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    answer: dict[str, object] = json.loads(found.stdout.splitlines()[-1])
    return answer


def search(*, size: str, length: int) -> None:
    """Search once, and print the seconds and what was found."""
    import resource

    import torch

    from regard.decoding.beam import BeamOptions, beam_search
    from regard.decoding.rules import Rules
    from regard.models.build import build_translator
    from regard.settings.models import TransformerSettings

    torch.set_num_threads(1)
    torch.manual_seed(1)
    settings = TransformerSettings(tie="all", **MODELS[size])
    model = build_translator(settings, source_vocab=VOCABULARY, target_vocab=VOCABULARY)
    model.eval().requires_grad_(False)
    source = torch.randint(4, VOCABULARY, (SENTENCES, length))
    limits = torch.full((SENTENCES,), length)
    begun = time.process_time()
    found = beam_search(
        model,
        source,
        torch.ones_like(source, dtype=torch.bool),
        rules=Rules(limits=limits, least=limits),
        options=BeamOptions(beam=BEAM),
    )
    seconds = time.process_time() - begun
    best = [hypotheses[0] for hypotheses in found]
    answer = {
        "seconds": round(seconds, 3),
        "outputs": [hypothesis.tokens for hypothesis in best],
        "scores": [hypothesis.score for hypothesis in best],
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--size", choices=MODELS, required=True)
    options.add_argument("--length", type=int, required=True)
    given = options.parse_args()
    search(size=given.size, length=given.length)
