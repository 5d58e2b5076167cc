"""Devices without the hardware: what a pretend accelerator shows, and breaks of compiled updates.

Everything that computes runs on the CPU and on the pretend accelerator of the tests, and its
results are compared. Where a program asks the device for a number, both wait for each other: these
waits are counted in an update and in a step of each search. Last, one update of a translator is
compiled, and the places are counted at which the compiler had to give up and go on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

import regard
from regard.batching.batch import collate, encode_pairs
from regard.corpora.parallel import SentencePair
from regard.models.build import build_translator
from regard.tasks import find_recipe
from regard.tasks.translation.objective import training_loss
from regard.training.update import add_gradient
from scale import Measured

SCRIPT = Path(__file__).parents[1] / "tests" / "devices" / "pretend_tasks.py"
FEW = ("=train transformer", "=decode transformer-translator: beam")


def measure(*, small: bool) -> Measured:
    """Return the figures of this part."""
    rows = run(*(FEW if small else ()))
    unequal = [row for row in rows if not row.get("equal")]
    (waits,) = run("=waits")
    breaks = graph_breaks()
    figures = {
        "pretend_tasks": len(rows),
        "pretend_tasks_equal": len(rows) - len(unequal),
        "host_waits_update": waits["update"],
        "host_waits_greedy_step": waits["greedy_step"],
        "host_waits_beam_step": waits["beam_step"],
        "graph_breaks": sum(breaks.values()),
    }
    return Measured(
        figures,
        {
            "greatest_difference": max(row.get("difference", 0.0) for row in rows),
            "unequal": unequal,
            "waits": {name: found for name, found in waits.items() if name.endswith("_at")},
            "graph_breaks": breaks,
        },
    )


def run(*names: str) -> list[dict[str, Any]]:
    """Return what the cases of these names find, or all, in a process of their own."""
    paths = [str(Path(regard.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    found = subprocess.run(
        [sys.executable, SCRIPT, *names],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "REGARD_DEVICE": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in found.stdout.splitlines()]


def graph_breaks() -> dict[str, int]:
    """Return why a compiled update of a Transformer breaks, and how often."""
    sizes = ["layers=2", "model_dim=16", "heads=2", "feed_forward=32", "source_vocab=20",
             "target_vocab=20"]  # fmt: skip
    recipe = find_recipe("transformer-tiny", overrides=[f"model.{size}" for size in sizes])
    torch.manual_seed(1)
    model = build_translator(recipe.model, source_vocab=20, target_vocab=20)
    batch = collate(encode_pairs([SentencePair("abcd", "efg"), SentencePair("ab", "c")],
                                 Letters(), Letters()))  # fmt: skip
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    model.compile(dynamic=True, backend="eager")  # what breaks does not depend on the backend
    options = {"smoothing": 0.1, "coverage": 0.0, "word_dropout": 0.0, "r_drop": 0.0}

    def loss_sum(given: Any) -> Any:
        return training_loss(model, given, **options)

    add_gradient(loss_sum, batch, batch.target_tokens)
    return {str(reason).splitlines()[0]: int(n) for reason, n in counters["graph_break"].items()}


class Letters:
    """A tokenizer of letters."""

    def encode(self, text: str) -> list[int]:
        """Return the number of each letter."""
        return [4 + ord(letter) - ord("a") for letter in text]
