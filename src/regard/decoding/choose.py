"""Which continuations of the live prefixes a beam search goes on with, and which end here."""

from __future__ import annotations

from typing import NamedTuple

import torch

from regard.base.shapes import Float, Int, Tensor
from regard.base.special_tokens import END
from regard.decoding.candidates import IMPOSSIBLE
from regard.decoding.top import top_of_rows


class Chosen(NamedTuple):
    """The live prefixes after a step, and the endings that count."""

    totals: Float[Tensor, "alive beam"]
    parents: Int[Tensor, "alive beam"]
    symbols: Int[Tensor, "alive beam"]
    ends: Float[Tensor, "alive width"]
    """Log-probability of ending each prefix here; minus infinity where the ending does not count"""


def choose(
    values: Float[Tensor, "alive width vocab"], totals: Float[Tensor, "alive width"], *, beam: int
) -> Chosen:
    """Return the best continuations of each sentence.

    An ending counts if it is among the `beam` best continuations of its sentence. As many prefixes
    go on as before, so an early ending takes nothing away from the search.
    """
    ends = totals + values[:, :, END]
    best, symbols = continuations(values, beam=beam)
    flat = (totals[:, :, None] + best).flatten(1)
    kept, order = flat.topk(min(beam, flat.shape[1]), dim=1)
    return Chosen(
        totals=kept,
        parents=order // best.shape[2],
        symbols=symbols.flatten(1).gather(1, order),
        ends=counting(ends, kept, beam=beam),
    )


def choose_diverse(
    values: Float[Tensor, "alive width vocab"],
    totals: Float[Tensor, "alive width"],
    *,
    beam: int,
    groups: int,
    strength: float,
) -> Chosen:
    """Choose for one group after the other; what earlier ones chose costs the later ones.

    The cost decides what is chosen and is no part of any log-probability.
    """
    width, found = totals.shape[1] // groups, []
    cost = torch.zeros(len(values), 1, values.shape[2])
    for group in range(groups):
        mine = slice(group * width, (group + 1) * width)
        part = choose(values[:, mine] - cost, totals[:, mine], beam=beam // groups)
        paid = cost[:, 0].gather(1, part.symbols)
        found.append(part._replace(totals=part.totals + paid, parents=part.parents + group * width))
        cost = cost.scatter_add(2, part.symbols[:, None], torch.full_like(paid, strength)[:, None])
    return Chosen(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))


def continuations(
    values: Float[Tensor, "alive width vocab"], *, beam: int
) -> tuple[Float[Tensor, "alive width best"], Int[Tensor, "alive width best"]]:
    """Return the best symbols after each prefix, the end mark left out; it is banned in place."""
    values[:, :, END] = IMPOSSIBLE
    best, symbols = top_of_rows(values.flatten(0, 1), beam)
    shape = (*values.shape[:2], -1)
    return best.view(shape), symbols.view(shape)


def counting(
    ends: Float[Tensor, "alive width"], rivals: Float[Tensor, "alive best"], *, beam: int
) -> Float[Tensor, "alive width"]:
    """Return the endings that are among the `beam` best of themselves and their rivals."""
    both = torch.cat([ends, rivals], dim=1)
    order = both.topk(min(beam, both.shape[1]), dim=1).indices
    counts = torch.zeros_like(both, dtype=torch.bool).scatter_(1, order, True)
    return ends.masked_fill(~counts[:, : ends.shape[1]], IMPOSSIBLE)
