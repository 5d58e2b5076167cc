"""The labelled texts of a recipe: what is trained, validated and tested on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import SettingsError
from regard.corpora.labelled import (
    LabelledParts,
    LabelledText,
    hold_out,
    labels_of,
    lonely,
    read_labelled,
    require_labels,
)
from regard.settings.text_classification import LabelledSettings


@dataclass(frozen=True)
class LabelledSplits:
    """The parts of labelled data, the labels, and what looks doubtful."""

    train: list[LabelledText]
    valid: list[LabelledText]
    test: list[LabelledText]
    labels: list[str]
    doubts: list[str]

    def fingerprint(self) -> str:
        """Return a short digest, which tells one corpus from another."""
        digest = hashlib.blake2b(digest_size=16)
        for part in (self.train, self.valid, self.test):
            for one in part:
                digest.update(f"{one.label}\t{one.text}\n".encode())
        return digest.hexdigest()


def read_labelled_splits(settings: LabelledSettings) -> LabelledSplits:
    """Return the texts that the settings name."""
    if settings.train is None:
        raise SettingsError("There are no labelled texts to learn from: set data.train=FILE.")
    path = Path(settings.train)
    texts = read_labelled(path)
    labels = labels_of(texts, path=path)
    doubts = lonely(texts)
    parts = LabelledParts(texts, [])
    if settings.valid is None:
        parts = hold_out(texts, share=settings.hold_out, seed=settings.seed)
    else:
        parts = LabelledParts(texts, _others(Path(settings.valid), labels))
    train = parts.train
    if settings.share < 1:  # what is held out here is what is used
        train = hold_out(train, share=settings.share, seed=settings.seed + 1).valid
        labels_of(train, path=path)
    test = _others(Path(settings.test), labels) if settings.test else []
    return LabelledSplits(train, parts.valid or train, test, labels, doubts)


def _others(path: Path, labels: list[str]) -> list[LabelledText]:
    texts = read_labelled(path)
    require_labels(texts, labels, path=path)
    return texts
