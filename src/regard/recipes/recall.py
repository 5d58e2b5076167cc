"""The task of the ladder: remember what was last said about a key.

A sequence gives pairs (key, value), keys in any order and again and again; the last item asks for
a key, and the answer is the value that came with it last. Content finds the pairs of that key;
which of them is the last, only order can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from regard.base.results import Attended
from regard.base.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class RecallTask:
    """How many keys and values there are, and how many pairs come before the question."""

    keys: int = 6
    values: int = 6
    pairs: int = 12

    @property
    def chance(self) -> float:
        """The accuracy of guessing."""
        return 1 / self.values

    def draw(
        self, batch: int, generator: torch.Generator
    ) -> tuple[Int[Tensor, "batch time 2"], Int[Tensor, "batch"]]:
        """Return items (key, value), the last with the value "asked for", and the answers."""
        keys = torch.randint(self.keys, (batch, self.pairs), generator=generator)
        values = torch.randint(self.values, (batch, self.pairs), generator=generator)
        asked_of = torch.randint(self.pairs, (batch, 1), generator=generator)
        asked = keys.gather(1, asked_of)  # so that it has been mentioned
        places = torch.arange(self.pairs)
        last = torch.where(keys == asked, places, -1).max(dim=1, keepdim=True).values
        question = torch.stack([asked, torch.full_like(asked, self.values)], dim=-1)
        items = torch.cat([torch.stack([keys, values], dim=-1), question], dim=1)
        return items, values.gather(1, last)[:, 0]

    def without_order(self, batch: int, generator: torch.Generator) -> float:
        """Return the best accuracy of one who knows the pairs but not their order."""
        items, answers = self.draw(batch, generator)
        keys, values = items[:, :-1, 0], items[:, :-1, 1]
        said = nn.functional.one_hot(values, self.values) * (keys == items[:, -1:, 0])[..., None]
        counts = said.sum(dim=1)  # how often each value was said of the key
        likely = counts.gather(1, answers[:, None])[:, 0] == counts.max(dim=1).values
        ties = (counts == counts.max(dim=1, keepdim=True).values).sum(dim=1)
        return float((likely / ties).mean())


class RecallModel(nn.Module):
    """A rung between word vectors and an answer: logits = W h_T + b."""

    def __init__(self, *, rung: nn.Module, task: RecallTask, input_dim: int, hidden: int):
        super().__init__()
        self.of_key = nn.Embedding(task.keys, input_dim)
        self.of_value = nn.Embedding(task.values + 1, input_dim)  # the last means: asked for
        self.rung = rung
        self.answer = nn.Linear(hidden, task.values)

    def forward(self, items: Int[Tensor, "batch time 2"]) -> Float[Tensor, "batch values"]:
        """Return the logits of the answer to the last item."""
        inputs = self.of_key(items[:, :, 0]) + self.of_value(items[:, :, 1])
        read: Attended = self.rung(inputs)
        logits: Tensor = self.answer(read.context[:, -1])
        return logits
