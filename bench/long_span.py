"""Attention that sees less or remembers more: loss, time and memory against the context.

    python bench/long_span.py [--seconds 6] [--seeds 1 2 3]

Character models of Tiny Shakespeare (2 layers of width 96 with rotary positions, or for the memory
those of Transformer-XL) that differ in their self-attention alone:

- loss: windows of 64 or 256 tokens, 2,048 tokens an update, the same CPU seconds for all kinds
  (equal compute), three seeds, intervals by Student's t.
- time and memory: one update of 4,096 tokens, divided into windows of n; CPU time a token, and the
  bytes a token that are kept for the gradient.
- reading: what a model keeps of a text of n tokens to go on writing.

Writes results/long-span.json. The data is $REGARD_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.studies.small_models import MeanOverSeeds, Point, TrainingBudget, train_small
from result import write_result
from small_texts import shakespeare

TOKENS, CONTEXTS = 2_048, (64, 256)
LENGTHS, AT_ONCE = (128, 256, 512, 1024, 2048), 4_096
KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "window": {"window": 32},
    "strided": {"pattern": "strided", "stride": 16},
    "fixed": {"pattern": "fixed", "stride": 16, "summary": 2},
    "hashed": {"pattern": "hashed", "hash_buckets": 8, "hash_rounds": 2, "hash_chunk": 16},
    "span": {"span": 64, "span_ramp": 16, "span_loss": 1e-4},
    "memory": {"positions": "segment", "memory": 32, "segment": 32},
}
READ_AT_ONCE = 64


def main() -> None:
    """Measure losses, costs and states, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=6.0)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    torch.set_num_threads(1)
    figures: dict[str, float] = {"cpu_seconds": given.seconds}
    details: dict[str, Any] = {"kinds": KINDS}
    losses(given, figures, details)
    costs(given.rounds, figures, details)
    states(figures, details)
    seeds = " ".join(map(str, given.seeds))
    command = f"python bench/long_span.py --seconds {given.seconds:g} --seeds {seeds}"
    print(write_result("long-span", figures, command=command, details=details))


def settings(kind: str, context: int) -> CausalTransformerSettings:
    """Return a model of one kind."""
    sizes = {"layers": 2, "model_dim": 96, "heads": 4, "context": context, "positions": "rotary"}
    return CausalTransformerSettings.model_validate(sizes | KINDS[kind])


def losses(given: argparse.Namespace, figures: dict[str, float], details: dict[str, Any]) -> None:
    """Train every kind with every context and seed for the same CPU seconds."""
    text = shakespeare()
    for context in CONTEXTS:
        found: dict[str, list[list[Point]]] = {kind: [] for kind in KINDS}
        for seed in given.seeds:
            for kind in KINDS:
                budget = TrainingBudget(
                    seconds=given.seconds, batch_size=TOKENS // context, seed=seed, measure_every=20
                )
                found[kind].append(train_small(settings(kind, context), text, budget).points)
                print(context, kind, seed, found[kind][-1][-1], flush=True)
        for kind, curves in found.items():
            same_time = MeanOverSeeds.of([points[-1].loss for points in curves])
            against = MeanOverSeeds.of(
                [
                    own[-1].loss - full[-1].loss
                    for own, full in zip(curves, found["full"], strict=True)
                ]
            )
            figures[f"{kind}_loss_{context}"] = round(same_time.mean, 4)
            details[f"{kind}_{context}"] = {
                "loss": same_time.to_dict(),
                "loss_above_full": against.to_dict(),
                "updates": [points[-1].updates for points in curves],
            }


def costs(rounds: int, figures: dict[str, float], details: dict[str, Any]) -> None:
    """Measure time and kept bytes a token, for windows of several lengths."""
    for kind in KINDS:
        times: dict[int, float] = {}
        kept: dict[int, float] = {}
        for length in LENGTHS:
            torch.manual_seed(1)
            model = build_language_model(settings(kind, length), vocab=65)
            tokens = torch.randint(65, (AT_ONCE // length, length))
            kept[length] = kept_bytes(model, tokens) / AT_ONCE
            found = []
            for _ in range(rounds):
                began = time.process_time()
                loss_of(model, tokens).backward()  # type: ignore[no-untyped-call]
                found.append(time.process_time() - began)
            times[length] = 1e6 * statistics.median(found) / AT_ONCE
            print(kind, length, round(times[length], 1), round(kept[length]), flush=True)
        details[f"{kind}_microseconds_a_token"] = {n: round(t, 2) for n, t in times.items()}
        details[f"{kind}_bytes_a_token"] = {n: round(b) for n, b in kept.items()}
        for name, measured in (("time", times), ("memory", kept)):
            growth = math.log(measured[LENGTHS[-1]] / measured[LENGTHS[1]])
            growth /= math.log(LENGTHS[-1] / LENGTHS[1])
            figures[f"{kind}_{name}_exponent"] = round(1 + growth, 3)  # of the whole text


def loss_of(model: LanguageModel[Any], tokens: Tensor) -> Tensor:
    """Return something to take a gradient of."""
    features: Tensor = model(tokens).features
    return features.square().mean()


def kept_bytes(model: nn.Module, tokens: Tensor) -> int:
    """Return the bytes kept for the backward pass, without the weights."""
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = loss_of(model, tokens)  # type: ignore[arg-type]
    found = sum(storages.values())
    del loss  # until here it held the storages, so that no two had one address
    return found


@torch.no_grad()
def states(figures: dict[str, float], details: dict[str, Any]) -> None:
    """Measure what a model keeps of a text that it has read."""
    for kind in KINDS:
        model = build_language_model(settings(kind, max(LENGTHS)), vocab=65).eval()
        state, sizes = model.start(1), {}
        text = torch.randint(65, (1, max(LENGTHS)))
        for place in range(0, max(LENGTHS), READ_AT_ONCE):
            state = model.read(text[:, place : place + READ_AT_ONCE], state).state
            read = place + READ_AT_ONCE
            if read in LENGTHS:
                parts = [part for past in state.layers for part in past[:2]]
                sizes[read] = sum(part.numel() * part.element_size() for part in parts)
        details[f"{kind}_state_bytes"] = sizes
        figures[f"{kind}_state_growth"] = round(sizes[LENGTHS[-1]] / sizes[LENGTHS[0]], 2)


if __name__ == "__main__":
    main()
