"""Regard as a contestant, with the parts that `regard train` is made of.

python own.py FOLDER SIZE THREADS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
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
from regard.training.update import Sharing, gradients, update


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
    parameters = list(model.parameters())
    learn = partial(
        update,
        parameters=parameters,
        optimizer=optimizer,
        clip=CLIP,
    )
    batches = iterate(order, examples, BatchPosition(epoch=0, batch=0))
    loss_sum = partial(batch_loss, model, smoothing=0.0)
    processes = processes_for(model, wanted=None, tokens=2 * SIDE_TOKENS)
    with gradients(loss_sum, parameters, Sharing(processes, Batch.split)) as add_gradient:
        for _, batch in batches:
            yield learn([batch], add_gradient=add_gradient).tokens


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[3]))
    serve(updates(Path(sys.argv[1]), sys.argv[2]))
