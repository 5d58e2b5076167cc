"""Beam search, with a stopping rule that is provably right under every length penalty.

A finished hypothesis scores log p / divisor(length), less a penalty for what was not covered. Both
log p and that penalty only lower a score, so a live hypothesis of log-probability L can never score
better than L / divisor(limit). A sentence is done when its n-th best finished hypothesis is at
least as good as that bound for every live one.

Totals, symbols and back-pointers are tensors over all sentences; sentences that are done leave.
"""

from __future__ import annotations

from typing import TypeVar

import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN
from regard.decoding.constraints.allocation import choose_by_allocation
from regard.decoding.rules import Rules, Written
from regard.decoding.search import (
    IMPOSSIBLE,
    BackPointers,
    Chosen,
    LengthPenalty,
    choose,
    choose_diverse,
)


class Finished:
    """The `count` best endings of each sentence, for each group of its beams.

    An ending is a score, a log-probability, and the step and row at which the prefix stood.
    """

    def __init__(
        self,
        limits: Int[Tensor, "sentences"],
        *,
        count: int,
        groups: int = 1,
        penalty: LengthPenalty,
    ):
        shape = (len(limits), groups, count)
        self.penalty = penalty
        self.groups = groups
        self.divisors = penalty.divisor(limits)  # of the longest output that may come
        self.scores = torch.full(shape, IMPOSSIBLE, dtype=torch.float64)
        self.totals = torch.full(shape, IMPOSSIBLE)
        self.places = torch.zeros(*shape, 2, dtype=torch.long)  # step, row

    def add(
        self,
        alive: Int[Tensor, "alive"],
        chosen: Chosen,
        *,
        step: int,
        missed: Float[Tensor, "alive width"] | None = None,
    ) -> None:
        """Take in the endings of a step, if they are better than what is there."""
        ends = chosen.ends
        if not bool((ends > IMPOSSIBLE).any()):
            return
        scores = ends.double() / self.penalty.divisor(torch.tensor(step + 1))
        scores = scores if missed is None else scores + missed
        rows = torch.arange(ends.numel()).view(ends.shape)
        places = torch.stack([torch.full_like(rows, step), rows], dim=2)
        by_group = (len(ends), self.groups, -1)
        every = torch.cat([self.scores[alive], scores.view(by_group)], dim=2)
        totals = torch.cat([self.totals[alive], ends.view(by_group)], dim=2)
        places = torch.cat([self.places[alive], places.view(*by_group, 2)], dim=2)
        # Equal scores keep their order: what was found first stays first.
        order = every.sort(dim=2, descending=True, stable=True).indices
        order = order[:, :, : self.scores.shape[2]]
        self.scores[alive] = every.gather(2, order)
        self.totals[alive] = totals.gather(2, order)
        self.places[alive] = places.gather(2, order[..., None].expand(-1, -1, -1, 2))

    def is_done(
        self, alive: Int[Tensor, "alive"], totals: Float[Tensor, "alive beam"]
    ) -> Bool[Tensor, "alive"]:
        """Return which sentences have nothing live that could still enter their list."""
        best = totals.view(len(alive), self.groups, -1).amax(dim=2)
        bound = best / self.divisors[alive, None]
        return (self.scores[alive, :, -1] >= bound).all(dim=1)

    def hypotheses(self, trail: BackPointers, *, n_best: int) -> list[list[Hypothesis]]:
        """Read the hypotheses back, best first; what two groups found counts once."""
        found = []
        for scores, totals, places in zip(
            self.scores.flatten(1), self.totals.flatten(1), self.places.flatten(1, 2), strict=True
        ):
            best: dict[tuple[int, ...], Hypothesis] = {}
            for index in scores.sort(descending=True, stable=True).indices.tolist():
                if scores[index] == IMPOSSIBLE or len(best) == n_best:
                    break
                step, row = places[index].tolist()
                tokens, attention = trail.read(step=step, row=row)
                hypothesis = Hypothesis(
                    tokens, float(totals[index]), float(scores[index]), attention
                )
                best.setdefault(tokens, hypothesis)
            found.append(list(best.values()))
        return found


