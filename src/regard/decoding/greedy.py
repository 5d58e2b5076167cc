"""Greedy search: the most probable symbol at every step."""

from __future__ import annotations

from typing import TypeVar

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Int, Tensor
from regard.decoding.length_penalty import LengthPenalty
from regard.decoding.paths import follow_paths
from regard.decoding.rules import Rules

State = TypeVar("State")


def greedy_search(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    penalty: LengthPenalty | None = None,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return a list of one hypothesis a sentence, scored as in beam search.

    Where a constraint leaves no way out, the list is empty.
    """
    return follow_paths(
        model,
        source,
        mask,
        rules=rules,
        pick=lambda values, numbers: values.argmax(dim=1),
        penalty=penalty or LengthPenalty(),
        with_weights=with_weights,
    )
