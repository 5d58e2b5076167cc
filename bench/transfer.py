"""What pre-training is worth: SST-2 and TREC with all, a tenth and a hundredth of the labels.

    python bench/transfer.py [--minutes 30] [--runs runs/bench/transfer]

Pre-trains one small language model on the texts at hand (the language-model folder, and the tasks'
own training texts without labels), then trains a classifier from it and the same network from
scratch, with the same labels and seeds: 5 seeds, and 10 with a hundredth of the labels. A network
from scratch may have another learning rate; for each task, share and start the rate is chosen on
the validation part by a seed that is not counted. Reports the mean accuracy of every cell on the
test part, and the mean of the paired differences with its 95 % interval (Student's t).
What is done is kept in --runs, so a stopped run goes on. Writes results/transfer.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
from pathlib import Path

import torch

from regard.runs.run import Run, finish_or_start
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.language_modelling.settings import LanguageModelRecipe
from regard.tasks.language_modelling.training import train_language_model
from regard.tasks.text_classification.data import LabelledSplits, read_labelled_splits
from regard.tasks.text_classification.settings import TextClassificationRecipe
from regard.tasks.text_classification.training import (
    begin_with,
    from_scratch,
    train_text_classifier,
)
from regard.training.checkpoint import read_state
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
TASKS = {
    "sst2": ("sst/stsa.binary.train", "sst/stsa.binary.dev", "sst/stsa.binary.test"),
    "trec": ("trec/TREC.train.all", None, "trec/TREC.test.all"),
}
SHARES = {"100": 1.0, "10": 0.1, "1": 0.01}
# Fewer labels are seen more often; both starts get the same.
EPOCHS = {"sst2": {1.0: 3, 0.1: 8, 0.01: 20}, "trec": {1.0: 4, 0.1: 12, 0.01: 30}}
RATES = (3e-4, 1e-3, 3e-3)
LANGUAGE_MODEL = [
    "tokenizer.kind=sentencepiece",
    "tokenizer.size=4000",
    "model.layers=4",
    "model.heads=4",
    "model.model_dim=128",
    "model.context=64",
    "model.positions=rotary",
    "model.dropout=0.1",
    "training.batch_size=32",
    "training.learning_rate=0.002",
    "training.steps=1000000",
    "training.validate_every=2000",
    "training.checkpoint_every=500",
]
# Student's t for a two-sided interval of 95 %, by degrees of freedom.
STUDENT = {4: 2.776, 9: 2.262}


def main() -> None:
    """Pre-train, fine-tune every cell and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/transfer"))
    options.add_argument("--minutes", type=float, default=30.0, help="of the pre-training")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    pretrained = pretrain(given)
    figures: dict[str, float] = {}
    details: dict[str, object] = {
        "language_model": LANGUAGE_MODEL,
        "rates_tried": list(RATES),
        "epochs": EPOCHS,
    }
    for task in TASKS:
        for name, share in SHARES.items():
            figures |= cell(given, pretrained, task, name, share, details)
            print(json.dumps(figures), flush=True)
    command = f"python bench/transfer.py --minutes {given.minutes:g} --threads {given.threads}"
    print(write_result("transfer", figures, command=command, details=details))


def pretrain(given: argparse.Namespace) -> Path:
    """Return the run of the language model, trained if it is not there yet."""
    given.runs.mkdir(parents=True, exist_ok=True)
    unlabelled = given.runs / "unlabelled.txt"
    if not unlabelled.exists():
        lines = [
            line.partition(b" ")[2]
            for train, _, _ in TASKS.values()
            for line in (given.data / "classification" / train).read_bytes().splitlines()
        ]
        # TREC is not all UTF-8; one odd letter is no reason to go without its text.
        text = b"\n".join(lines).decode("utf-8", errors="replace")
        unlabelled.write_text(text + "\n", encoding="utf-8")
    texts = [*sorted((given.data / "language-model").iterdir()), unlabelled]
    listed = "[" + ",".join(str(path) for path in texts) + "]"
    overrides = [f"data.text={listed}", *LANGUAGE_MODEL, f"training.minutes={given.minutes}"]
    recipe = expect(find_recipe("gpt-nano", overrides=overrides), LanguageModelRecipe)
    trained = train_language_model(recipe, finish_or_start(given.runs / "pretrained", recipe))
    print("pre-trained:", json.dumps(trained.metrics), flush=True)
    return trained.run.folder


