"""A mixture of 8 experts with one active against the one network: loss, loads and speed.

    python bench/experts.py [--updates 300] [--seeds 1 2 3]

Character models of Tiny Shakespeare, the same but for the feed-forward networks, with three seeds:

- `dense`: one network; the same number of updates, which is the same arithmetic a token;
- `dense_same_time`: one network, trained for as many CPU seconds as the experts took;
- `dense_same_parameters`: one network 8 times as wide, trained for as many CPU seconds;
- `experts`: 8 networks of that size, one a token, with the balance loss;
- `experts_bias`: the same, balanced by a bias of the gate in place of a loss;
- `experts_free`: the same without anything that balances them.

The loads are those of the validation text. Speed: the layer alone (forwards and backwards) and an
update of the model, each in turn with the dense one. Intervals are Student's, over the seeds.
Writes results/experts.json. The data is $REGARD_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.experts import ExpertGate, MixtureOfExperts
from regard.attention.probe import Probe, Recorder
from regard.settings.language_models import CausalTransformerSettings
from regard.studies.small_models import (
    Characters,
    MeanOverSeeds,
    SmallTraining,
    TrainingBudget,
    train_small,
)
from regard.transformer.layers import FeedForward
from result import write_result
from small_texts import shakespeare

EXPERTS, WIDTH, CONTEXT, BATCH = 8, 128, 64, 32
BAR = 1.6  # the longest time a token, compared with the dense layer of one expert's size
EIGHT = {"experts": EXPERTS, "expert_gate": "softmax"}
KINDS: dict[str, dict[str, Any]] = {
    "dense": {},
    "experts": EIGHT | {"balance_loss": 0.01},
    "experts_bias": EIGHT | {"balance_loss": 0.0, "expert_bias": True},
    "experts_free": EIGHT | {"balance_loss": 0.0},
}


def main() -> None:
    """Train all kinds with each seed, measure the speeds, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--updates", type=int, default=300)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--rounds", type=int, default=12)
    given = options.parse_args()
    torch.set_num_threads(1)
    text = shakespeare()
    found: dict[str, list[SmallTraining]] = {}
    for seed in given.seeds:
        fixed = TrainingBudget(updates=given.updates, batch_size=BATCH, seed=seed)
        for name, more in KINDS.items():
            note(found, name, train_small(settings(**more), text, fixed))
        same_time = TrainingBudget(
            seconds=found["experts"][-1].last.seconds, batch_size=BATCH, seed=seed
        )
        note(found, "dense_same_time", train_small(settings(), text, same_time))
        wide = settings(feed_forward=4 * WIDTH * EXPERTS)
        note(found, "dense_same_parameters", train_small(wide, text, same_time))
    report(found, text, given)


def settings(**more: Any) -> CausalTransformerSettings:
    """Return the model that all have in common."""
    sizes = {"layers": 2, "model_dim": WIDTH, "heads": 4, "context": CONTEXT}
    return CausalTransformerSettings.model_validate(sizes | more)


def note(found: dict[str, list[SmallTraining]], name: str, trained: SmallTraining) -> None:
    """Keep a training and show it."""
    found.setdefault(name, []).append(trained)
    print(name, len(found[name]), trained.last, flush=True)


@torch.no_grad()
def loads(trained: SmallTraining, text: Characters) -> list[list[float]]:
    """Return the share of the validation tokens that each expert gets, layer by layer."""
    recorder = Recorder()
    trained.model.eval()
    tokens = text.valid[: 64 * CONTEXT].view(64, CONTEXT)
    trained.model(tokens, probe=Probe(recorder, attention=False))
    layers = sorted(layer for _, layer, name in recorder.values if name == "gate")
    return [
        (recorder.get("decoder", layer, "gate") > 0).double().mean(dim=(0, 1)).tolist()
        for layer in layers
    ]


def seconds_of_layer(width: int, tokens: int, rounds: int) -> dict[str, float]:
    """Return the median seconds of one layer, forwards and backwards, in turn with the other."""

    def network() -> FeedForward:
        return FeedForward(width, hidden=4 * width, activation="gelu")

    torch.manual_seed(1)
    mixed = MixtureOfExperts(
        [network() for _ in range(EXPERTS)],
        gate=ExpertGate(width, experts=EXPERTS),
        balance=0.01,
    )
    layers: dict[str, nn.Module] = {"dense": network(), "experts": mixed}
    times: dict[str, list[float]] = {name: [] for name in layers}
    for number in range(rounds + 3):
        inputs = torch.randn(tokens // CONTEXT, CONTEXT, width, requires_grad=True)
        for name, layer in layers.items():
            began = time.process_time()
            output: Tensor = layer(inputs)
            output.square().sum().backward()  # type: ignore[no-untyped-call]
            if number >= 3:
                times[name].append(time.process_time() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def report(
    found: dict[str, list[SmallTraining]], text: Characters, given: argparse.Namespace
) -> None:
    """Write the result file."""
    figures: dict[str, float] = {}
    details: dict[str, Any] = {"updates": given.updates, "batch": [BATCH, CONTEXT]}
    for name, trained in found.items():
        loss = MeanOverSeeds.of([one.last.loss for one in trained])
        details[name] = {
            "loss": loss.to_dict(),
            "losses": [round(one.last.loss, 4) for one in trained],
            "updates": [one.last.updates for one in trained],
            "seconds": [round(one.last.seconds, 1) for one in trained],
            "parameters": trained[0].parameters,
        }
        figures[f"{name}_loss"] = round(loss.mean, 4)
        if name.startswith("experts"):
            shares = [loads(one, text) for one in trained]
            details[name]["loads"] = [[[round(x, 3) for x in row] for row in one] for one in shares]
            rows = [row for one in shares for row in one]
            figures[f"{name}_largest_load"] = round(statistics.mean(map(max, rows)), 3)
            figures[f"{name}_idle"] = round(
                statistics.mean(sum(x < 0.01 for x in row) for row in rows), 2
            )
    for other in ("dense", "dense_same_time", "dense_same_parameters", "experts_free"):
        pairs = zip(found["experts"], found[other], strict=True)
        gain = MeanOverSeeds.of([b.last.loss - a.last.loss for a, b in pairs])
        details[f"gain_over_{other}"] = gain.to_dict()
        figures[f"gain_over_{other}"] = round(gain.mean, 4)
    for width, tokens in ((128, 2048), (256, 2048), (512, 4096)):
        seconds = seconds_of_layer(width, tokens, given.rounds)
        ratio = seconds["experts"] / seconds["dense"]
        figures[f"layer_{width}_time_ratio"] = round(ratio, 3)
        details[f"layer_{width}"] = {"tokens": tokens, "seconds": seconds, "ratio": ratio}
        print(width, ratio, flush=True)
    ratios = [
        a.last.seconds / b.last.seconds
        for a, b in zip(found["experts"], found["dense"], strict=True)
    ]
    figures["update_time_ratio"] = round(statistics.mean(ratios), 3)
    details["update_time_ratio"] = MeanOverSeeds.of(ratios).to_dict()
    figures["bar_layer_time_ratio"] = BAR
    seeds = " ".join(map(str, given.seeds))
    command = f"python bench/experts.py --updates {given.updates} --seeds {seeds}"
    print(write_result("experts", figures, command=command, details=details))


if __name__ == "__main__":
    main()
