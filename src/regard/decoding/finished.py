"""The best finished hypotheses of each sentence, and whether better ones can still come."""

from __future__ import annotations

import torch

from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.decoding.candidates import IMPOSSIBLE
from regard.decoding.choose import Chosen
from regard.decoding.length_penalty import LengthPenalty
from regard.decoding.trail import Trail


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

    def hypotheses(self, trail: Trail, *, n_best: int) -> list[list[Hypothesis]]:
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
