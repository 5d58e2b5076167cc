"""Beams shared out by how much of what is required they have (Post & Vilar 2018, section 3).

Without it, outputs that put the required words off would always be more probable, and the words
would all come at the very end.
"""

from __future__ import annotations

import torch

from regard.base.shapes import Float, Int, Tensor
from regard.base.special_tokens import END, PAD
from regard.decoding.constraints.batch import Constrained, Standing
from regard.decoding.search import IMPOSSIBLE, Chosen, continuations, counting


def choose_by_allocation(
    values: Float[Tensor, "alive width vocab"],
    totals: Float[Tensor, "alive width"],
    constrained: Constrained,
    standing: Standing,
    *,
    beam: int,
) -> Chosen:
    """Return continuations of every bank in turn: its best, then its second best, and so on.

    A bank holds what has the same number of required symbols. Beside the most probable symbols,
    those that advance a required phrase are always candidates. An ending counts if it is among the
    `beam` best of those that have everything.
    """
    alive, width, _ = values.shape
    ends = totals + values[:, :, END]
    required = constrained.required
    best, symbols = continuations(values, beam=beam)
    wanted = required.advancing(standing.progress).view(alive, width, -1)
    known = (wanted[..., None] == symbols[:, :, None, :]).any(dim=3) | (wanted == PAD)
    gained = values.gather(2, wanted).masked_fill(known, IMPOSSIBLE)
    symbols = torch.cat([symbols, wanted], dim=2)
    every = (totals[:, :, None] + torch.cat([best, gained], dim=2)).flatten(1)
    of_row = torch.arange(alive * width).repeat_interleave(symbols.shape[2])
    after = required.follow(standing.progress.select(of_row), symbols.flatten())
    banks = required.reached(after).view(every.shape)
    order = _in_turn(every, banks)[:, :beam]
    complete = required.need(after).view(every.shape) == 0
    rivals = every.masked_fill(~complete, IMPOSSIBLE)
    return Chosen(
        totals=every.gather(1, order),
        parents=order // symbols.shape[2],
        symbols=symbols.flatten(1).gather(1, order),
        ends=counting(ends, rivals, beam=beam),
    )


def _in_turn(
    values: Float[Tensor, "alive candidates"], banks: Int[Tensor, "alive candidates"]
) -> Int[Tensor, "alive candidates"]:
    """Return the order: the best of each bank, then the second best of each; impossible ones last.

    Within a turn the most probable come first.
    """
    by_value = values.sort(dim=1, descending=True, stable=True).indices
    ordered = banks.gather(1, by_value)
    by_bank = ordered.sort(dim=1, stable=True)
    places = torch.arange(values.shape[1]).expand_as(by_value)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[:, 1:] = by_bank.values[:, 1:] != by_bank.values[:, :-1]
    first = torch.where(begins, places, 0).cummax(dim=1).values
    turns = torch.empty_like(places).scatter_(1, by_bank.indices, places - first)
    impossible = values.gather(1, by_value) == IMPOSSIBLE
    turns = turns.masked_fill(impossible, values.shape[1])
    return by_value.gather(1, turns.sort(dim=1, stable=True).indices)
