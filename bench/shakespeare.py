"""Tiny Shakespeare: a character model of a fixed recipe, a better one in the same time, and speed.

    python bench/shakespeare.py [--hugging-face PYTHON] [--threads 1] [--rounds 3]

First the recipe `gpt-nano` as it is (4 layers, 4 heads, width 128, context 64, batch 12, 2,000
updates) with three seeds, then other settings for the same wall time, both measured over the whole
validation part (the last tenth). Then the same model in `transformers` with a plain loop, and the
same updates by bare operations of torch, which show how much there is left to gain: pieces of
all trainings alternate, each in a process of its own, and the ratios are those of the
median times an update.
PYTHON is that of an environment with torch and transformers; without one, this one is used.
Writes results/shakespeare.json; with `--part speed` it renews the speeds alone. The data is
$REGARD_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.testing import assert_close

from bare_gpt import bare_gradient
from regard.batching.order import BatchPosition
from regard.batching.texts import StreamBatch, WindowOrder, iterate_stream
from regard.compute.device import keep_memory
from regard.models.inspection import parameter_count
from regard.models.language_model import build_language_model
from regard.runs.run import Run, finish_or_start
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.language_modelling.data import prepare_text
from regard.tasks.language_modelling.model import TrainedLanguageModel
from regard.tasks.language_modelling.objective import next_token_loss
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.language_modelling.training import (
    optimizer_of,
    rate_of,
    train_language_model,
)
from regard.training.checkpoint import read_state
from regard.training.update import AddGradient, add_gradient, update
from result import read_result, write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
# In the same time: a higher rate that the rotary positions and the norms stand well, and a decay to
# almost nothing.
BETTER = [
    "model.positions=rotary",
    "model.norm=rms",
    "model.activation=swiglu",
    "model.feed_forward=344",
    "training.learning_rate=0.004",
    "training.lowest_rate=0.01",
    "training.beta2=0.98",
    "training.steps=1000000",
    "training.validate_every=1000000",
    "training.checkpoint_every=1000",
]
SEEDS = (1, 2, 3)  # of the fixed recipe; the loss is their mean
WARM, TIMED = 20, 100  # updates of a piece of the alternating run


def main() -> None:
    """Train twice, race once, and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--text", type=Path, default=DATA / "language-model/tinyshakespeare.txt.gz"
    )
    options.add_argument("--runs", type=Path, default=Path("runs/bench/shakespeare"))
    options.add_argument("--hugging-face", default=sys.executable, metavar="PYTHON")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--part", choices=["plain", "better", "speed", "all"], default="all")
    options.add_argument("--set", action="append", default=[], help="a setting of the better one")
    options.add_argument("--piece", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.piece is not None:
        print(json.dumps(own_piece(given.piece, bare=given.bare)))
        return
    figures: dict[str, float] = {}
    if given.part in ("plain", "better", "all"):
        plain = [
            train(recipe_of(given.text, f"training.seed={seed}"), given.runs / f"plain-{seed}")
            for seed in SEEDS
        ]
        losses = [one.metrics["loss"] for one in plain]
        seconds = statistics.median(seconds_of(one) for one in plain)
        figures |= {"validation_loss": statistics.mean(losses), "training_seconds": seconds}
        print(losses, f"{seconds:.0f} s")
    if given.part in ("better", "all"):
        changes = [*BETTER, f"training.minutes={seconds / 60}", *given.set]
        better = train(recipe_of(given.text, *changes), given.runs / "better")
        figures["best_loss_same_time"] = better.metrics["loss"]
        print(json.dumps(better.metrics), f"{seconds_of(better):.0f} s")
    if given.part in ("speed", "all"):
        figures |= race(given)
    if given.part in ("speed", "all") and not given.set:
        command = f"python bench/shakespeare.py --threads {given.threads} --rounds {given.rounds}"
        if given.part == "speed":  # the losses stay as they are on record
            record = read_result("shakespeare")
            details = {"losses": {key: record[key] for key in ("command", "commit")}}
            figures, details = record["figures"] | figures, record["details"] | details
            command += " --part speed"
        else:
            details = {"settings_of_the_better_one": BETTER, "losses_of_seeds": losses}
        rounded = {name: round(value, 4) for name, value in figures.items()}
        print(write_result("shakespeare", rounded, command=command, details=details))
    print(json.dumps(figures, indent=1))


def recipe_of(text: Path, *changes: str) -> LanguageModelRecipe:
    """Return gpt-nano for this text."""
    fixed = ["training.validate_every=2000", "training.checkpoint_every=500"]
    overrides = [f"data.text={text}", *fixed, "decoding.max_tokens=300", *changes]
    return expect(find_recipe("gpt-nano", overrides=overrides), LanguageModelRecipe)


def train(recipe: LanguageModelRecipe, folder: Path) -> TrainedLanguageModel:
    """Train, or go on with a training that was stopped."""
    return train_language_model(recipe, finish_or_start(folder, recipe))


def seconds_of(trained: TrainedLanguageModel) -> float:
    """Return how long a training took, validation included."""
    newest = sorted((trained.run.folder / "checkpoints").glob("step-*"))[-1]
    return float(read_state(newest)["progress"]["seconds"])


def race(given: argparse.Namespace) -> dict[str, float]:
    """Return the time of an update compared with `transformers`, measured in turns."""
    times: dict[str, list[float]] = {"own": [], "theirs": [], "bare": []}
    environment = os.environ | {"OMP_NUM_THREADS": str(given.threads)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recipe = recipe_of(given.text)
        data = prepare_text(Run.create(folder / "run", recipe), recipe)
        shape = {"tokens": str(data.train.path), "vocab": data.text.size, "threads": given.threads}
        (folder / "shape.json").write_text(json.dumps(shape))
        (folder / "loop.py").write_text(PLAIN_LOOP)
        own = [sys.executable, __file__, "--piece", folder, "--threads", str(given.threads)]
        theirs = [given.hugging_face, folder / "loop.py", folder / "shape.json"]
        commands = {"own": own, "theirs": theirs, "bare": [*own, "--bare"]}
        for _ in range(given.rounds):
            for side, command in commands.items():
                found = subprocess.run(
                    command, env=environment, capture_output=True, text=True, check=True
                )
                times[side] += json.loads(found.stdout.splitlines()[-1])
    ours, reference, bare = (statistics.median(found) for found in times.values())
    return {
        "milliseconds_an_update": 1e3 * ours,
        "milliseconds_an_update_hf": 1e3 * reference,
        "milliseconds_an_update_bare": 1e3 * bare,
        "speed_ratio_vs_hf": reference / ours,
        "speed_ratio_vs_hf_bare": reference / bare,
    }


def own_piece(folder: Path, *, bare: bool) -> list[float]:
    """Return the seconds of each update of a short training of gpt-nano, or of bare operations."""
    keep_memory()  # as every training does
    run = Run.open(folder / "run")
    recipe = run.recipe(LanguageModelRecipe)
    data = prepare_text(run, recipe)
    settings = recipe.training
    model = build_language_model(recipe.model, vocab=data.text.size)
    print(f"{parameter_count(model)} parameters")
    optimizer = optimizer_of(model, settings)
    parameters = list(model.parameters())
    order = WindowOrder(
        len(data.train), context=recipe.model.context, batch_size=settings.batch_size, seed=1
    )
    times = []
    batches = iterate_stream(data.train, order, start=BatchPosition())
    right: AddGradient[StreamBatch] = partial(add_gradient, partial(next_token_loss, model))
    chosen = right
    if bare:
        shape = {"batch": settings.batch_size, "time": recipe.model.context}
        chosen = same(right, bare_gradient(model, **shape), parameters)
    for step in range(1, WARM + TIMED + 1):
        began = time.perf_counter()
        _, batch = next(batches)
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, step / settings.steps, settings=settings)
        update(
            [batch],
            add_gradient=chosen,
            parameters=parameters,
            optimizer=optimizer,
            clip=settings.clip,
        )
        times.append(time.perf_counter() - began)
    return times[WARM:]


def same(
    right: AddGradient[StreamBatch], bare: AddGradient[StreamBatch], parameters: list[Parameter]
) -> AddGradient[StreamBatch]:
    """Return the bare gradient, which is compared with the right one the first time."""
    compared = False

    def add_gradient(batch: StreamBatch, tokens: int) -> float:
        nonlocal compared
        if not compared:
            compared = True
            wanted = right(batch, tokens)
            gradients = [clone(parameter) for parameter in parameters]
            found = bare(batch, tokens)
            pairs = zip(parameters, gradients, strict=True)
            for one, other in [(found, wanted), *((clone(p), g) for p, g in pairs)]:
                assert_close(one, other, rtol=1e-4, atol=1e-6)
        return bare(batch, tokens)

    return add_gradient


def clone(parameter: Parameter) -> Tensor:
    """Return a copy of a parameter's gradient."""
    if parameter.grad is None:
        raise RuntimeError("a parameter has no gradient")
    return parameter.grad.clone()


# What anybody would write with `transformers`: the same sizes, optimiser, batches and clipping.
PLAIN_LOOP = f"""
import json, sys, time
import numpy, torch, transformers

shape = json.load(open(sys.argv[1]))
torch.set_num_threads(shape["threads"])
tokens = numpy.memmap(shape["tokens"], dtype="<u2", mode="r")
config = transformers.GPT2Config(
    vocab_size=shape["vocab"], n_positions=64, n_embd=128, n_layer=4, n_head=4,
    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
)
model = transformers.GPT2LMHeadModel(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)
times = []
for _ in range({WARM + TIMED}):
    began = time.perf_counter()
    starts = numpy.random.randint(0, len(tokens) - 65, size=12)
    windows = torch.from_numpy(numpy.stack([tokens[s : s + 65] for s in starts]).astype("int64"))
    logits = model(windows[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    loss.item()
    times.append(time.perf_counter() - began)
print(json.dumps(times[{WARM}:]))
"""


if __name__ == "__main__":
    main()
