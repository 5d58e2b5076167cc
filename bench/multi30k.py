"""Multi30k, text only: transformer-tiny from English to German or French.

    python bench/multi30k.py [--pair en-de] [--minutes 110] [--minutes-raw 110] [--runs FOLDER]

Trains twice (a stopped training is continued): on the lower-cased, tokenised text, whose BLEU on
test 2016 is taken without further tokenisation, and on the raw text, whose BLEU is cased and 13a.
Checkpoints are averaged, models chosen on the validation part alone, and searched with beam 5.
Writes results/multi30k-PAIR.json; with `--only tok` it has no figure of the raw text. The data is
$REGARD_DATA/multi30k, or ../shared/data/multi30k.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import torch
from rich.console import Console

from regard.cli.display import TrainingDisplay
from regard.corpora.pair import SentencePair
from regard.recipes.catalog import find_recipe
from regard.recipes.data import read_splits
from regard.recipes.loaded import LoadedTranslator
from regard.recipes.resume import finish_or_start, limits_of
from regard.recipes.translate import train_translator
from regard.scoring.bleu import corpus_bleu
from regard.scoring.score import Score
from regard.settings.schema import expect
from regard.settings.translation import TranslationRecipe
from regard.training.checkpoint import read_state
from result import write_result

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
# Name of the kind of text: what stands between a file's name and its language, BLEU's tokenizer.
TEXTS = {"tok": (".lc.norm.tok", "none"), "raw": ("", "13a")}
FIGURES = {"tok": "bleu_tokenised", "raw": "bleu_cased_13a"}
SETTINGS = [
    "tokenizer.size=10000",
    "training.steps=1000000",
    "training.validate_every=1500",
    "training.subword_sampling=0.3",
    "training.validate_sentences=1014",
    "training.checkpoint_every=250",
    "training.average=5",
    "decoding.beam=5",
]


def main() -> None:
    """Train, test and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pair", choices=["en-de", "en-fr"], default="en-de")
    options.add_argument("--minutes", type=float, default=110.0, help="of training")
    options.add_argument("--minutes-raw", type=float, help="for the raw text, where they differ")
    options.add_argument("--data", type=Path, default=DATA / "multi30k")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/multi30k"))
    options.add_argument("--only", choices=list(TEXTS), help="train on just this text")
    options.add_argument("--set", action="append", default=[], help="a setting, key=value")
    given = options.parse_args()
    scores: dict[str, Score] = {}
    minutes: dict[str, float] = {}
    limits = {"tok": given.minutes, "raw": given.minutes_raw or given.minutes}
    for text in [given.only] if given.only else list(TEXTS):
        recipe = recipe_of(text, given.pair, given.data, minutes=limits[text], changes=given.set)
        scores[text], minutes[text] = train_and_test(
            recipe, given.runs / f"{given.pair}-{text}", tokenize=TEXTS[text][1]
        )
        print(text, scores[text].value, scores[text].signature)
    if given.only == "raw" or given.set:
        return
    figures = {FIGURES[text]: round(score.value, 2) for text, score in scores.items()}
    figures["training_minutes"] = round(minutes["tok"], 1)
    notes = {
        "signatures": {text: score.signature for text, score in scores.items()},
        "minutes": {text: round(value, 1) for text, value in minutes.items()},
        "settings": SETTINGS,
        "threads": torch.get_num_threads(),
    }
    command = f"python bench/multi30k.py --pair {given.pair} --minutes {given.minutes:g}"
    if given.only:
        command += f" --only {given.only}"
    elif given.minutes_raw:
        command += f" --minutes-raw {given.minutes_raw:g}"
    path = write_result(f"multi30k-{given.pair}", figures, command=command, notes=notes)
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


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


def train_and_test(
    recipe: TranslationRecipe, folder: Path, *, tokenize: str
) -> tuple[Score, float]:
    """Train or continue; return BLEU on the test part and the minutes that training took."""
    splits = read_splits(recipe.data)
    run = finish_or_start(folder, recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title=folder.name) as display:
        trained = train_translator(recipe, run, splits=splits, observers=[display])
    newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
    minutes = read_state(newest)["progress"]["seconds"] / 60
    return bleu(trained.model, splits.test, tokenize=tokenize), minutes


def bleu(model: LoadedTranslator, pairs: list[SentencePair], *, tokenize: str) -> Score:
    """Return the BLEU of beam search on these pairs."""
    found = model.translate([pair.source for pair in pairs], attention=False)
    references = [pair.target for pair in pairs]
    return corpus_bleu([one.text for one in found], references, tokenize=tokenize)


if __name__ == "__main__":
    main()
