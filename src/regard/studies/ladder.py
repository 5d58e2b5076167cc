"""The task of the ladder: remember what was last said about a key.

A sequence gives pairs (key, value), keys in any order and again and again; the last item asks for
a key, and the answer is the value that came with it last. Content finds the pairs of that key;
which of them is the last, only order can tell.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from regard.attention.ladder import RUNGS, Rung
from regard.base.results import Attended
from regard.base.shapes import Float, Int, Tensor
from regard.compute.device import beside, placed
from regard.models.inspection import parameter_count
from regard.training.optimisers import learning_rate


@dataclass(frozen=True)
class RecallTask:
    """How many keys and values there are, and how many pairs come before the query."""

    keys: int = 6
    values: int = 6
    pairs: int = 12

    @property
    def chance(self) -> float:
        """The accuracy of guessing."""
        return 1 / self.values

    def draw(
        self, batch: int, generator: torch.Generator
    ) -> tuple[Int[Tensor, "batch time 2"], Int[Tensor, "batch"]]:
        """Return items (key, value), the last with the value "asked for", and the answers."""
        keys = torch.randint(self.keys, (batch, self.pairs), generator=generator)
        values = torch.randint(self.values, (batch, self.pairs), generator=generator)
        asked_of = torch.randint(self.pairs, (batch, 1), generator=generator)
        asked = keys.gather(1, asked_of)  # so that it has been mentioned
        places = torch.arange(self.pairs)
        last = torch.where(keys == asked, places, -1).max(dim=1, keepdim=True).values
        query = torch.stack([asked, torch.full_like(asked, self.values)], dim=-1)
        items = torch.cat([torch.stack([keys, values], dim=-1), query], dim=1)
        return items, values.gather(1, last)[:, 0]

    def without_order(self, batch: int, generator: torch.Generator) -> float:
        """Return the best accuracy of one who knows the pairs but not their order."""
        items, answers = self.draw(batch, generator)
        keys, values = items[:, :-1, 0], items[:, :-1, 1]
        said = nn.functional.one_hot(values, self.values) * (keys == items[:, -1:, 0])[..., None]
        counts = said.sum(dim=1)  # how often each value was said of the key
        likely = counts.gather(1, answers[:, None])[:, 0] == counts.max(dim=1).values
        ties = (counts == counts.max(dim=1, keepdim=True).values).sum(dim=1)
        return float((likely / ties).mean())


class RecallModel(nn.Module):
    """A rung between word vectors and an answer: logits = W h_T + b."""

    def __init__(self, *, rung: nn.Module, task: RecallTask, input_dim: int, hidden: int):
        super().__init__()
        self.of_key = nn.Embedding(task.keys, input_dim)
        self.of_value = nn.Embedding(task.values + 1, input_dim)  # the last means: asked for
        self.rung = rung
        self.answer = nn.Linear(hidden, task.values)

    def forward(self, items: Int[Tensor, "batch time 2"]) -> Float[Tensor, "batch values"]:
        """Return the logits of the answer to the last item."""
        inputs = self.of_key(items[:, :, 0]) + self.of_value(items[:, :, 1])
        read: Attended = self.rung(inputs)
        logits: Tensor = self.answer(read.context[:, -1])
        return logits


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
    on_step: Callable[[str, int], None] = lambda name, step: None,
) -> Iterator[Climbed]:
    """Train the rungs one after the other and yield what each reached.

    All see the same examples in the same order; `on_step` is called after every update.
    """
    task = task or RecallTask()
    for rung in rungs:
        torch.manual_seed(seed)
        network = rung.build(input_dim=WIDTH, hidden=WIDTH)
        model = placed(RecallModel(rung=network, task=task, input_dim=WIDTH, hidden=WIDTH))
        began = time.monotonic()
        history = _train(model, task, steps=steps, seed=seed, on_step=partial(on_step, rung.name))
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
    drawn = task.draw(size, torch.Generator().manual_seed(10_000 + seed))
    items, answers = beside(model, drawn)
    return float((model(items).argmax(dim=-1) == answers).float().mean())


def _train(
    model: RecallModel, task: RecallTask, *, steps: int, seed: int, on_step: Callable[[int], None]
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
        items, answers = beside(model, task.draw(BATCH, generator))
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
        on_step(step)
    return history
