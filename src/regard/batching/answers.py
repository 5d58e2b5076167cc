"""Batches of prompts with answers, of which only the answers are to be predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.base.shapes import Bool, Int, Tensor


class AnswerIds(NamedTuple):
    """A prompt and its answer as one row of ids, and where the answer begins."""

    ids: Sequence[int]
    answer: int


@dataclass(frozen=True)
class AnswerBatch:
    """Rows padded at their ends; the mask says which following symbols belong to an answer."""

    tokens: Int[Tensor, "batch time"]
    expected: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]
    real: int

    @property
    def target_tokens(self) -> int:
        """How many symbols are to be predicted."""
        return int(self.mask.sum())

    @property
    def padding_share(self) -> float:
        """The share of positions that hold no symbol."""
        return 1 - self.real / self.tokens.numel()


def answer_ids(prompt: Sequence[int], answer: Sequence[int], *, context: int) -> AnswerIds:
    """Join a prompt and its answer; what is too long loses the beginning of the prompt first."""
    kept = list(answer)[:context]
    before = list(prompt)[-(context + 1 - len(kept)) :]
    return AnswerIds([*before, *kept], len(before))


def collate_answers(examples: Sequence[AnswerIds]) -> AnswerBatch:
    """Return examples as one batch."""
    rows = [torch.tensor(one.ids) for one in examples]
    places = [
        torch.arange(1, len(row)) >= one.answer for row, one in zip(rows, examples, strict=True)
    ]
    return AnswerBatch(
        tokens=pad_sequence([row[:-1] for row in rows], batch_first=True),
        expected=pad_sequence([row[1:] for row in rows], batch_first=True),
        mask=pad_sequence(places, batch_first=True),
        real=sum(len(row) - 1 for row in rows),
    )
