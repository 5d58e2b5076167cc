"""Dynamic beam allocation: beams divided by required tokens met (Post & Vilar 2018, section 3).

Otherwise hypotheses that postpone the required words would always be more probable, and all of the
words would come at the very end.
"""

from __future__ import annotations

import torch

from regard.base.shapes import Float, Int, Tensor
from regard.base.special_tokens import END, PAD
from regard.decoding.constraints.batch import BatchConstraints, ConstraintState
from regard.decoding.search import IMPOSSIBLE, Chosen, continuations, counting


def choose_by_allocation(
    values: Float[Tensor, "alive width vocab"],
    totals: Float[Tensor, "alive width"],
    constraints: BatchConstraints,
    state: ConstraintState,
    *,
    beam: int,
) -> Chosen:
    """Return the best continuations for each number of required tokens met.

    Continuations that have met the same number of required tokens form a group, and the groups
    take turns: the best of each, then the second best of each, and so on. Tokens that advance a
    required phrase are always candidates. An ending counts if it is among the `beam` best
    of those that have met everything.
    """
    alive, width, _ = values.shape
    ends = totals + values[:, :, END]
    required = constraints.required
    best, tokens = continuations(values, beam=beam)
    wanted = required.advancing(state.required).view(alive, width, -1)
    known = (wanted[..., None] == tokens[:, :, None, :]).any(dim=3) | (wanted == PAD)
    gained = values.gather(2, wanted).masked_fill(known, IMPOSSIBLE)
    tokens = torch.cat([tokens, wanted], dim=2)
    every = (totals[:, :, None] + torch.cat([best, gained], dim=2)).flatten(1)
    of_row = torch.arange(alive * width).repeat_interleave(tokens.shape[2])
    after = required.follow(state.required.select(of_row), tokens.flatten())
    groups = required.met_tokens(after).view(every.shape)
    order = _in_turn(every, groups)[:, :beam]
    complete = required.need(after).view(every.shape) == 0
    rivals = every.masked_fill(~complete, IMPOSSIBLE)
    return Chosen(
        totals=every.gather(1, order),
        parents=order // tokens.shape[2],
        tokens=tokens.flatten(1).gather(1, order),
        ends=counting(ends, rivals, beam=beam),
    )


def _in_turn(
    values: Float[Tensor, "alive candidates"], groups: Int[Tensor, "alive candidates"]
) -> Int[Tensor, "alive candidates"]:
    """Return the order of turns: the best of each group, then the second best of each, ...

    Within a turn the most probable come first; impossible candidates are last.
    """
    by_value = values.sort(dim=1, descending=True, stable=True).indices
    ordered = groups.gather(1, by_value)
    by_group = ordered.sort(dim=1, stable=True)
    places = torch.arange(values.shape[1]).expand_as(by_value)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[:, 1:] = by_group.values[:, 1:] != by_group.values[:, :-1]
    first = torch.where(begins, places, 0).cummax(dim=1).values
    turns = torch.empty_like(places).scatter_(1, by_group.indices, places - first)
    impossible = values.gather(1, by_value) == IMPOSSIBLE
    turns = turns.masked_fill(impossible, values.shape[1])
    return by_value.gather(1, turns.sort(dim=1, stable=True).indices)
