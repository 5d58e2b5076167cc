"""Text as ids in files that every toolkit reads, and the training that peers are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SPECIALS = 4

Pair = tuple[list[int], list[int]]


def write_pieces(path: Path, rows: Iterable[Sequence[int]]) -> None:
    """Write ids as words: what a piece looks like does not matter to the speed."""
    lines = (" ".join(f"p{number}" for number in row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))


def read_pieces(path: Path) -> list[list[int]]:
    """Return the ids that `write_pieces` wrote."""
    with path.open() as lines:
        return [[int(word[1:]) for word in line.split()] for line in lines]


def read_pairs(work: Path) -> list[Pair]:
    """Return the sentence pairs as ids, without begin and end marks."""
    sides = (read_pieces(work / f"train.{side}") for side in ("en", "de"))
    return list(zip(*sides, strict=True))


def write_vocabulary(path: Path, size: int) -> None:
    """Write the pieces of a vocabulary as eole and OpenNMT-py read them."""
    path.write_text("".join(f"p{number}\t1\n" for number in range(SPECIALS, size)))


def corpus_settings(work: Path, *, size: int) -> dict[str, Any]:
    """Return where the corpus is, in the words that eole and OpenNMT-py share."""
    paths = {"path_src": str(work / "train.en"), "path_tgt": str(work / "train.de")}
    return {
        "data": {"corpus_1": paths | {"transforms": [], "weight": 1}},
        "src_vocab_size": size,
        "tgt_vocab_size": size,
        "vocab_size_multiple": 1,
        "overwrite": True,
        "seed": 1,
    }


def training_settings(*, updates: int, side_tokens: int, dropout: float) -> dict[str, Any]:
    """Return how to train, without validation or checkpoints, in the words that both share."""
    return {
        "train_steps": updates,
        "save_checkpoint_steps": 10 * updates,
        "valid_steps": 10 * updates,
        "batch_type": "tokens",
        "batch_size": side_tokens,
        "normalization": "tokens",
        "num_workers": 0,
        "world_size": 1,
        "gpu_ranks": [],
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": 0.001,
        "max_grad_norm": 1.0,
        "dropout": [dropout],
    }
