"""The published table of English-German systems, beside runs of one's own.

WMT 2014 (newstest2014), as lectures quote it: the Transformer (Vaswani et al. 2017), GNMT with a
mixture of experts (Shazeer et al. 2017), ConvS2S (Gehring et al. 2017) and GNMT (Wu et al. 2016),
all against the phrase-based system MOSES.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from regard.base.errors import RunError
from regard.base.files import read_json
from regard.runs.run import Run
from regard.training.progress import read_metrics

MOSES = 20.6  # BLEU of the system that all are compared with


@dataclass(frozen=True)
class PublishedSystem:
    """A row of the table: BLEU on WMT14 English-German, and what its training took."""

    name: str
    bleu: float
    days: int
    gpus: int
    recipe: str
    """The recipe of the same architecture here; empty if there is none."""
    note: str
    """What of it can be repeated here, and what cannot."""

    @property
    def above_moses(self) -> float:
        """The difference from MOSES."""
        return round(self.bleu - MOSES, 1)

    @property
    def gpu_days(self) -> int:
        """The training as days of one GPU."""
        return self.days * self.gpus

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        more = {"above_moses": self.above_moses, "gpu_days": self.gpu_days}
        return asdict(self) | more


PUBLISHED = (
    PublishedSystem(
        "Transformer, large", 28.4, 3, 8, "transformer-big",
        "the same architecture; not trained here on WMT14",
    ),
    PublishedSystem(
        "GNMT + mixture of experts", 26.0, 1, 64, "",
        "experts are here in Transformers (model.experts), not between LSTM layers",
    ),
    PublishedSystem(
        "ConvS2S", 25.1, 18, 1, "convolutional-tiny",
        "a convolutional encoder only; the decoder here is a Transformer's",
    ),
    PublishedSystem(
        "Transformer, small", 24.9, 1, 1, "transformer-base",
        "the same kind of model; not trained here on WMT14",
    ),
    PublishedSystem(
        "GNMT", 24.6, 1, 96, "gnmt-small",
        "the same parts with 4 layers in place of 8; not trained here on WMT14",
    ),
)  # fmt: skip
WARNING = (
    "The published systems were tested on WMT14 English-German, your runs on their own test parts: "
    "BLEU of different tests cannot be compared."
)


@dataclass(frozen=True)
class OwnRun:
    """What a run of one's own has reached on its own test, and in how long."""

    name: str
    bleu: float | None
    minutes: float
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def own_runs(folders: Sequence[Path]) -> list[OwnRun]:
    """Return what translators of one's own have reached; refuse runs of other tasks."""
    return [_own_run(folder) for folder in folders]


def _own_run(folder: Path) -> OwnRun:
    run = Run.open(folder)
    if run.task != "translate":
        raise RunError(
            f'{folder} is a run of the task "{run.task}"; the published table is about translators.'
        )
    path = run.folder / "test.json"
    bleu = read_json(path, owner="run").get("bleu", {}) if path.is_file() else {}
    seconds = [row["seconds"] for row in read_metrics(run.metrics) if "seconds" in row]
    return OwnRun(
        name=str(folder),
        bleu=bleu.get("value"),
        minutes=max(seconds, default=0.0) / 60,
        signature=bleu.get("signature", ""),
    )
