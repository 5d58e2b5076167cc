"""The parts of every search: candidates, selection, back-pointers, limits, length penalty."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import NonFiniteError
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN, END, PAD
from regard.compute.device import HOST, doubled, on_host

IMPOSSIBLE = float("-inf")


def require_numbers(scores: Float[Tensor, "*shape"]) -> None:
    """Refuse scores of which one is NaN: no comparison with it is ever true."""
    if bool(scores.isnan().any()):
        raise NonFiniteError(
            "the scores of the model are not numbers (NaN). Its weights are damaged, or its "
            "training has diverged: train it again with a lower training.learning_rate."
        )


def next_log_probabilities(
    logits: Float[Tensor, "rows vocab"], *, end_only: Bool[Tensor, "rows"]
) -> Float[Tensor, "rows vocab"]:
    """Return log p of every next token: never padding or begin, and at the limit only the end.

    The end mark keeps the probability that the model gives it, so that a forced end is not free.
    """
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)
    looks = on_host(logits)  # elsewhere that would cost a pause: searches look at their totals
    if looks:
        require_numbers(log_probabilities[:, PAD])  # one NaN makes a row of them
    log_probabilities[:, PAD] = IMPOSSIBLE
    log_probabilities[:, BEGIN] = IMPOSSIBLE
    if not looks or bool(end_only.any()):
        ends = log_probabilities[:, END].clone()
        log_probabilities.masked_fill_(end_only[:, None], IMPOSSIBLE)
        log_probabilities[:, END] = ends
    return log_probabilities


# Columns of a chunk: about the root of a vocabulary's size, so that both stages are short.
CHUNK = 64


def top_of_rows(
    values: Float[Tensor, "rows columns"], count: int
) -> tuple[Float[Tensor, "rows best"], Int[Tensor, "rows best"]]:
    """Return the `count` greatest values of each row, greatest first, and their columns.

    The k greatest values lie in the k chunks with the greatest maxima. Maxima are found at the
    speed of memory; sorting, which is slow, is left for these chunks.
    """
    columns = values.shape[1]
    count = min(count, columns)
    chunks = columns // CHUNK
    if chunks <= 2 * count:
        best, places = values.topk(count, dim=1)
        return best, places
    body = values[:, : chunks * CHUNK].reshape(-1, chunks, CHUNK)
    held = body.amax(dim=2).topk(count, dim=1).indices  # [rows, count]
    near = body.gather(1, held[:, :, None].expand(-1, -1, CHUNK)).flatten(1)
    tail = values[:, chunks * CHUNK :]
    best, places = torch.cat([near, tail], dim=1).topk(count, dim=1)
    inside = places.clamp(max=count * CHUNK - 1)
    in_body = held.gather(1, inside // CHUNK) * CHUNK + inside % CHUNK
    in_tail = places - count * CHUNK + chunks * CHUNK
    return best, torch.where(places < count * CHUNK, in_body, in_tail)


class Chosen(NamedTuple):
    """The live prefixes after a step, and the endings that count."""

    totals: Float[Tensor, "alive beam"]
    parents: Int[Tensor, "alive beam"]
    tokens: Int[Tensor, "alive beam"]
    ends: Float[Tensor, "alive width"]
    """Log-probability of ending each prefix here; minus infinity where the ending does not count"""


def choose(
    values: Float[Tensor, "alive width vocab"], totals: Float[Tensor, "alive width"], *, beam: int
) -> Chosen:
    """Return the best continuations of each sentence.

    An ending counts if it is among the `beam` best continuations of its sentence. The number of
    live prefixes stays the same, so an early ending takes nothing away from the search.
    """
    ends = totals + values[:, :, END]
    best, tokens = continuations(values, beam=beam)
    flat = (totals[:, :, None] + best).flatten(1)
    kept, order = flat.topk(min(beam, flat.shape[1]), dim=1)
    return Chosen(
        totals=kept,
        parents=order // best.shape[2],
        tokens=tokens.flatten(1).gather(1, order),
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
    """Return the best continuations of each group; tokens of earlier groups cost later ones.

    The cost affects what is chosen, but is not part of any log-probability.
    """
    width, found = totals.shape[1] // groups, []
    cost = values.new_zeros(len(values), 1, values.shape[2])
    for group in range(groups):
        mine = slice(group * width, (group + 1) * width)
        part = choose(values[:, mine] - cost, totals[:, mine], beam=beam // groups)
        paid = cost[:, 0].gather(1, part.tokens)
        found.append(part._replace(totals=part.totals + paid, parents=part.parents + group * width))
        cost = cost.scatter_add(2, part.tokens[:, None], torch.full_like(paid, strength)[:, None])
    return Chosen(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))


def continuations(
    values: Float[Tensor, "alive width vocab"], *, beam: int
) -> tuple[Float[Tensor, "alive width best"], Int[Tensor, "alive width best"]]:
    """Return the best tokens after each prefix without the end mark, which is banned in place."""
    values[:, :, END] = IMPOSSIBLE
    best, tokens = top_of_rows(values.flatten(0, 1), beam)
    shape = (*values.shape[:2], -1)
    return best.view(shape), tokens.view(shape)


def counting(
    ends: Float[Tensor, "alive width"], rivals: Float[Tensor, "alive best"], *, beam: int
) -> Float[Tensor, "alive width"]:
    """Return the endings that are among the `beam` best of themselves and their rivals."""
    both = torch.cat([ends, rivals], dim=1)
    order = both.topk(min(beam, both.shape[1]), dim=1).indices
    counts = torch.zeros_like(both, dtype=torch.bool).scatter_(1, order, True)
    return ends.masked_fill(~counts[:, : ends.shape[1]], IMPOSSIBLE)


class BackPointers:
    """The token of each row at every step of a search, and the row that it continues.

    Outputs are read back when the search is over, so no step copies prefixes.
    """

    def __init__(self, *, keep_weights: bool):
        self.keep_weights = keep_weights
        self.steps = 0
        self._parents: list[Tensor] = []
        self._tokens: list[Tensor] = []
        self._weights: list[Tensor | None] = []

    def add_weights(self, weights: Float[Tensor, "rows source"] | None) -> None:
        """Begin a step with the attention weights of its rows."""
        self._weights.append(weights if self.keep_weights else None)
        self.steps += 1

    def add(self, rows: Int[Tensor, "chosen"], tokens: Int[Tensor, "chosen"]) -> None:
        """Add the rows of the next step: which rows they continue, and with which tokens."""
        self._parents.append(rows)
        self._tokens.append(tokens)

    @cached_property
    def _written(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Parents and tokens of each step, when the search is over: one pause for all of them."""
        sizes = [len(rows) for rows in self._parents]
        if not sizes:
            return []
        both = (
            torch.split(torch.cat(parts).to(HOST), sizes) for parts in (self._parents, self._tokens)
        )
        return [(p.numpy(), t.numpy()) for p, t in zip(*both, strict=True)]

    def read(self, *, step: int, row: int) -> tuple[tuple[int, ...], Tensor | None]:
        """Return the tokens of a row at the beginning of a step, and its attention.

        The attention has a row for each token and one for the token of that step.
        """
        tokens, rows = [], [row]
        for number in range(step - 1, -1, -1):
            parents, written = self._written[number]
            tokens.append(int(written[row]))
            row = int(parents[row])
            rows.append(row)
        seen = [
            weights[row]
            for weights, row in zip(self._weights, reversed(rows), strict=False)
            if weights is not None
        ]
        return tuple(reversed(tokens)), torch.stack(seen).to(HOST) if seen else None


