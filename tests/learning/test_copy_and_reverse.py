"""Toy tasks that a translator with attention must learn: to copy, and to reverse."""

from __future__ import annotations

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

WORDS = ["bat", "cat", "dog", "elk", "fox", "gnu", "hen", "owl"]
SETTINGS = [
    "tokenizer.kind=word",
    "model.cell=gru",
    "model.hidden=64",
    "model.embedding=32",
    "model.dropout=0",
    "batches.tokens=1000",
    "training.steps=450",
    "training.warmup=20",
    "training.learning_rate=0.008",
    "training.validate_every=450",
    "training.checkpoint_every=450",
    "decoding.beam=1",
]
TASKS = {"copy": lambda words: words, "reverse": lambda words: words[::-1]}


def splits(task: str) -> Splits:
    random = Random(1)

    def pairs(size: int) -> list[SentencePair]:
        sources = [random.choices(WORDS, k=random.randint(1, 7)) for _ in range(size)]
        return [SentencePair(" ".join(s), " ".join(TASKS[task](s))) for s in sources]

    return Splits(train=pairs(4000), valid=pairs(50), test=pairs(200))


@pytest.mark.learning
@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_the_task_is_learned(task: str, tmp_path: Path) -> None:
    recipe = expect(find_recipe("seq2seq-attention", overrides=SETTINGS), TranslationRecipe)
    corpus = splits(task)
    run = open_run(tmp_path / "run", recipe, resume=False)
    model = train_translator(recipe, run, splits=corpus).model
    found = model.translate([pair.source for pair in corpus.test], attention=False)
    right = sum(t.text == pair.target for t, pair in zip(found, corpus.test, strict=True))
    assert right / len(corpus.test) > 0.95
