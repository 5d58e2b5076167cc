"""The constraints of a batch of sentences, applied at every step of a search.

No token that breaks a constraint can be chosen, and every prefix can still be completed: near the
length limit only tokens that lead to an output that satisfies everything are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN, END, PAD
from regard.compute.device import Movable, on_host
from regard.decoding.constraints import phrases
from regard.decoding.constraints.automaton import BatchAutomaton
from regard.decoding.search import IMPOSSIBLE, Chosen, continuations, counting


class ConstraintState(NamedTuple):
    """How far each row of a search has come with its constraints."""

    length: int
    """Tokens written so far, the same number in all rows."""
    forbidden: Int[Tensor, "rows"]
    """The node in the forbidden phrases."""
    automaton: Int[Tensor, "rows"]
    """The state of the automaton."""
    required: phrases.PhraseProgress

    def select(self, rows: Int[Tensor, "chosen"]) -> ConstraintState:
        """Return these rows, in this order."""
        return ConstraintState(
            self.length, self.forbidden[rows], self.automaton[rows], self.required.select(rows)
        )


class BatchConstraints(Movable):
    """The constraints of each sentence of a batch; impossible ones are refused at once."""

    def __init__(
        self,
        constraints: Sequence[phrases.Constraints],
        *,
        limits: Int[Tensor, "sentences"],
        vocab: int,
    ):
        _require_few(constraints)
        self.forbidden = phrases.PhraseMatcher([some.forbidden for some in constraints])
        self.required = phrases.RequiredPhrases(constraints)
        self.automaton = BatchAutomaton([some.automaton for some in constraints], vocab=vocab)
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

    def start(self) -> ConstraintState:
        """Return one row for each sentence, with nothing written."""
        return ConstraintState(
            0, self.forbidden.roots.clone(), self.automaton.starts.clone(), self.required.start()
        )

    def follow(self, state: ConstraintState, tokens: Int[Tensor, "rows"]) -> ConstraintState:
        """Return the state after one more token in each row."""
        return ConstraintState(
            state.length + 1,
            self.forbidden.follow(state.forbidden, tokens),
            self.automaton.follow(state.automaton, tokens),
            self.required.follow(state.required, tokens),
        )

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        state: ConstraintState,
        sentences: Int[Tensor, "rows"],
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Ban tokens that break a constraint, in place; `remaining` tokens may follow them."""
        forced, tokens, log_probabilities = self._next_of_prefix(values, state, sentences)
        self._ban_forbidden(values, state)
        self.automaton.ban(values, state.automaton, remaining=remaining)
        self.required.ban(values, state.required, remaining=remaining)
        self.automaton.ban_joins(values, state.automaton, after=state.required.just_met)
        if not on_host(values) or bool(forced.any()):
            values.masked_fill_(forced[:, None], IMPOSSIBLE)
            others = values.gather(1, tokens[:, None])
            values.scatter_(
                1, tokens[:, None], torch.where(forced[:, None], log_probabilities, others)
            )

    def _next_of_prefix(
        self, values: Tensor, state: ConstraintState, sentences: Tensor
    ) -> tuple[Bool[Tensor, "rows"], Int[Tensor, "rows"], Float[Tensor, "rows 1"]]:
        """Return which rows are forced to go on with their prefix, with what, and how probable."""
        forced = self.lengths[sentences] > state.length
        place = min(state.length, max(0, self.prefixes.shape[1] - 1))
        if not self.prefixes.shape[1]:
            tokens = torch.full_like(sentences, PAD)
        else:
            tokens = self.prefixes[sentences, place]
        return forced, tokens, values.gather(1, tokens[:, None])

    def _ban_forbidden(self, values: Tensor, state: ConstraintState) -> None:
        keys = self.forbidden.keys[state.forbidden]
        targets = self.forbidden.targets[state.forbidden]
        completes = (self.forbidden.completes[targets.clamp(min=0)] != 0) & (keys >= 0)
        # Tokens that complete nothing ban padding, which is never chosen anyway.
        values.scatter_(1, torch.where(completes, keys, PAD), IMPOSSIBLE)

    def _check(self, index: int, wanted: phrases.Constraints, limit: int) -> None:
        """Refuse constraints that are known to be impossible before any search."""
        for phrase in (*wanted.required, *wanted.forbidden):
            if not phrase or {PAD, BEGIN, END} & set(phrase):
                raise phrases.ImpossibleConstraintsError(
                    index, f"the phrase {phrase} must have tokens, and none of the special ones"
                )
        if len(wanted.prefix) + 1 > limit:
            raise phrases.ImpossibleConstraintsError(
                index,
                f"a prefix of {len(wanted.prefix)} tokens does not fit into an output of at most "
                f"{limit - 1}; shorten it, or raise max_length, max_ratio or max_extra",
            )
        state = self._after(index, wanted.prefix, what="prefix")
        need = int(self.required.need(state.required))
        if len(wanted.prefix) + need + 1 > limit:
            raise phrases.ImpossibleConstraintsError(
                index,
                f"what is required takes {need} tokens more, which do not fit into an output of "
                f"at most {limit - 1}; require less, or raise max_length, max_ratio or max_extra",
            )
        if int(self.automaton.needs(state.automaton)) > limit - len(wanted.prefix):
            raise phrases.ImpossibleConstraintsError(
                index,
                f"no output of at most {limit - 1} tokens begins as asked without what is "
                "forbidden",
            )
        for phrase in wanted.required:
            self._after(index, phrase, what="required phrase", by_automaton=False)

    def _after(
        self, index: int, tokens: Sequence[int], *, what: str, by_automaton: bool = True
    ) -> ConstraintState:
        """Return the state after these tokens of a sentence; refuse them if they are forbidden."""
        state = self.start().select(torch.tensor([index]))
        for token in tokens:
            state = self.follow(state, torch.tensor([token]))
            forbidden = int(self.forbidden.completes[state.forbidden]) != 0
            if forbidden or (by_automaton and self.automaton.is_dead(state.automaton)):
                raise phrases.ImpossibleConstraintsError(
                    index, f"its {what} holds what is forbidden"
                )
        return state


def _require_few(constraints: Sequence[phrases.Constraints]) -> None:
    for index, some in enumerate(constraints):
        if max(len(some.required), len(some.forbidden)) > phrases.MOST_PHRASES:
            raise phrases.ImpossibleConstraintsError(
                index,
                f"at most {phrases.MOST_PHRASES} phrases can be required, and as many forbidden",
            )


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
    of_row = torch.arange(alive * width, device=values.device).repeat_interleave(tokens.shape[2])
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
    places = torch.arange(values.shape[1], device=values.device).expand_as(by_value)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[:, 1:] = by_group.values[:, 1:] != by_group.values[:, :-1]
    first = torch.where(begins, places, 0).cummax(dim=1).values
    turns = torch.empty_like(places).scatter_(1, by_group.indices, places - first)
    impossible = values.gather(1, by_value) == IMPOSSIBLE
    turns = turns.masked_fill(impossible, values.shape[1])
    return by_value.gather(1, turns.sort(dim=1, stable=True).indices)
