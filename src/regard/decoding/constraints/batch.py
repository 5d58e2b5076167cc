"""The constraints of a batch of sentences, kept at every step of a search.

Nothing that breaks a constraint can be written, and whatever is written can still be finished:
near the limit only what leads to an end that satisfies everything is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN, END, PAD
from regard.decoding.constraints.automaton import Spelled
from regard.decoding.constraints.phrases import (
    MOST_PHRASES,
    Constraints,
    ImpossibleConstraintsError,
    PhraseMatcher,
    Progress,
    Required,
)
from regard.decoding.search import IMPOSSIBLE


class Standing(NamedTuple):
    """Where the constraints of each row stand."""

    written: int
    forbidden: Int[Tensor, "rows"]
    """The node of its forbidden phrases."""
    spelled: Int[Tensor, "rows"]
    """The state of its spelling."""
    progress: Progress

    def select(self, rows: Int[Tensor, "chosen"]) -> Standing:
        """Return these rows, in this order."""
        return Standing(
            self.written, self.forbidden[rows], self.spelled[rows], self.progress.select(rows)
        )


class Constrained:
    """What is asked of each sentence of a batch; impossible wishes are refused at once."""

    def __init__(
        self, constraints: Sequence[Constraints], *, limits: Int[Tensor, "sentences"], vocab: int
    ):
        _require_few(constraints)
        self.forbidden = PhraseMatcher([some.forbidden for some in constraints])
        self.required = Required(constraints)
        self.spelled = Spelled([some.spelling for some in constraints], vocab=vocab)
        self.lengths = torch.tensor([len(some.prefix) for some in constraints])
        longest = int(self.lengths.max())
        self.prefixes = torch.tensor(
            [[*some.prefix, *[PAD] * (longest - len(some.prefix))] for some in constraints],
            dtype=torch.long,
        ).view(len(constraints), longest)
        for index, (some, limit) in enumerate(zip(constraints, limits.tolist(), strict=True)):
            self._check(index, some, limit)

    @property
    def requires(self) -> bool:
        """Whether any sentence has phrases that must appear."""
        return self.required.any

    def start(self) -> Standing:
        """Return one row for each sentence, with nothing written."""
        return Standing(
            0, self.forbidden.roots.clone(), self.spelled.starts.clone(), self.required.start()
        )

    def follow(self, standing: Standing, symbols: Int[Tensor, "rows"]) -> Standing:
        """Return where the constraints stand after one symbol more a row."""
        return Standing(
            standing.written + 1,
            self.forbidden.follow(standing.forbidden, symbols),
            self.spelled.follow(standing.spelled, symbols),
            self.required.follow(standing.progress, symbols),
        )

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        standing: Standing,
        sentences: Int[Tensor, "rows"],
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Make impossible, in place, what may not come; `remaining` symbols may follow it."""
        forced, symbols, log_probabilities = self._next_of_prefix(values, standing, sentences)
        self._ban_forbidden(values, standing)
        self.spelled.ban(values, standing.spelled, remaining=remaining)
        self.required.ban(values, standing.progress, remaining=remaining)
        self.spelled.ban_glued(values, standing.spelled, after=standing.progress.just_met)
        values[forced] = IMPOSSIBLE
        values[forced, symbols] = log_probabilities

    def _next_of_prefix(
        self, values: Tensor, standing: Standing, sentences: Tensor
    ) -> tuple[Bool[Tensor, "rows"], Int[Tensor, "forced"], Float[Tensor, "forced"]]:
        forced = self.lengths[sentences] > standing.written
        place = min(standing.written, max(0, self.prefixes.shape[1] - 1))
        if not bool(forced.any()):
            nothing = torch.empty(0, dtype=torch.long)
            return forced, nothing, values.new_empty(0)
        symbols = self.prefixes[sentences[forced], place]
        return forced, symbols, values[forced, symbols]

    def _ban_forbidden(self, values: Tensor, standing: Standing) -> None:
        keys = self.forbidden.keys[standing.forbidden]
        targets = self.forbidden.targets[standing.forbidden]
        completes = (self.forbidden.completes[targets.clamp(min=0)] != 0) & (keys >= 0)
        # What completes nothing bans padding, which never comes anyway.
        values.scatter_(1, torch.where(completes, keys, PAD), IMPOSSIBLE)

    def _check(self, index: int, wanted: Constraints, limit: int) -> None:
        """Refuse what can be seen to be impossible before any search."""
        for phrase in (*wanted.required, *wanted.forbidden):
            if not phrase or {PAD, BEGIN, END} & set(phrase):
                raise ImpossibleConstraintsError(
                    index, f"the phrase {phrase} must have symbols, and none of the special ones"
                )
        if len(wanted.prefix) + 1 > limit:
            raise ImpossibleConstraintsError(
                index,
                f"a prefix of {len(wanted.prefix)} symbols does not fit into an output of at most "
                f"{limit - 1}; shorten it, or raise max_length, max_ratio or max_extra",
            )
        standing = self._after(index, wanted.prefix, what="prefix")
        need = int(self.required.need(standing.progress))
        if len(wanted.prefix) + need + 1 > limit:
            raise ImpossibleConstraintsError(
                index,
                f"what is required takes {need} symbols more, which do not fit into an output of "
                f"at most {limit - 1}; require less, or raise max_length, max_ratio or max_extra",
            )
        if int(self.spelled.needs(standing.spelled)) > limit - len(wanted.prefix):
            raise ImpossibleConstraintsError(
                index,
                f"no output of at most {limit - 1} symbols begins as asked without what is "
                "forbidden",
            )
        for phrase in wanted.required:
            self._after(index, phrase, what="required phrase", by_spelling=False)

    def _after(
        self, index: int, symbols: Sequence[int], *, what: str, by_spelling: bool = True
    ) -> Standing:
        """Follow symbols from the start of a sentence; refuse them if they are forbidden."""
        standing = self.start().select(torch.tensor([index]))
        for symbol in symbols:
            standing = self.follow(standing, torch.tensor([symbol]))
            forbidden = int(self.forbidden.completes[standing.forbidden]) != 0
            if forbidden or (by_spelling and self.spelled.is_dead(standing.spelled)):
                raise ImpossibleConstraintsError(index, f"its {what} holds what is forbidden")
        return standing


def _require_few(constraints: Sequence[Constraints]) -> None:
    for index, some in enumerate(constraints):
        if max(len(some.required), len(some.forbidden)) > MOST_PHRASES:
            raise ImpossibleConstraintsError(
                index, f"at most {MOST_PHRASES} phrases can be required, and as many forbidden"
            )
