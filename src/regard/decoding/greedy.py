"""Greedy search, and the loop that it shares with sampling: one output for each row."""

from collections.abc import Callable
from typing import TypeVar

import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Int, Tensor
from regard.base.special_tokens import BEGIN, END
from regard.decoding.rules import Rules
from regard.decoding.search import IMPOSSIBLE, BackPointers, LengthPenalty

State = TypeVar("State")
# From log-probabilities and the numbers of their rows to the token of each row.
Pick = Callable[[Tensor, Tensor], Tensor]

# Finished rows are removed when at most this share is live, since removing copies the others.
COMPACT_BELOW = 0.75


@torch.inference_mode()
def follow_paths(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    pick: Pick,
    paths: int = 1,
    penalty: LengthPenalty,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return `paths` hypotheses for each sentence; one that no token can continue is left out."""
    state, written = model.start(model.encode(source, mask)), rules.start()
    if paths > 1:
        rows = written.sentences.repeat_interleave(paths)
        state, written = model.select(state, rows), written.select(rows)
    count = len(written.sentences)
    pointers = BackPointers(keep_weights=with_weights)
    totals = torch.zeros(count)
    ends = torch.full((count, 2), -1)  # the step at which each path ended, and its row there
    numbers = torch.arange(count)  # which path each row is
    live = torch.ones(count, dtype=torch.bool)
    tokens = torch.full((count,), BEGIN)
    for _ in range(int(rules.limits.max())):  # at its limit every path ends
        step = model.step(tokens, state, with_weights=with_weights)
        pointers.add_weights(step.weights)
        values = rules.log_probabilities(step.logits, written)
        tokens = pick(values, numbers)
        gained = values.gather(1, tokens[:, None]).squeeze(1)
        stuck = gained == IMPOSSIBLE
        ending = live & (tokens == END) & ~stuck
        totals[numbers[live]] += gained[live]
        ends[numbers[ending], 0] = pointers.steps - 1
        ends[numbers[ending], 1] = ending.nonzero().squeeze(1)
        live = live & ~ending & ~stuck
        if not bool(live.any()):
            break
        rows = torch.arange(len(live))
        state = step.state
        if int(live.sum()) <= COMPACT_BELOW * len(live):
            rows = live.nonzero().squeeze(1)
            state = model.select(state, rows)
            numbers, live = numbers[rows], live[rows]
            written, tokens = written.select(rows), tokens[rows]
        written = rules.follow(written, tokens)
        pointers.add(rows, tokens)
    divisors = penalty.divisor(ends[:, 0] + 1)
    found: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    for number, (step_number, row) in enumerate(ends.tolist()):
        if row >= 0:
            output, attention = pointers.read(step=step_number, row=row)
            total = float(totals[number])
            score = total / float(divisors[number])
            found[number // paths].append(Hypothesis(output, total, score, attention))
    return found


def greedy_search(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    penalty: LengthPenalty | None = None,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return a list of one hypothesis for each sentence, scored as in beam search.

    If no token satisfies the constraints, the list is empty.
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
