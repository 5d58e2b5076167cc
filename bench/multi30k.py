"""Multi30k, text only: transformer-tiny from English to German or French.

    python bench/multi30k.py [--pair en-de] [--text tok] [--minutes 110] [--runs FOLDER]
                             [--start-from RUN] [--set KEY=VALUE]

Trains (a stopped training is continued) on the lower-cased, tokenised text, whose BLEU on test 2016
is taken without further tokenisation, or with `--text raw` on the raw text, whose BLEU is cased and
13a. Checkpoints are averaged, the search has beam 5; the model, and then the length penalty of its
search (as `regard tune` does it), are chosen on the validation part alone.
Renews the figures of this text in results/multi30k-PAIR.json; the minutes are those of the
tokenised text, with those of the run that it was started from. The data is
$REGARD_DATA/multi30k, or ../shared/data/multi30k.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
from rich.console import Console

from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.scoring.bleu import corpus_bleu
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits, read_splits
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from regard.tasks.translation.tuning import choose_penalty, try_length_penalties
from regard.training.checkpoint import read_state
from result import commit, read_result, write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
# Name of the kind of text: what stands between a file's name and its language, BLEU's tokenizer.
TEXTS = {"tok": (".lc.norm.tok", "none"), "raw": ("", "13a")}
FIGURES = {"tok": "bleu_tokenised", "raw": "bleu_cased_13a"}
# Sampled subwords keep 29,000 pairs from being learned by heart; the likely ones come last.
SETTINGS = [
    "tokenizer.size=10000",
    "training.steps=1000000",
    "training.validate_every=1500",
    "training.subword_sampling=0.2",
    "training.sampling_share=0.7",
    "training.validate_sentences=1014",
    "training.checkpoint_every=250",
    "training.average=5",
    "decoding.beam=5",
]


def main() -> None:
    """Train, test and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pair", choices=["en-de", "en-fr"], default="en-de")
    options.add_argument("--text", choices=list(TEXTS), default="tok")
    options.add_argument("--minutes", type=float, default=110.0, help="of training")
    options.add_argument("--start-from", type=Path, metavar="RUN", help="an earlier training")
    options.add_argument("--data", type=Path, default=DATA / "multi30k")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/multi30k"))
    options.add_argument("--set", action="append", default=[], help="a setting, key=value")
    given = options.parse_args()
    changes = [*given.set]
    if given.start_from is not None:
        changes.append(f"training.start_from={given.start_from}")
    recipe = recipe_of(given.text, given.pair, given.data, minutes=given.minutes, changes=changes)
    splits = read_splits(recipe.data)
    folder = given.runs / f"{given.pair}-{given.text}"
    model = train(recipe, folder, splits)
    tokenize = TEXTS[given.text][1]
    own = recipe.decoding.length_penalty
    tried = list(try_length_penalties(model, splits.valid, tokenize=tokenize))
    penalty = choose_penalty(tried, splits.valid, present=own, tokenize=tokenize)
    chosen = penalty.chosen.length_penalty
    found = model.translate(
        [pair.source for pair in splits.test], attention=False, length_penalty=chosen
    )
    references = [pair.target for pair in splits.test]
    score = corpus_bleu([one.text for one in found], references, tokenize=tokenize)
    command = f"python bench/multi30k.py --pair {given.pair} --text {given.text}"
    command += f" --minutes {given.minutes:g}"
    if given.start_from is not None:
        command += " --start-from RUN"
    command += "".join(f" --set {change}" for change in given.set)
    minutes = [minutes_of(given.start_from)] if given.start_from is not None else []
    minutes.append(minutes_of(folder))
    note = {
        "command": command,
        "commit": commit(),
        "signature": score.signature,
        "minutes": [round(value, 1) for value in minutes],
        "validation_bleu": {str(one.length_penalty): round(one.score.value, 2) for one in tried},
        "length_penalty": chosen,
        "length_penalty_p_value": penalty.p_value,
        "settings": [*SETTINGS, *given.set],
        "threads": torch.get_num_threads(),
    }
    name = f"multi30k-{given.pair}"
    record = read_result(name)
    figures, notes = record.get("figures", {}), record.get("notes", {})
    figures[FIGURES[given.text]] = round(score.value, 2)
    if given.text == "tok":
        figures["training_minutes"] = round(sum(minutes), 1)
    path = write_result(name, figures, command=command, notes=notes | {given.text: note})
    print(json.dumps(figures | note, indent=1), f"\nwrote {path}")


def recipe_of(
    text: str, pair: str, data: Path, *, minutes: float, changes: list[str]
) -> TranslationRecipe:
    """Return transformer-tiny with the files of one kind of text."""
    middle, _ = TEXTS[text]
    names = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    files = [
        f"data.{part}={[f'{data / text / name}{middle}.{side}.gz' for side in pair.split('-')]}"
        for part, name in names.items()
    ]
    overrides = [*files, *SETTINGS, f"training.minutes={minutes}", *changes]
    return expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)


def train(recipe: TranslationRecipe, folder: Path, splits: Splits) -> LoadedTranslator:
    """Train or continue."""
    run = finish_or_start(folder, recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title=folder.name) as display:
        return train_translator(recipe, run, splits=splits, observers=[display]).model


def minutes_of(folder: Path) -> float:
    """Return how long a training took."""
    newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
    return float(read_state(newest)["progress"]["seconds"]) / 60


if __name__ == "__main__":
    main()
