"""Small runs of every task that are kept in the repository, with the outputs they must give.

    python tests/upgrades/kept_runs.py      # once per format of runs, by the version that writes it

Writes `format-N/NAME/`, a run of a few kilobytes, and `format-N/NAME.json`, its outputs. Later
versions must open it, go on with its training, and give the same outputs. What was part of a
release is never made again: add the runs of a new format, or of a new kind of model, next to it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.corpora.graph import FeatureMatrix, Graph, GraphSplit
from regard.runs.evidence import FORMAT

HERE = Path(__file__).parent
STEPS = {"training.steps": 200, "training.validate_every": 50, "training.checkpoint_every": 50,
         "training.keep": 1, "training.learning_rate": 0.02, "training.warmup": 4}  # fmt: skip
LIGHT = {**STEPS, "training.validate_sentences": 2, "decoding.beam": 2, "decoding.max_length": 9}
RECURRENT = {"model.hidden": 4, "model.embedding": 4}
TRANSFORMER = {"model.layers": 1, "model.model_dim": 4, "model.heads": 2}
LINES = [f"the {animal} sees {number} {thing}" for number in ("one", "two", "six")
         for animal in ("cat", "dog") for thing in ("axe", "saw", "pin")]  # fmt: skip
PAIRS = [(line, " ".join(word[::-1] for word in line.split())) for line in LINES]
TRANSLATIONS = {"train": PAIRS * 4, "valid": PAIRS[:4], "test": PAIRS[4:8]}
TEXT = "\n".join(LINES * 3) + "\n"
LABELLED = [(line, "cat" if "cat" in line else "dog") for line in LINES * 2]
RING = np.array([(a, (a + step) % 12) for a in range(12) for step in (1, 2)])
GRAPH = Graph(
    features=FeatureMatrix.from_dense(np.eye(12, 3, dtype=np.float32)),
    labels=np.arange(12) // 6,
    pairs=RING.T.copy(),
    classes=("low", "high"),
    split=GraphSplit(*(np.arange(first, 12, 3) for first in range(3))),
)


@dataclass(frozen=True)
class KeptRun:
    """How a run is made, and what it is asked."""

    recipe: str
    settings: dict[str, Any]
    ask: Callable[[Any], Any]
    data: Any = None


def translated(model: Any) -> Any:
    """Return a translation, its score and its attention."""
    (found,) = model.translate(LINES[:1], attention=True)
    return {"text": found.text, "score": found.score, "weights": found.attention.weights.tolist()}


def generated(model: Any) -> Any:
    """Return the most probable continuation of a prompt, and how well it knows a text."""
    (found,) = model.generate("the ", max_tokens=8, temperature=0.0)
    return {"text": found.text, "bits": model.bits_per_character(TEXT)}


def classified(model: Any) -> Any:
    """Return the probabilities of some texts."""
    return [one.probabilities for one in model.classify(LINES[:3])]


def nodes(model: Any) -> Any:
    """Return the classes of all nodes, and the attention on their edges."""
    weights = model.attention().weights
    return {"classes": model.predictions.tolist(), "weights": weights[:, 0].tolist()}


KEPT = {
    "recurrent-translator": KeptRun(
        "seq2seq-attention", {**LIGHT, **RECURRENT, "tokenizer.kind": "word"}, translated,
        TRANSLATIONS,
    ),
    "transformer-translator": KeptRun(
        "transformer-tiny",
        {**LIGHT, **TRANSFORMER, "model.feed_forward": 4, "tokenizer.kind": "word",
         "training.average": 0, "training.ema": 0.9},
        translated, TRANSLATIONS,
    ),
    "character-translator": KeptRun(
        "luong", {**LIGHT, **RECURRENT, "tokenizer.kind": "character"}, translated,
        TRANSLATIONS,
    ),
    "language-model": KeptRun(
        "gpt-nano", {**STEPS, **TRANSFORMER, "model.context": 16, "decoding.max_tokens": 0},
        generated, TEXT,
    ),
    "recurrent-language-model": KeptRun(
        "lstm-nano",
        {**STEPS, **RECURRENT, "model.layers": 1, "tokenizer.kind": "byte-bpe",
         "tokenizer.size": 270, "decoding.max_tokens": 0},
        generated, TEXT,
    ),
    "text-classifier": KeptRun(
        "text-classifier",
        {**TRANSFORMER, "model.context": 32, "training.epochs": 3, "tokenizer.kind": "character",
         "training.learning_rate": 0.01, "training.warmup": 2},
        classified, LABELLED,
    ),
    "forecaster": KeptRun(
        "fibonacci-attention", {**STEPS, "data.terms": 40, "data.window": 3, "model.hidden": 4},
        lambda model: model.forecast([55.0, 89.0, 144.0]).tolist(),
    ),
    "node-classifier": KeptRun(
        "gat-cora",
        {"training.steps": 5, "training.checkpoint_every": 5, "training.seeds": 1,
         "model.heads": 1, "model.hidden": 4},
        nodes, GRAPH,
    ),
}  # fmt: skip


def rounded(value: Any) -> Any:
    """Return plain values whose numbers have six digits."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def train(name: str, folder: Path) -> None:
    """Train a kept run."""
    kept = KEPT[name]
    regard.train(kept.recipe, data=kept.data, set=kept.settings, out=folder, progress=False)
    shutil.rmtree(folder / "engines", ignore_errors=True)  # measured on this machine
    for picture in (path for end in ("html", "png", "svg") for path in folder.glob(f"*.{end}")):
        picture.unlink()


def main() -> None:
    """Make the runs of this format that are not there yet."""
    for name, kept in KEPT.items():
        folder = HERE / f"format-{FORMAT}" / name
        if not folder.exists():
            train(name, folder)
            outputs = rounded(kept.ask(regard.load(folder)))
            folder.with_name(f"{name}.json").write_text(json.dumps(outputs) + "\n", "utf-8")


if __name__ == "__main__":
    main()
