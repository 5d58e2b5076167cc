"""Looking into a memory with any of the scores: scores -> weights -> context."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from regard.attention.repeated import repeated
from regard.attention.scores import Score
from regard.attention.weights import attend
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Int, Tensor


class Memory(NamedTuple):
    """The source as attention sees it: prepared keys, values, and which of them are real."""

    keys: Float[Tensor, "batch source prepared_dim"]
    values: Float[Tensor, "batch source value_dim"]
    mask: Bool[Tensor, "batch source"]

    def select(self, rows: Int[Tensor, "chosen"]) -> Memory:
        """Return these rows of the batch, in this order."""
        return Memory(*(part.index_select(0, rows) for part in self))

    def repeated(self) -> Memory:
        """Return the same memory for a loop of many lookups, which then train faster."""
        return Memory(repeated(self.keys), repeated(self.values), self.mask)


class Lookup(nn.Module):
    """Attention with one score over a memory that is prepared once and asked many times."""

    def __init__(self, *, score: Score):
        super().__init__()
        self.score = score

    @property
    def context_dim(self) -> int:
        """The width of the context."""
        return self.score.value_dim

    def prepare(
        self, memory: Float[Tensor, "batch source key_dim"], mask: Bool[Tensor, "batch source"]
    ) -> Memory:
        """Do what depends on the memory alone."""
        return Memory(self.score.prepare(memory), self.score.values(memory), mask)

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        memory: Memory,
        *,
        with_weights: bool = False,
    ) -> Attended:
        """Return a context for each query, and the weights behind it if asked."""
        scores = self.score(query, memory.keys)
        return attend(scores, values=memory.values, mask=memory.mask, with_weights=with_weights)
