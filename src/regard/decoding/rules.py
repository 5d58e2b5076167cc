"""Which tokens may come next: filters of logits, limits, repetition and constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import END
from regard.compute.device import doubled, on_host
from regard.decoding.constraints.batch import BatchConstraints, ConstraintState
from regard.decoding.search import IMPOSSIBLE, next_log_probabilities

REMOVED = float("-inf")


def with_temperature(
    logits: Float[Tensor, "rows vocab"], temperature: float
) -> Float[Tensor, "rows vocab"]:
    """Return logits / T: below 1 the probable becomes more so, above 1 less (Ackley et al. 1985).

    A temperature of 0 is the limit: only the most probable token of each row is left.
    """
    if not temperature >= 0:
        raise ValueError(f"temperature ({temperature}) must not be negative")
    if temperature == 0:
        return keep_top_k(logits, 1)
    # The maximum is subtracted first, so that no temperature is too small for the division.
    return (logits - logits.amax(dim=-1, keepdim=True)) / temperature


def keep_top_k(logits: Float[Tensor, "rows vocab"], count: int) -> Float[Tensor, "rows vocab"]:
    """Keep the `count` most probable tokens of each row (Fan et al. 2018, section 5.4).

    Of equally probable tokens those with the lowest numbers stay, so that there are never more.
    """
    if count < 1:
        raise ValueError(f"top_k ({count}) must be at least 1")
    if count >= logits.shape[-1]:
        return logits
    kept = _ranked(logits)[1][:, :count]
    return _only(logits, torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, kept, True))


def keep_top_p(logits: Float[Tensor, "rows vocab"], mass: float) -> Float[Tensor, "rows vocab"]:
    """Keep the fewest tokens whose probabilities sum to `mass` (Holtzman et al. 2020, eq. 2)."""
    if not 0 < mass <= 1:
        raise ValueError(f"top_p ({mass}) must be above 0 and at most 1")
    if mass == 1:
        return logits
    ordered, order = _ranked(logits)
    probabilities = torch.softmax(doubled(ordered), dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # what more probable tokens hold
    needed = before < mass
    needed[:, 0] = True
    needed = needed.to(logits.device)
    return _only(logits, torch.zeros_like(needed).scatter_(-1, order, needed))


def keep_min_p(logits: Float[Tensor, "rows vocab"], share: float) -> Float[Tensor, "rows vocab"]:
    """Keep tokens at least `share` times as probable as the best (Nguyen et al. 2024)."""
    if not 0 <= share <= 1:
        raise ValueError(f"min_p ({share}) must be between 0 and 1")
    best = logits.amax(dim=-1, keepdim=True)
    return _only(logits, (logits - best).exp() >= share)


def penalise_repetition(
    logits: Float[Tensor, "rows vocab"], *, seen: Bool[Tensor, "rows vocab"], penalty: float
) -> Float[Tensor, "rows vocab"]:
    """Make tokens that were seen less probable (Keskar et al. 2019, section 4.1).

    A positive logit is divided by the penalty and a negative one multiplied, so both fall.
    """
    if not penalty > 0:
        raise ValueError(f"repetition_penalty ({penalty}) must be above 0")
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lowered, logits)


def _ranked(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of each row from the greatest on, equal ones in order, and their places."""
    return torch.sort(logits, dim=-1, descending=True, stable=True)


def _only(logits: Tensor, kept: Tensor) -> Tensor:
    return logits.masked_fill(~kept, REMOVED)


class Written(NamedTuple):
    """The prefix of each row of a search, and its sentence."""

    sentences: Int[Tensor, "rows"]
    tokens: Int[Tensor, "rows length"]
    state: ConstraintState | None
    """The state of the constraints; None if there are none."""

    def select(self, rows: Int[Tensor, "chosen"]) -> Written:
        """Return these rows, in this order."""
        state = None if self.state is None else self.state.select(rows)
        return Written(self.sentences[rows], self.tokens[rows], state)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules that every search obeys, for the sentences of one batch."""

    limits: Int[Tensor, "sentences"]
    """Most tokens of each output, end mark included."""
    least: Int[Tensor, "sentences"] | None = None
    """Fewest tokens of each output, end mark included."""
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    constraints: BatchConstraints | None = None

    def start(self) -> Written:
        """Return one row for each sentence, with nothing written."""
        count, device = len(self.limits), self.limits.device
        return Written(
            torch.arange(count, device=device),
            torch.empty(count, 0, dtype=torch.long, device=device),
            None if self.constraints is None else self.constraints.start(),
        )

    def follow(self, written: Written, tokens: Int[Tensor, "rows"]) -> Written:
        """Return the prefixes after one more token in each row."""
        state = written.state
        if self.constraints is not None and state is not None:
            state = self.constraints.follow(state, tokens)
        prefixes = torch.cat([written.tokens, tokens[:, None]], dim=1)
        return Written(written.sentences, prefixes, state)

    def log_probabilities(
        self, logits: Float[Tensor, "rows vocab"], written: Written
    ) -> Float[Tensor, "rows vocab"]:
        """Return log p of every next token, minus infinity where it is banned.

        Limits and constraints always hold. The other rules are ignored where they would ban every
        token, as in a vocabulary that is too small for new n-grams.
        """
        length = written.tokens.shape[1] + 1  # of the output with its next token
        if self.repetition_penalty != 1 and length > 1:
            seen = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, written.tokens, True)
            logits = penalise_repetition(logits, seen=seen, penalty=self.repetition_penalty)
        limits = self.limits[written.sentences]
        values = next_log_probabilities(logits, end_only=limits <= length)
        if self.constraints is not None and written.state is not None:
            self.constraints.ban(
                values, written.state, written.sentences, remaining=limits - length
            )
        return self._preferred(values, written, length=length)

    def _preferred(self, values: Tensor, written: Written, *, length: int) -> Tensor:
        """Apply the rules that limits and constraints take precedence over."""
        asked = values
        if self.no_repeat_ngram and length > self.no_repeat_ngram:
            values = values.masked_fill(
                _repeating(written.tokens, self.no_repeat_ngram, values.shape[1]), IMPOSSIBLE
            )
        if self.least is not None:
            early = self.least[written.sentences] > length
            if not on_host(early) or bool(early.any()):
                values = values.clone()
                values[:, END].masked_fill_(early, IMPOSSIBLE)
        if values is asked:
            return values
        nothing = (values.amax(dim=1) == IMPOSSIBLE)[:, None]
        return torch.where(nothing, asked, values)


def _repeating(
    tokens: Int[Tensor, "rows length"], size: int, vocab: int
) -> Bool[Tensor, "rows vocab"]:
    """Return which tokens would complete an n-gram that the row has written before."""
    windows = tokens.unfold(1, size, 1)  # [rows, windows, size]
    last = tokens[:, tokens.shape[1] - size + 1 :]
    same = (windows[:, :, :-1] == last[:, None, :]).all(dim=2)
    banned = torch.zeros(len(tokens), vocab, dtype=torch.bool, device=tokens.device)
    # Windows that do not match ban padding, which is never chosen anyway.
    return banned.scatter_(1, torch.where(same, windows[:, :, -1], 0), True)