State = TypeVar("State")


@torch.inference_mode()
def beam_search(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    beam: int,
    n_best: int = 1,
    penalty: LengthPenalty | None = None,
    coverage: float = 0.0,
    groups: int = 1,
    diversity: float = 0.0,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each sentence, best first.

    With several `groups` the beams are searched in turn, and a symbol loses `diversity` for every
    time an earlier group has just chosen it (Vijayakumar et al. 2018, algorithm 1); `n_best` may
    then be fewer, since groups may find the same. A sentence whose constraints cannot hold has no
    hypotheses.
    """
    if n_best > beam:
        raise ValueError(f"n_best ({n_best}) must not exceed beam ({beam})")
    if beam % groups:
        raise ValueError(f"beam ({beam}) must be divisible by groups ({groups})")
    looks = with_weights or coverage > 0
    trail = BackPointers(keep_weights=with_weights)
    finished = Finished(
        rules.limits,
        count=min(n_best, beam // groups),
        groups=groups,
        penalty=penalty or LengthPenalty(),
    )
    state, written = model.start(model.encode(source, mask)), rules.start()
    if groups > 1:  # each group begins with a prefix of its own
        rows = written.sentences.repeat_interleave(groups)
        state, written = model.select(state, rows), written.select(rows)
    symbols = torch.full_like(written.sentences, BEGIN)
    alive = torch.arange(len(source))
    totals = torch.zeros(len(source), groups)  # [sentences alive, live prefixes of each]
    covered = torch.zeros(len(symbols), mask.shape[1]) if coverage else None
    while len(alive):
        width = totals.shape[1]
        step = model.step(symbols, state, with_weights=looks)
        trail.look(step.weights)
        values = rules.log_probabilities(step.logits, written)
        chosen = _choose(values, totals, written, rules, beam=beam, groups=groups, by=diversity)
        missed = None
        if covered is not None and step.weights is not None:
            covered = covered + step.weights
            missed = coverage * _missed(covered, mask[written.sentences]).view(totals.shape)
        finished.add(alive, chosen, step=trail.steps - 1, missed=missed)
        going = (~finished.is_done(alive, chosen.totals)).nonzero().squeeze(1)
        if not len(going):
            break
        rows = (going[:, None] * width + chosen.parents[going]).flatten()
        symbols = chosen.symbols[going].flatten()
        state = step.state if _unchanged(rows, len(values)) else model.select(step.state, rows)
        covered = None if covered is None else covered[rows]
        written = rules.follow(written.select(rows), symbols)
        trail.follow(rows, symbols)
        totals, alive = chosen.totals[going], alive[going]
    return finished.hypotheses(trail, n_best=n_best)


def _choose(
    values: Tensor,
    totals: Tensor,
    written: Written,
    rules: Rules,
    *,
    beam: int,
    groups: int,
    by: float,
) -> Chosen:
    """Choose how the live prefixes go on: the plain way, by groups, or by constraints met."""
    values = values.view(*totals.shape, -1)
    if groups > 1:
        return choose_diverse(values, totals, beam=beam, groups=groups, strength=by)
    constrained, standing = rules.constrained, written.standing
    if constrained is not None and standing is not None and constrained.requires:
        return choose_by_allocation(values, totals, constrained, standing, beam=beam)
    return choose(values, totals, beam=beam)


def _missed(covered: Tensor, mask: Tensor) -> Tensor:
    """Return sum_j log(min(sum_i p_ij, 1)) (Wu et al. 2016, eq. 14), never below log of 1e-6."""
    return (covered.clamp(1e-6, 1.0).log() * mask).sum(dim=1)


def _unchanged(rows: Tensor, count: int) -> bool:
    return len(rows) == count and torch.equal(rows, torch.arange(count))
