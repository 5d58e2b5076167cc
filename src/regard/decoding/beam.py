"""Beam search with a stopping rule that is provably right under every length penalty.

The score of a finished hypothesis is log p / divisor(length), minus a coverage penalty. Both log p
and that penalty only lower a score, so a live hypothesis of log-probability L can never score
better than L / divisor(limit). A sentence is done when its n-th best finished hypothesis is at
least as good as that bound for every live one.

Totals, tokens and back-pointers are tensors over all sentences; finished sentences are removed.
"""

from dataclasses import dataclass, field
from typing import TypeVar

import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN
from regard.compute.device import HOST, finest, moved, on_host
from regard.decoding import search
from regard.decoding.constraints.batch import choose_by_allocation
from regard.decoding.rules import Rules, Written


@dataclass(frozen=True, kw_only=True)
class BeamOptions:
    """The size of a beam search, and what it prefers."""

    beam: int
    n_best: int = 1
    penalty: search.LengthPenalty = field(default_factory=search.LengthPenalty)
    coverage: float = 0.0
    """Weight of the coverage penalty (Wu et al. 2016)."""
    groups: int = 1
    """Groups of beams that are searched in turn (Vijayakumar et al. 2018, algorithm 1)."""
    diversity: float = 0.0
    """What a token loses each time an earlier group has just chosen it."""

    def __post_init__(self) -> None:
        if self.n_best > self.beam:
            raise ValueError(f"n_best ({self.n_best}) must not exceed beam ({self.beam})")
        if self.beam % self.groups:
            raise ValueError(f"beam ({self.beam}) must be divisible by groups ({self.groups})")


