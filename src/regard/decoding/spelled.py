"""The spellings of a batch of sentences, with the states of all of them numbered together."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.decoding.candidates import IMPOSSIBLE
from regard.decoding.letters import DEAD
from regard.decoding.spelling import FAR, Spelling


class Spelled:
    """Follows the spelling of each row; a sentence without one may spell anything."""

    def __init__(self, spellings: Sequence[Spelling | None], *, vocab: int):
        free = None if all(spellings) else Spelling(["?"] * vocab)
        each = [some or free for some in spellings]
        different = list({id(some): some for some in each if some is not None}.values())
        self.any = any(spellings)
        sizes = [len(some.following) for some in different]
        first = {id(some): sum(sizes[:n]) for n, some in enumerate(different)}
        self.starts = torch.tensor([first[id(some)] + DEAD + 1 for some in each])
        self._following = _joined([some.following + first[id(some)] for some in different])
        self._steps = _joined([some.steps for some in different])
        self._glued = torch.stack([some.glued for some in different])
        self._of_state = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))

    def follow(
        self, states: Int[Tensor, "rows"], symbols: Int[Tensor, "rows"]
    ) -> Int[Tensor, "rows"]:
        """Return the state of each row after its next symbol."""
        return self._following[states, symbols].long() if self.any else states

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        states: Int[Tensor, "rows"],
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Ban symbols after which no allowed output can be finished in time."""
        if self.any:
            values.masked_fill_(self._steps[states] > remaining[:, None], IMPOSSIBLE)

    def ban_glued(
        self,
        values: Float[Tensor, "rows vocab"],
        states: Int[Tensor, "rows"],
        *,
        after: Bool[Tensor, "rows"],
    ) -> None:
        """Ban symbols that would lengthen the last word, in these rows."""
        if self.any and bool(after.any()):
            values.masked_fill_(self._glued[self._of_state[states]] & after[:, None], IMPOSSIBLE)

    def needs(self, states: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
        """Return how many symbols, end mark included, must at least follow."""
        if not self.any:
            return torch.ones_like(states)
        return self._steps[states].amin(dim=1).long() + 1

    def is_dead(self, states: Int[Tensor, "rows"]) -> bool:
        """Return whether nothing can be finished from here."""
        return self.any and bool((self._steps[states].amin(dim=1) >= FAR).any())


def _joined(tables: Sequence[Tensor]) -> Tensor:
    return tables[0] if len(tables) == 1 else torch.cat(list(tables))
