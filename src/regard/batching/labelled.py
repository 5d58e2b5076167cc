"""Batches of texts with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from regard.base.shapes import Bool, Int, Tensor


class LabelledIds(NamedTuple):
    """A text as ids, and the number of its label."""

    ids: Sequence[int]
    label: int


@dataclass(frozen=True)
class LabelledBatch:
    """Texts padded at their ends, and the numbers of their labels."""

    tokens: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]
    labels: Int[Tensor, "batch"]

    @property
    def target_tokens(self) -> int:
        """How many labels are to be predicted."""
        return len(self.labels)

    @property
    def padding_share(self) -> float:
        """The share of positions that hold no token."""
        return 1 - float(self.mask.float().mean())


def collate_labelled(examples: Sequence[LabelledIds]) -> LabelledBatch:
    """Return examples as one batch."""
    rows = [torch.tensor(one.ids) for one in examples]
    return LabelledBatch(
        tokens=pad_sequence(rows, batch_first=True),
        mask=pad_sequence([torch.ones_like(row, dtype=torch.bool) for row in rows], True),
        labels=torch.tensor([one.label for one in examples]),
    )
