"""Greedy search, and the loop that it shares with sampling: one output for each row."""

from collections.abc import Callable
from typing import TypeVar

import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Int, Tensor
from regard.base.special_tokens import BEGIN, END
from regard.compute.device import HOST, moved, on_host
from regard.decoding.rules import Rules
from regard.decoding.search import IMPOSSIBLE, BackPointers, LengthPenalty, require_numbers

State = TypeVar("State")
# From log-probabilities and the numbers of their rows to the token of each row.
Pick = Callable[[Tensor, Tensor], Tensor]

# Finished rows are removed when at most this share is live, since removing copies the others.
COMPACT_BELOW = 0.75
# After how many steps a search on an accelerator looks which rows are finished.
LOOKS = 4


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
    pointers, device = BackPointers(keep_weights=with_weights), source.device
    totals = torch.zeros(count, device=device)
    ends = torch.full((count, 2), -1, device=device)  # the step and the row of each path's end
    numbers = torch.arange(count, device=device)  # which path each row is
    live = torch.ones(count, dtype=torch.bool, device=device)
    tokens = torch.full((count,), BEGIN, device=device)
    for number in range(int(rules.limits.max())):  # at its limit every path ends
        step = model.step(tokens, state, with_weights=with_weights)
        pointers.add_weights(step.weights)
        values = rules.log_probabilities(step.logits, written)
        tokens = pick(values, numbers)
        gained = values.gather(1, tokens[:, None]).squeeze(1)
        stuck = gained == IMPOSSIBLE
        ending = live & (tokens == END) & ~stuck
        rows = torch.arange(len(live), device=device)
        totals.index_add_(0, numbers, torch.where(live, gained, 0.0))
        here = torch.stack([torch.full_like(rows, pointers.steps - 1), rows], dim=1)
        ends[numbers] = torch.where(ending[:, None], here, ends[numbers])
        live = live & ~ending & ~stuck
        # Looking costs other devices a pause: there it waits for its turn.
        looks = on_host(live) or number % LOOKS == LOOKS - 1
        alive = int(live.sum()) if looks else len(live)
        if not alive:
            break
        state = step.state
        if alive <= COMPACT_BELOW * len(live):
            rows = torch.argsort(~live, stable=True)[:alive]
            state = model.select(state, rows)
            numbers, live = numbers[rows], live[rows]
            written, tokens = written.select(rows), tokens[rows]
        written = rules.follow(written, tokens)
        pointers.add(rows, tokens)
    ends, totals = moved((ends, totals), HOST)
    require_numbers(totals)
    divisors = penalty.divisor(ends[:, 0] + 1)
    found: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    for path, (step_number, row) in enumerate(ends.tolist()):
        if row >= 0:
            output, attention = pointers.read(step=step_number, row=row)
            total = float(totals[path])
            score = total / float(divisors[path])
            found[path // paths].append(Hypothesis(output, total, score, attention))
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
