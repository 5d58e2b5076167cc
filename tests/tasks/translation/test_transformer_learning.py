"""Toy tasks that a small Transformer must learn: to copy, to reverse and to sort."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from regard.corpora.parallel import SentencePair
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

SYMBOLS = "abcdefghij"
SETTINGS = [
    "tokenizer.kind=word",
    "model.layers=1",
    "model.model_dim=64",
    "model.feed_forward=128",
    "model.norm_placement=pre",
    "model.dropout=0",
    "batches.tokens=1500",
    "training.schedule=cosine",
    "training.learning_rate=0.005",
    "training.warmup=60",
    "training.label_smoothing=0",
    "training.average=0",
    "training.validate_every=1000",
    "training.checkpoint_every=1000",
    "decoding.beam=1",
]
Task = Callable[[tuple[str, ...]], list[str]]
# Name: what should come out, and the updates that it takes.
TASKS: dict[str, tuple[Task, int]] = {
    "copy": (list, 400),
    "reverse": (lambda symbols: list(reversed(symbols)), 600),
    "sort": (sorted, 400),
}


def splits(task: Task) -> Splits:
    """Return sequences of 3 to 7 symbols; those of the test are in no other part."""
    random = Random(1)
    drawn = {tuple(random.choices(SYMBOLS, k=random.randint(3, 7))): None for _ in range(16_000)}
    pairs = [SentencePair(" ".join(symbols), " ".join(task(symbols))) for symbols in drawn]
    return Splits(test=pairs[:300], valid=pairs[300:350], train=pairs[350:])


@pytest.mark.learning
@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_the_task_is_learned(name: str, tmp_path: Path) -> None:
    task, steps = TASKS[name]
    overrides = [*SETTINGS, f"training.steps={steps}"]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    corpus = splits(task)
    run = open_run(tmp_path / "run", recipe, resume=False)
    model = train_translator(recipe, run, splits=corpus).model
    found = model.translate([pair.source for pair in corpus.test], attention=False)
    right = sum(t.text == pair.target for t, pair in zip(found, corpus.test, strict=True))
    assert right / len(corpus.test) > 0.99
