"""Multi30k, text only: transformer-tiny from English to German or French.

    python bench/multi30k.py [--pair en-de] [--minutes 110] [--runs FOLDER]

Trains twice (a stopped training is continued): on the lower-cased, tokenised text, whose BLEU on
test 2016 is taken without further tokenisation, and on the raw text, whose BLEU is cased and 13a.
Checkpoints are averaged, and beams are 5 wide; model and length penalty are chosen on the
validation part alone.
Writes results/multi30k-PAIR.json; with `--only tok` it has no figure of the raw text. The data is
$REGARD_DATA/multi30k, or ../shared/data/multi30k.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from regard.cli.display import TrainingDisplay
from regard.corpora.pair import SentencePair
from regard.engines.choice import choose_engine
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
    "training.validate_every=500",
    "training.validate_sentences=1014",
    "training.checkpoint_every=250",
    "training.average=5",
    "decoding.beam=5",
]
PENALTIES = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8)


@dataclass(frozen=True)
class Trained:
    """A trained model, the length penalty and the BLEU that it has on the validation part."""

    model: LoadedTranslator
    penalty: float
    bleu: float
    minutes: float
    test: list[SentencePair]


def main() -> None:
    """Train, test and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pair", choices=["en-de", "en-fr"], default="en-de")
    options.add_argument("--minutes", type=float, default=110.0, help="of training")
    options.add_argument("--data", type=Path, default=DATA / "multi30k")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/multi30k"))
    options.add_argument("--only", choices=list(TEXTS), help="train on just this text")
    options.add_argument("--set", action="append", default=[], help="a setting, key=value")
    given = options.parse_args()
    scores: dict[str, Score] = {}
    chosen: dict[str, dict[str, float]] = {}
    for text in [given.only] if given.only else list(TEXTS):
        tokenize = TEXTS[text][1]
        recipe = recipe_of(text, given.pair, given.data, given.minutes, changes=given.set)
        trained = train(recipe, given.runs / f"{given.pair}-{text}", tokenize=tokenize)
        scores[text] = bleu(trained.model, trained.test, penalty=trained.penalty, tokenize=tokenize)
        chosen[text] = {
            "length_penalty": trained.penalty,
            "bleu_validation": round(trained.bleu, 2),
            "minutes": round(trained.minutes, 1),
        }
        print(text, chosen[text], scores[text].value, scores[text].signature)
    if given.only == "raw" or given.set:
        return
    figures = {FIGURES[text]: round(score.value, 2) for text, score in scores.items()}
    figures["training_minutes"] = chosen["tok"]["minutes"]
    notes = {
        "signatures": {text: score.signature for text, score in scores.items()},
        "chosen": chosen,
        "settings": SETTINGS,
        "threads": torch.get_num_threads(),
    }
    command = (
        f"OMP_NUM_THREADS={torch.get_num_threads()} python bench/multi30k.py --pair {given.pair} "
        f"--minutes {given.minutes:g}"
    )
    if given.only:
        command += f" --only {given.only}"
    path = write_result(f"multi30k-{given.pair}", figures, command=command, notes=notes)
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def recipe_of(
    text: str, pair: str, data: Path, minutes: float, *, changes: list[str]
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


def train(recipe: TranslationRecipe, folder: Path, *, tokenize: str) -> Trained:
    """Train or continue; choose the length penalty on the validation part."""
    splits = read_splits(recipe.data)
    run = finish_or_start(folder, recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title=folder.name) as display:
        model = train_translator(recipe, run, splits=splits, observers=[display]).model
    model.engine = choose_engine(model, folder=folder)
    found = {
        penalty: bleu(model, splits.valid, penalty=penalty, tokenize=tokenize).value
        for penalty in PENALTIES
    }
    best = max(found, key=lambda penalty: found[penalty])
    newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
    minutes = read_state(newest)["progress"]["seconds"] / 60
    return Trained(model, best, found[best], minutes, splits.test)


def bleu(
    model: LoadedTranslator, pairs: list[SentencePair], *, penalty: float, tokenize: str
) -> Score:
    """Return the BLEU of beam search on these pairs."""
    sources = [pair.source for pair in pairs]
    found = model.translate(sources, length_penalty=penalty, attention=False)
    references = [pair.target for pair in pairs]
    return corpus_bleu([one.text for one in found], references, tokenize=tokenize)


if __name__ == "__main__":
    main()
