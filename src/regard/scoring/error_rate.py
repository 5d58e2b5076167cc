"""Error rates of tokens (phonemes, characters, words) and of whole sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from regard.base.errors import RegardError
from regard.scoring.score import Score

Tokens = Sequence[Hashable]


def edit_distance(first: Tokens, second: Tokens) -> int:
    """Return the fewest insertions, deletions and substitutions that turn one into the other.

    Levenshtein 1966, by the recurrence of Wagner and Fischer 1974, one row at a time.
    """
    row = list(range(len(second) + 1))
    for i, token in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(second, start=1):
            substituted = diagonal + (token != other)
            diagonal = row[j]
            row[j] = min(substituted, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def token_error_rate(
    hypotheses: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    *,
    name: str = "token error rate",
) -> Score:
    """Return the edits per reference token, in percent, each against the nearest reference.

    Among references that are equally near, the longest counts. Edits and lengths are summed over
    the corpus, so every token has the same weight. Many insertions can lead to more than 100.
    """
    _check(hypotheses, references)
    edits = tokens = 0
    for hypothesis, allowed in zip(hypotheses, references, strict=True):
        nearest = min((edit_distance(hypothesis, one), -len(one)) for one in allowed)
        edits += nearest[0]
        tokens -= nearest[1]
    return Score(
        name=name,
        value=100.0 * edits / tokens if tokens else 0.0,
        signature="edits:levenshtein|references:nearest|sum:corpus",
        detail={"edits": edits, "tokens": tokens, "sequences": len(hypotheses)},
    )


def sequence_error_rate(
    hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]], *, name: str = "WER"
) -> Score:
    """Return the share of sequences that equal none of their references, in percent."""
    _check(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    wrong = sum(
        all(list(one) != list(hypothesis) for one in allowed) for hypothesis, allowed in pairs
    )
    return Score(
        name=name,
        value=100.0 * wrong / len(hypotheses),
        signature="match:exact|references:any",
        detail={"wrong": wrong, "sequences": len(hypotheses)},
    )


def _check(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> None:
    if not hypotheses:
        raise RegardError("there is nothing to score: no hypotheses were given.")
    if len(hypotheses) != len(references):
        raise RegardError(
            f"{len(hypotheses)} hypotheses cannot be compared with {len(references)} references: "
            "each needs its own."
        )
    for number, allowed in enumerate(references, start=1):
        if not allowed:
            raise RegardError(f"hypothesis {number} has no reference to compare with.")
