"""How much faster bf16 trains than fp32 on this processor, and what it does to the loss.

    python bench/scale.py --part bf16

Speed: updates of the Transformer base on one thread, with batches of Multi30k of 2,048 target
tokens. Both precisions take turns on the same batches; what counts is the time of the processor.
Losses: a thousand updates of the base model would take hours, so a smaller one (the sizes of
transformer-tiny) makes them, with both precisions and several seeds; each then reads 1,000 pairs
that were held out. The spread over the seeds says how much of a difference is chance. On a
processor without products of this kind nothing is measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from contestants.pieces import read_pairs
from contestants.protocol import BETAS, CLIP, LEARNING_RATE, SIZES, VOCABULARY
from regard.batching.batch import Batch, Example, collate
from regard.batching.order import BatchOrder, BatchPosition, iterate
from regard.compute.device import computing_in, has_bf16, keep_memory
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks.translation.objective import batch_loss
from regard.training.losses import LossSum
from regard.training.update import UpdateResult, add_gradient, update
from scale import Measured
from train_speed import DATA, prepare

WORK = Path("runs/bench/train-speed")
PRECISIONS = ("fp32", "bf16")
SPEED_TOKENS, SPEED_UPDATES = 2_048, 6
LOSS_TOKENS, LOSS_UPDATES, WARMUP, SEEDS, HELD_OUT = 256, 1_000, 200, (1, 2), 1_000


def measure(*, small: bool) -> Measured:
    """Return the speedup of the base model, and the losses of a smaller one in both precisions."""
    if not has_bf16():
        return Measured({}, {"not measured": "this processor has no products of bf16"})
    keep_memory()
    torch.set_num_threads(1)
    prepare(DATA / "multi30k" / "tok", WORK)
    examples = [Example(*pair) for pair in read_pairs(WORK)]
    seconds = update_seconds(examples, updates=1 if small else SPEED_UPDATES)
    print(seconds, flush=True)
    fp32, bf16 = (statistics.median(seconds[precision]) for precision in PRECISIONS)
    updates, seeds = (20, SEEDS[:1]) if small else (LOSS_UPDATES, SEEDS)
    losses = {
        precision: [
            held_out_loss(examples, precision, seed=seed, updates=updates) for seed in seeds
        ]
        for precision in PRECISIONS
    }
    details = {
        "threads": 1,
        "seconds_an_update_of_base": seconds,
        "target_tokens_an_update_of_base": SPEED_TOKENS,
        "nats_a_token_held_out": losses,
        "updates_of_tiny": updates,
        "target_tokens_an_update_of_tiny": LOSS_TOKENS,
        "seeds": list(seeds),
    }
    return Measured({"bf16_base_speedup": round(fp32 / bf16, 3)}, details)


class Training:
    """A model with its optimiser, trained in one precision."""

    def __init__(self, size: str, precision: str, *, seed: int):
        torch.manual_seed(seed)
        everywhere = dict.fromkeys(
            ("attention_dropout", "activation_dropout"), SIZES[size]["dropout"]
        )
        settings = TransformerSettings.model_validate(
            {"family": "transformer", "tie": "all", "norm_placement": "pre"}
            | SIZES[size]
            | everywhere
        )
        self.model = build_translator(
            settings, source_vocab=VOCABULARY, target_vocab=VOCABULARY
        ).train()
        self.parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=LEARNING_RATE, betas=BETAS, weight_decay=0.0, fused=True
        )
        self.within = computing_in(precision)
        self.updates = 0

    def loss_sum(self, batch: Batch) -> LossSum:
        """Return the loss of a batch in the precision of this training."""
        with self.within():
            return batch_loss(self.model, batch, smoothing=0.1)

    def learn(self, batch: Batch) -> UpdateResult:
        """Make one update, at a rate that rises in the beginning."""
        self.updates += 1
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, self.updates / WARMUP)
        return update(
            [batch],
            add_gradient=partial(add_gradient, self.loss_sum),
            parameters=self.parameters,
            optimizer=self.optimizer,
            clip=CLIP,
        )


def batches(examples: list[Example], *, tokens: int, seed: int) -> Iterator[Batch]:
    """Return batches of about this many target tokens, for ever."""
    order = BatchOrder([e.lengths for e in examples], token_budget=2 * tokens, seed=seed)
    return (batch for _, batch in iterate(order, examples, BatchPosition(epoch=0, batch=0)))


def update_seconds(examples: list[Example], *, updates: int) -> dict[str, list[float]]:
    """Return what each update of the base model took, in turns; the first ones do not count."""
    trainings = {precision: Training("base", precision, seed=1) for precision in PRECISIONS}
    found: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    for batch in islice(batches(examples, tokens=SPEED_TOKENS, seed=1), updates + 1):
        for precision, training in trainings.items():
            found[precision].append(processor_seconds(partial(training.learn, batch)))
    return {precision: seconds[1:] for precision, seconds in found.items()}


def processor_seconds(work: Callable[[], object]) -> float:
    """Return the time of the processor that this takes."""
    begun = time.process_time()
    work()
    return round(time.process_time() - begun, 3)


def held_out_loss(examples: list[Example], precision: str, *, seed: int, updates: int) -> float:
    """Return the loss on pairs that a small model has not seen, computed in single precision."""
    held, seen = examples[:HELD_OUT], examples[HELD_OUT:]
    training = Training("tiny", precision, seed=seed)
    for batch in islice(batches(seen, tokens=LOSS_TOKENS, seed=seed), updates):
        training.learn(batch)
    model = training.model.eval()
    nats = tokens = 0.0
    with torch.no_grad():
        for first in range(0, len(held), 50):
            batch = collate(held[first : first + 50])
            nats += float(batch_loss(model, batch, smoothing=0.0).nats)
            tokens += batch.target_tokens
    loss = round(nats / tokens, 4)
    print(f"{precision}, seed {seed}: {loss} nats a token after {updates} updates", flush=True)
    return loss
