"""Greedy search: the most probable symbol at every step."""

from __future__ import annotations

from typing import TypeVar

import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Int, Tensor
from regard.base.specials import BEGIN, END
from regard.decoding.candidates import next_log_probabilities

State = TypeVar("State")


@torch.inference_mode()
def greedy_search(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    limits: Int[Tensor, "batch"],
    length_penalty: float = 1.0,
    with_weights: bool = False,
) -> list[Hypothesis]:
    """Return one hypothesis a sentence, scored as in beam search; the finished leave."""
    state = model.start(model.encode(source, mask))
    batch = len(source)
    tokens: list[list[int]] = [[] for _ in range(batch)]
    totals = [0.0] * batch
    maps: list[list[Tensor]] = [[] for _ in range(batch)]
    alive = torch.arange(batch)
    symbols = torch.full((batch,), BEGIN)
    length = 0
    while len(alive):
        length += 1
        step = model.step(symbols, state, with_weights=with_weights)
        forced = limits[alive] <= length
        log_probabilities = next_log_probabilities(step.logits, end_only=forced)
        values, symbols = log_probabilities.max(dim=1)
        for row, sentence in enumerate(alive.tolist()):
            totals[sentence] += float(values[row])
            if step.weights is not None:
                maps[sentence].append(step.weights[row])
            if symbols[row] != END:
                tokens[sentence].append(int(symbols[row]))
        going = (symbols != END).nonzero().squeeze(1)
        state = model.select(step.state, going) if len(going) < len(alive) else step.state
        alive, symbols = alive[going], symbols[going]
    return [
        Hypothesis(
            tokens=tuple(tokens[sentence]),
            log_probability=totals[sentence],
            score=totals[sentence] / (len(tokens[sentence]) + 1) ** length_penalty,
            attention=torch.stack(maps[sentence]) if maps[sentence] else None,
        )
        for sentence in range(batch)
    ]
