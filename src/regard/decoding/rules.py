"""What may come next, given what has been written: limits, repetition and constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import END
from regard.decoding.candidates import IMPOSSIBLE, next_log_probabilities
from regard.decoding.constrained import Constrained, Standing
from regard.decoding.filters import penalise_repetition


class Written(NamedTuple):
    """What each row of a search has written so far, and for which sentence."""

    sentences: Int[Tensor, "rows"]
    tokens: Int[Tensor, "rows length"]
    standing: Standing | None
    """Where the row's constraints stand; None where there are none."""

    def select(self, rows: Int[Tensor, "chosen"]) -> Written:
        """Return these rows, in this order."""
        standing = None if self.standing is None else self.standing.select(rows)
        return Written(self.sentences[rows], self.tokens[rows], standing)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What every search obeys, for the sentences of one batch."""

    limits: Int[Tensor, "sentences"]
    """Most symbols of each output, end mark included."""
    least: Int[Tensor, "sentences"] | None = None
    """Fewest symbols of each output, end mark included."""
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    constrained: Constrained | None = None

    def start(self) -> Written:
        """Return one row for each sentence, with nothing written."""
        count = len(self.limits)
        return Written(
            torch.arange(count),
            torch.empty(count, 0, dtype=torch.long),
            None if self.constrained is None else self.constrained.start(),
        )

    def follow(self, written: Written, symbols: Int[Tensor, "rows"]) -> Written:
        """Return what is written when each row has got one symbol more."""
        standing = written.standing
        if self.constrained is not None and standing is not None:
            standing = self.constrained.follow(standing, symbols)
        tokens = torch.cat([written.tokens, symbols[:, None]], dim=1)
        return Written(written.sentences, tokens, standing)

    def log_probabilities(
        self, logits: Float[Tensor, "rows vocab"], written: Written
    ) -> Float[Tensor, "rows vocab"]:
        """Return log p of every next symbol, minus infinity where it may not come.

        Limits and constraints always hold. Where the others leave nothing at all, as in a
        vocabulary smaller than the n-grams it would take, they step back.
        """
        length = written.tokens.shape[1] + 1  # of the output with its next symbol
        if self.repetition_penalty != 1 and length > 1:
            seen = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, written.tokens, True)
            logits = penalise_repetition(logits, seen=seen, penalty=self.repetition_penalty)
        limits = self.limits[written.sentences]
        values = next_log_probabilities(logits, end_only=limits <= length)
        if self.constrained is not None and written.standing is not None:
            self.constrained.ban(
                values, written.standing, written.sentences, remaining=limits - length
            )
        return self._preferred(values, written, length=length)

    def _preferred(self, values: Tensor, written: Written, *, length: int) -> Tensor:
        """Apply what gives way to limits and constraints."""
        asked = values
        if self.no_repeat_ngram and length > self.no_repeat_ngram:
            values = values.masked_fill(
                _repeating(written.tokens, self.no_repeat_ngram, values.shape[1]), IMPOSSIBLE
            )
        if self.least is not None:
            early = self.least[written.sentences] > length
            if bool(early.any()):
                values = values.clone()
                values[early, END] = IMPOSSIBLE
        if values is asked:
            return values
        nothing = (values.amax(dim=1) == IMPOSSIBLE)[:, None]
        return torch.where(nothing, asked, values)


def _repeating(
    tokens: Int[Tensor, "rows length"], size: int, vocab: int
) -> Bool[Tensor, "rows vocab"]:
    """Return which symbols would complete an n-gram that the row has written before."""
    windows = tokens.unfold(1, size, 1)  # [rows, windows, size]
    last = tokens[:, tokens.shape[1] - size + 1 :]
    same = (windows[:, :, :-1] == last[:, None, :]).all(dim=2)
    banned = torch.zeros(len(tokens), vocab, dtype=torch.bool)
    # Windows that do not match ban padding, which never comes anyway.
    return banned.scatter_(1, torch.where(same, windows[:, :, -1], 0), True)
