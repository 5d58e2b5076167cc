"""Training each rung of the ladder on the same task, to see what each change buys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from regard.attention.ladder import RUNGS, Rung
from regard.models.inspection import parameter_count
from regard.recipes.recall import RecallModel, RecallTask
from regard.training.loop import learning_rate

WIDTH = 32
BATCH = 64
TEST_SIZE = 2_000


@dataclass(frozen=True)
class Climbed:
    """What one rung reached: accuracy on fresh examples, parameters, seconds of training."""

    number: int
    name: str
    formula: str
    accuracy: float
    parameters: int
    seconds: float
    history: list[tuple[int, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def climb(
    *,
    steps: int = 1_500,
    seed: int = 1,
    task: RecallTask | None = None,
    rungs: Sequence[Rung] = RUNGS,
    told: Callable[[str, int], None] = lambda name, step: None,
) -> Iterator[Climbed]:
    """Train the rungs one after the other and yield what each reached.

    All see the same examples in the same order; `told` hears of every update.
    """
    task = task or RecallTask()
    for rung in rungs:
        torch.manual_seed(seed)
        model = RecallModel(
            rung=rung.build(input_dim=WIDTH, hidden=WIDTH),
            task=task,
            input_dim=WIDTH,
            hidden=WIDTH,
        )
        began = time.monotonic()
        history = _train(model, task, steps=steps, seed=seed, told=partial(told, rung.name))
        yield Climbed(
            number=rung.number,
            name=rung.name,
            formula=rung.formula,
            accuracy=accuracy(model, task, seed=seed),
            parameters=parameter_count(model.rung),
            seconds=time.monotonic() - began,
            history=history,
        )


@torch.no_grad()
def accuracy(model: RecallModel, task: RecallTask, *, seed: int, size: int = TEST_SIZE) -> float:
    """Return the share of right answers to examples that no training has seen."""
    model.eval()
    items, answers = task.draw(size, torch.Generator().manual_seed(10_000 + seed))
    return float((model(items).argmax(dim=-1) == answers).float().mean())


def _train(
    model: RecallModel, task: RecallTask, *, steps: int, seed: int, told: Callable[[int], None]
) -> list[tuple[int, float]]:
    """Train on fresh examples; return the accuracy on them as (step, share) pairs."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    every = max(1, steps // 30)
    history, right = [], 0.0
    model.train()
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(
                step, step / steps, schedule="cosine", peak=5e-3, warmup=min(50, steps)
            )
        items, answers = task.draw(BATCH, generator)
        logits = model(items)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(logits, answers)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        right += float((logits.argmax(dim=-1) == answers).float().mean())
        if step % every == 0:
            history.append((step, right / every))
            right = 0.0
        told(step)
    return history