def cell(
    given: argparse.Namespace,
    pretrained: Path,
    task: str,
    name: str,
    share: float,
    details: dict[str, object],
) -> dict[str, float]:
    """Return the accuracies of one task with one share of its labels."""
    seeds = range(1, 11 if name == "1" else 6)
    accuracies: dict[str, list[float]] = {}
    for start in ("pretrained", "scratch"):
        tried = {
            rate: measured(given, pretrained, task, share, start, seed=0, rate=rate)[0]
            for rate in RATES
        }
        rate = max(tried, key=lambda each: tried[each])
        details[f"{task}_{name}_{start}_rate"] = rate
        accuracies[start] = [
            measured(given, pretrained, task, share, start, seed=seed, rate=rate)[1]
            for seed in seeds
        ]
    pairs = zip(accuracies["pretrained"], accuracies["scratch"], strict=True)
    gains = [one - other for one, other in pairs]
    width = STUDENT[len(gains) - 1] * statistics.stdev(gains) / math.sqrt(len(gains))
    return {
        **{f"{task}_{name}_{start}": round(statistics.mean(accuracies[start]), 4)
           for start in accuracies},
        f"{task}_{name}_gain": round(statistics.mean(gains), 4),
        f"{task}_{name}_gain_low": round(statistics.mean(gains) - width, 4),
        f"{task}_{name}_gain_high": round(statistics.mean(gains) + width, 4),
    }  # fmt: skip


def measured(
    given: argparse.Namespace,
    pretrained: Path,
    task: str,
    share: float,
    start: str,
    *,
    seed: int,
    rate: float,
) -> tuple[float, float]:
    """Return the accuracy on the validation and on the test part; what is known is read again."""
    record = given.runs / "cells" / f"{task}-{share}-{start}-{seed}-{rate}.json"
    if record.exists():
        valid, test = json.loads(record.read_text())
        return valid, test
    recipe = recipe_of(given, task, share, seed=seed, rate=rate)
    splits = splits_of(recipe)
    recipe = begin_with(recipe, pretrained)
    recipe = recipe if start == "pretrained" else from_scratch(recipe)
    folder = given.runs / "now"
    shutil.rmtree(folder, ignore_errors=True)
    trained = train_text_classifier(
        recipe, Run.create(folder, recipe), splits=splits, tokenizer_of=pretrained
    )
    valid = float(read_state(folder / "best")["metrics"]["accuracy"])
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps([valid, trained.score.accuracy]))
    return valid, trained.score.accuracy


def recipe_of(
    given: argparse.Namespace, task: str, share: float, *, seed: int, rate: float
) -> TextClassificationRecipe:
    """Return the recipe of a cell."""
    train, valid, test = TASKS[task]
    folder = given.data / "classification"
    overrides = [
        f"data.train={utf8(given, folder / train)}",
        f"data.test={utf8(given, folder / test)}",
        *([f"data.valid={utf8(given, folder / valid)}"] if valid else []),
        f"data.share={share}",
        f"data.seed={seed}",
        f"training.seed={seed}",
        f"training.learning_rate={rate}",
        f"training.epochs={EPOCHS[task][share]}",
        "training.tokens=1024",
    ]
    return expect(find_recipe("text-classifier", overrides=overrides), TextClassificationRecipe)


def utf8(given: argparse.Namespace, path: Path) -> Path:
    """Return a copy of a file in which every byte is UTF-8."""
    copy: Path = given.runs / "data" / f"{path.name}.txt"
    if not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(path.read_bytes().decode("utf-8", errors="replace"), encoding="utf-8")
    return copy


def splits_of(recipe: TextClassificationRecipe) -> LabelledSplits:
    """Return the texts of a cell; the seed draws which labels are used."""
    return read_labelled_splits(recipe.data)


if __name__ == "__main__":
    main()
