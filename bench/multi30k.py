"""Multi30k, text only: transformer-tiny from English to German or French.

    python bench/multi30k.py [--pair en-de] [--text tok] [--minutes 200] [--runs FOLDER]
                             [--set KEY=VALUE]

Trains in the stages of `STAGES`, each from the weights of the one before it (a stopped stage is
continued, a finished one is not repeated), on the lower-cased, tokenised text, whose BLEU on test
2016 is taken without further tokenisation, or with `--text raw` on the raw text, whose BLEU is
cased and 13a. Checkpoints are averaged, the search has beam 5; the model, and then the length
penalty of its search (as `regard tune` does it), are chosen on the validation part alone.
`--minutes` is the time of all stages together, which share it in proportion.
Renews the figures of this text in results/multi30k-PAIR.json; nothing is written there when
settings or minutes were changed. The data is $REGARD_DATA/multi30k, or ../shared/data/multi30k.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

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


class Stage(NamedTuple):
    """One training of a series: how long it takes, and its settings besides `SETTINGS`."""

    minutes: float
    settings: tuple[str, ...] = ()


MILDER = (
    "training.precision=bf16",
    "training.subword_sampling=0.3",
    "training.sampling_share=0.6",
)
# How the recorded figures were reached, by pair and text.
STAGES = {
    ("en-de", "tok"): [Stage(95.0), Stage(105.0, (*MILDER, "training.learning_rate=0.005"))],
    ("en-fr", "tok"): [Stage(95.0)],
    ("en-de", "raw"): [Stage(48.0, MILDER)],
    ("en-fr", "raw"): [Stage(48.0, MILDER)],
}
# Of text-only models on test 2016.
PUBLISHED = {"en-de": {"bleu_tokenised": 41.02}, "en-fr": {"bleu_tokenised": 61.8}}


def main() -> None:
    """Train the stages, test the last one and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pair", choices=["en-de", "en-fr"], default="en-de")
    options.add_argument("--text", choices=list(TEXTS), default="tok")
    options.add_argument("--minutes", type=float, help="of all stages; as recorded if left out")
    options.add_argument("--data", type=Path, default=DATA / "multi30k")
    options.add_argument("--runs", type=Path, default=Path("runs/bench/multi30k"))
    options.add_argument("--set", action="append", default=[], help="a setting of all stages")
    given = options.parse_args()
    stages = shared_out(STAGES[given.pair, given.text], given.minutes)
    recipes = recipes_of(stages, given)
    splits = read_splits(next(iter(recipes.values())).data)
    for folder, recipe in recipes.items():
        model = train(recipe, folder, splits)
    tokenize = TEXTS[given.text][1]
    own = model.recipe.decoding.length_penalty
    tried = list(try_length_penalties(model, splits.valid, tokenize=tokenize))
    penalty = choose_penalty(tried, splits.valid, present=own, tokenize=tokenize)
    chosen = penalty.chosen.length_penalty
    found = model.translate(
        [pair.source for pair in splits.test], attention=False, length_penalty=chosen
    )
    references = [pair.target for pair in splits.test]
    score = corpus_bleu([one.text for one in found], references, tokenize=tokenize)
    minutes = [minutes_of(folder) for folder in recipes]
    details = {
        "command": f"python bench/multi30k.py --pair {given.pair} --text {given.text}",
        "commit": commit(),
        "signature": score.signature,
        "minutes": [round(value, 1) for value in minutes],
        "validation_bleu": {str(one.length_penalty): round(one.score.value, 2) for one in tried},
        "length_penalty": chosen,
        "length_penalty_p_value": penalty.p_value,
        "settings": [*SETTINGS],
        "stages": [list(stage.settings) for stage in stages],
        "threads": torch.get_num_threads(),
    }
    print(json.dumps({"bleu": score.value} | details, indent=1))
    if given.set or given.minutes is not None:
        return
    record(given.pair, given.text, score.value, sum(minutes), details)


def shared_out(stages: list[Stage], minutes: float | None) -> list[Stage]:
    """Return the stages with these minutes in all, each with its share of them."""
    if minutes is None:
        return stages
    total = sum(stage.minutes for stage in stages)
    return [stage._replace(minutes=minutes * stage.minutes / total) for stage in stages]


def recipes_of(stages: list[Stage], given: argparse.Namespace) -> dict[Path, TranslationRecipe]:
    """Return transformer-tiny for every stage by its folder; each starts from the one before."""
    middle, _ = TEXTS[given.text]
    names = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    files = [
        f"data.{part}={[f'{given.data / given.text / name}{middle}.{side}.gz' for side in sides]}"
        for sides in [given.pair.split("-")]
        for part, name in names.items()
    ]
    found: dict[Path, TranslationRecipe] = {}
    start: list[str] = []
    for number, stage in enumerate(stages, 1):
        limit = f"training.minutes={stage.minutes}"
        overrides = [*files, *SETTINGS, *stage.settings, limit, *start, *given.set]
        folder = given.runs / f"{given.pair}-{given.text}-{number}"
        recipe = find_recipe("transformer-tiny", overrides=overrides)
        found[folder] = expect(recipe, TranslationRecipe)
        start = [f"training.start_from={folder}"]
    return found


def train(recipe: TranslationRecipe, folder: Path, splits: Splits) -> LoadedTranslator:
    """Train or continue."""
    run = finish_or_start(folder, recipe)
    with TrainingDisplay(Console(), limits_of(recipe.training), title=folder.name) as display:
        return train_translator(recipe, run, splits=splits, observers=[display]).model


def record(
    pair: str, text: str, bleu: float, minutes: float, details: Mapping[str, object]
) -> None:
    """Renew the figures of this text in the result file, and leave those of the other one."""
    name = f"multi30k-{pair}"
    before = read_result(name)
    figures, kept = before.get("figures", {}), before.get("details", {})
    figures[FIGURES[text]] = round(bleu, 2)
    if text == "tok":
        figures["training_minutes"] = round(minutes, 1)
    kept |= {text: details, "published": PUBLISHED[pair]}
    command = str(details["command"])
    print(f"wrote {write_result(name, figures, command=command, details=kept)}")


def minutes_of(folder: Path) -> float:
    """Return how long a training took."""
    newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
    return float(read_state(newest)["progress"]["seconds"]) / 60


if __name__ == "__main__":
    main()
