"""A small Transformer trained on drawn pairs by some processes, of today's source or of an older.

    python processes.py speed PROCESSES SECONDS     # prints target tokens a second
    python processes.py memory PROCESSES SIZE       # prints bytes: planned, of tensors, resident

The source is the one on PYTHONPATH. Before commit "Exchange gradients by torch.distributed" the
processes shared gradients through memory (`gradients` in training/update.py).
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from random import Random
from typing import Any

import torch

from regard.batching.batch import Batch, Example
from regard.batching.order import BatchOrder, BatchPosition, iterate
from regard.compute.device import keep_memory
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks.translation.objective import batch_loss
from regard.training.update import Sharing, update

VOCABULARY, TOKENS, WARM = 8_000, 4_096, 3
MEASURED = 4  # updates, of which the one that takes most memory counts
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"layers": 4, "model_dim": 128, "heads": 4, "feed_forward": 256},
    "small": {"layers": 3, "model_dim": 256, "heads": 4, "feed_forward": 1024},
    "deep": {"layers": 6, "model_dim": 192, "heads": 6, "feed_forward": 768},
}


def learner(size: str) -> tuple[Any, torch.optim.Optimizer, Callable[..., Iterator[Any]]]:
    """Return a model, its optimiser, and what yields batches."""
    torch.manual_seed(1)
    settings = TransformerSettings.model_validate(
        {"family": "transformer", "tie": "all", "dropout": 0.1, **SIZES[size]}
    )
    model = build_translator(settings, source_vocab=VOCABULARY, target_vocab=VOCABULARY).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    random = Random(1)

    def drawn() -> tuple[int, ...]:
        return tuple(random.randrange(4, VOCABULARY) for _ in range(random.randint(5, 30)))

    examples = [Example(drawn(), drawn()) for _ in range(4_000)]
    order = BatchOrder([e.lengths for e in examples], token_budget=TOKENS, seed=1)
    return (
        model,
        optimizer,
        lambda epoch, batch: iterate(order, examples, BatchPosition(epoch=epoch, batch=batch)),
    )


@contextmanager
def training(processes: int) -> Iterator[Callable[[], int]]:
    """Yield what takes an update and returns its target tokens."""
    model, optimizer, batches_from = learner("tiny")
    loss_sum = partial(batch_loss, model, smoothing=0.1)
    sharing = Sharing(processes, Batch.split)
    try:
        from regard.training.distributed import taking_updates
        from regard.training.objective import Objective, Optimisation, Validation
    except ImportError:  # the older source
        from regard.training.update import gradients  # type: ignore[attr-defined]

        parameters, batches = list(model.parameters()), batches_from(0, 0)
        with gradients(loss_sum, parameters, sharing) as add:
            yield (
                lambda: (
                    update(
                        [next(batches)[1]],
                        add_gradient=add,
                        parameters=parameters,
                        optimizer=optimizer,
                        clip=1.0,
                    ).tokens
                )
            )
        return
    objective = Objective[Batch](
        loss_sum=loss_sum,
        batches_from=batches_from,
        validate=lambda: Validation(metrics={}, value=0.0),
    )
    optimisation = Optimisation[Batch](
        optimizer=optimizer, learning_rate=lambda step, done: 1e-3, sharing=sharing
    )
    steps = count(1)
    with taking_updates(model, objective, optimisation, note=print) as updates:
        updates.begin(0, 0)
        yield lambda: updates.take(next(steps)).result.tokens


def speed(processes: int, seconds: float) -> float:
    """Return target tokens a second after some updates to warm up."""
    with training(processes) as take:
        for _ in range(WARM):
            take()
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            tokens += take()
        return tokens / (time.perf_counter() - began)


def memory(processes: int, size: str) -> dict[str, int]:
    """Return the bytes of one of the processes: planned, of its tensors, and resident."""
    from regard.runs.plan import _LiveTensors, estimate_training
    from regard.training.distributed import taking_updates
    from regard.training.objective import Limits, Objective, Optimisation, Validation

    began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, optimizer, batches_from = learner(size)
    objective = Objective[Batch](
        loss_sum=partial(batch_loss, model, smoothing=0.1),
        batches_from=batches_from,
        validate=lambda: Validation(metrics={}, value=0.0),
    )
    optimisation = Optimisation[Batch](
        optimizer=optimizer,
        learning_rate=lambda step, done: 1e-3,
        sharing=Sharing(processes, Batch.split),
    )
    planned = estimate_training(model, objective, optimisation, limits=Limits(steps=10))
    with taking_updates(model, objective, optimisation) as updates:
        updates.begin(0, 0)
        updates.take(1)
        updates.begin(0, 0)
        peaks = []
        for step in range(2, 2 + MEASURED):
            optimizer.zero_grad(set_to_none=True)
            live = _LiveTensors([])
            for value in (v for kept in optimizer.state.values() for v in kept.values()):
                live._count(value.untyped_storage())
            with live:
                updates.take(step)
            peaks.append(live.peak)
    return {
        "planned": planned.memory.total // processes,
        "tensors": max(peaks),
        "resident": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep_memory()
    if sys.argv[1] == "speed":
        print(json.dumps(speed(int(sys.argv[2]), float(sys.argv[3]))))
    else:
        print(json.dumps(memory(int(sys.argv[2]), sys.argv[3])))