def length_limits(
    sources: Int[Tensor, "batch"], *, ratio: float, extra: int, most: int | None = None
) -> Int[Tensor, "batch"]:
    """Return the most tokens of each output by those of its source; both count the end mark.

    `most` does not count it.
    """
    limits = (sources * ratio).long() + extra
    return limits if most is None else limits.clamp(max=most + 1)


def least_lengths(
    sources: Int[Tensor, "batch"], *, ratio: float, least: int
) -> Int[Tensor, "batch"]:
    """Return the fewest tokens of each output by those of its source; both count the end mark.

    `least` does not count it.
    """
    return ((sources - 1) * ratio).ceil().long().clamp(min=least) + 1


DIVISORS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "none": lambda length, alpha: length**0.0,
    "average": lambda length, alpha: length**alpha,
    "wu": lambda length, alpha: ((5 + length) / 6) ** alpha,  # Wu et al. 2016, eq. 14
}


@dataclass(frozen=True)
class LengthPenalty:
    """log p / divisor(length), where the length counts the end mark."""

    kind: str = "average"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in DIVISORS:
            raise ValueError(f"length penalty ({self.kind}) must be one of: {', '.join(DIVISORS)}")
        if not self.alpha >= 0:
            raise ValueError(f"length penalty: alpha ({self.alpha}) must not be negative")

    def divisor(self, lengths: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return the divisors of the log-probabilities of outputs of these lengths."""
        return DIVISORS[self.kind](doubled(lengths), self.alpha)
