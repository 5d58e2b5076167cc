"""Regard as a contestant, with the parts that `regard train` is made of.

python own.py FOLDER SIZE THREADS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import torch
from pieces import read_pairs
from protocol import BETAS, CLIP, LEARNING_RATE, SIDE_TOKENS, SIZES, VOCABULARY, serve

from regard.batching.batch import Batch, Example
from regard.batching.order import BatchOrder, BatchPosition, iterate
from regard.compute.device import keep_memory, processes_for
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.tasks.translation.objective import batch_loss
from regard.training.distributed import taking_updates
from regard.training.objective import Objective, Optimisation, Validation
from regard.training.update import Sharing


def updates(work: Path, size: str) -> Iterator[int]:
    """Train, one update at a time."""
    keep_memory()
    torch.manual_seed(1)
    sizes = SIZES[size]
    everywhere = dict.fromkeys(("attention_dropout", "activation_dropout"), sizes["dropout"])
    settings = TransformerSettings.model_validate(
        {"family": "transformer", "tie": "all"} | sizes | everywhere
    )
    model = build_translator(settings, source_vocab=VOCABULARY, target_vocab=VOCABULARY).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=0.0, fused=True
    )
    examples = [Example(*pair) for pair in read_pairs(work)]
    order = BatchOrder([e.lengths for e in examples], token_budget=2 * SIDE_TOKENS, seed=1)
    processes = processes_for(model, wanted=None, tokens=2 * SIDE_TOKENS)
    objective = Objective[Batch](
        loss_sum=partial(batch_loss, model, smoothing=0.0),
        batches_from=lambda epoch, batch: iterate(order, examples, BatchPosition(epoch, batch)),
        validate=lambda: Validation(metrics={}, value=0.0),
    )
    optimisation = Optimisation[Batch](
        optimizer=optimizer,
        learning_rate=lambda step, done: LEARNING_RATE,
        clip=CLIP,
        sharing=Sharing(processes, Batch.split),
    )
    with taking_updates(model, objective, optimisation) as updates:
        updates.begin(0, 0)
        for step in count(1):
            yield updates.take(step).result.tokens


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    serve(updates(Path(sys.argv[1]), sys.argv[2]))