class Finished:
    """The best finished hypotheses of each sentence, for each group of its beams.

    A finished hypothesis is a score, a log-probability, and the step and row of its prefix.
    """

    def __init__(self, limits: Int[Tensor, "sentences"], options: BeamOptions):
        self.penalty = options.penalty
        self.groups = options.groups
        shape = (len(limits), self.groups, min(options.n_best, options.beam // self.groups))
        device = limits.device
        self.exact = finest(device)
        # Of the longest possible output.
        self.divisors = self.penalty.divisor(limits).to(self.exact).to(device)
        self.scores = torch.full(shape, search.IMPOSSIBLE, dtype=self.exact, device=device)
        self.totals = torch.full(shape, search.IMPOSSIBLE, device=device)
        self.places = torch.zeros(*shape, 2, dtype=torch.long, device=device)  # step, row

    def add(
        self,
        alive: Int[Tensor, "alive"],
        chosen: search.Chosen,
        *,
        step: int,
        penalties: Float[Tensor, "alive width"] | None = None,
    ) -> None:
        """Keep the endings of a step that are better than those found before."""
        ends = chosen.ends
        if on_host(ends) and not bool((ends > search.IMPOSSIBLE).any()):
            return  # elsewhere looking would take longer than sorting
        scores = ends.to(self.exact) / float(self.penalty.divisor(torch.tensor(step + 1)))
        scores = scores if penalties is None else scores + penalties
        rows = torch.arange(ends.numel(), device=ends.device).view(ends.shape)
        places = torch.stack([torch.full_like(rows, step), rows], dim=2)
        by_group = (len(ends), self.groups, -1)
        every = torch.cat([self.scores[alive], scores.view(by_group)], dim=2)
        totals = torch.cat([self.totals[alive], ends.view(by_group)], dim=2)
        places = torch.cat([self.places[alive], places.view(*by_group, 2)], dim=2)
        # Of equal scores, those found first stay first.
        order = every.sort(dim=2, descending=True, stable=True).indices
        order = order[:, :, : self.scores.shape[2]]
        self.scores[alive] = every.gather(2, order)
        self.totals[alive] = totals.gather(2, order)
        self.places[alive] = places.gather(2, order[..., None].expand(-1, -1, -1, 2))

    def is_done(
        self, alive: Int[Tensor, "alive"], totals: Float[Tensor, "alive beam"]
    ) -> Bool[Tensor, "alive"]:
        """Return which sentences have no live hypothesis that could still enter their list."""
        best = totals.view(len(alive), self.groups, -1).amax(dim=2)
        bound = best / self.divisors[alive, None]
        return (self.scores[alive, :, -1] >= bound).all(dim=1)

    def hypotheses(self, pointers: search.BackPointers, *, n_best: int) -> list[list[Hypothesis]]:
        """Return the hypotheses, best first; one found by two groups counts once."""
        found = []
        every = (self.scores.flatten(1), self.totals.flatten(1), self.places.flatten(1, 2))
        for scores, totals, places in zip(*moved(every, HOST), strict=True):
            best: dict[tuple[int, ...], Hypothesis] = {}
            for index in scores.sort(descending=True, stable=True).indices.tolist():
                if scores[index] == search.IMPOSSIBLE or len(best) == n_best:
                    break
                step, row = places[index].tolist()
                tokens, attention = pointers.read(step=step, row=row)
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
    options: BeamOptions,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each sentence, best first.

    With several groups there may be fewer, since groups may find the same hypothesis. A sentence
    whose constraints cannot be satisfied has none.
    """
    pointers = search.BackPointers(keep_weights=with_weights)
    finished = Finished(rules.limits, options)
    state, written = model.start(model.encode(source, mask)), rules.start()
    if options.groups > 1:  # each group begins with a prefix of its own
        rows = written.sentences.repeat_interleave(options.groups)
        state, written = model.select(state, rows), written.select(rows)
    tokens = torch.full_like(written.sentences, BEGIN)
    alive = torch.arange(len(source), device=source.device)
    # [sentences alive, live prefixes of each]
    totals = torch.zeros(len(source), options.groups, device=source.device)
    covered = None
    if options.coverage:
        covered = torch.zeros(len(tokens), mask.shape[1], device=source.device)
    for _ in range(int(rules.limits.max())):  # at its limit every hypothesis ends
        width = totals.shape[1]
        step = model.step(tokens, state, with_weights=with_weights or covered is not None)
        pointers.add_weights(step.weights)
        values = rules.log_probabilities(step.logits, written)
        chosen = _choose(values, totals, written, rules, options)
        penalties = None
        if covered is not None and step.weights is not None:
            covered = covered + step.weights
            missed = _coverage_penalties(covered, mask[written.sentences]).view(totals.shape)
            penalties = options.coverage * missed
        finished.add(alive, chosen, step=pointers.steps - 1, penalties=penalties)
        going, unchanged = _going(finished.is_done(alive, chosen.totals), chosen, width=width)
        if not len(going):
            break
        rows = (going[:, None] * width + chosen.parents[going]).flatten()
        tokens = chosen.tokens[going].flatten()
        state = step.state if unchanged else model.select(step.state, rows)
        covered = None if covered is None else covered[rows]
        written = rules.follow(written.select(rows), tokens)
        pointers.add(rows, tokens)
        totals, alive = chosen.totals[going], alive[going]
    return finished.hypotheses(pointers, n_best=options.n_best)


def _choose(
    values: Tensor, totals: Tensor, written: Written, rules: Rules, options: BeamOptions
) -> search.Chosen:
    """Return the continuations: the best, those of diverse groups, or by constraints met."""
    values = values.view(*totals.shape, -1)
    if options.groups > 1:
        return search.choose_diverse(
            values,
            totals,
            beam=options.beam,
            groups=options.groups,
            strength=options.diversity,
        )
    constraints, state = rules.constraints, written.state
    if constraints is not None and state is not None and constraints.requires:
        return choose_by_allocation(values, totals, constraints, state, beam=options.beam)
    return search.choose(values, totals, beam=options.beam)


def _coverage_penalties(covered: Tensor, mask: Tensor) -> Tensor:
    """Return sum_j log(min(sum_i p_ij, 1)) (Wu et al. 2016, eq. 14), at least log 1e-6 each."""
    return (covered.clamp(1e-6, 1.0).log() * mask).sum(dim=1)


def _going(done: Tensor, chosen: search.Chosen, *, width: int) -> tuple[Tensor, bool]:
    """Return which sentences go on, and whether all rows of the step stay as they are.

    This is the one pause of a step on other devices than the processor.
    """
    places = torch.arange(chosen.parents.shape[1], device=done.device)
    same = (chosen.parents == places).all()
    facts = torch.stack([(~done).sum(), same, chosen.totals.isnan().any()])
    count, unchanged, broken = facts.tolist()
    if broken:
        search.require_numbers(chosen.totals)
    going = torch.argsort(done, stable=True)[:count]  # those that are not done come first
    return going, bool(unchanged) and count == len(done) and len(places) == width
