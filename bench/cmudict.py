"""Letters to phonemes on the CMU dictionary: with and without attention, in the same time.

    python bench/cmudict.py [--minutes 30] [--only luong] [--runs runs/bench/cmudict]

Trains char-lstm, bahdanau and luong for these minutes each (an interrupted training is continued)
on 90 % of the words, chooses by the loss on 5 %, tests on the other 5 % and writes
results/cmudict.json. Stress is removed, which leaves 39 phonemes; a word is right if it equals any
of its listed pronunciations, and phonemes are counted against the nearest of them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
from pathlib import Path

from rich.console import Console

from regard.corpora.parallel import SentencePair
from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.scoring.measures import sequence_error_rate, token_error_rate
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits
from regard.tasks.translation.evaluation import TrainedTranslator
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from result import write_result

DICTIONARY = Path(__file__).parents[2] / "shared" / "data" / "cmudict" / "cmudict.dict"
RECIPES = {"plain": "char-lstm", "bahdanau": "bahdanau", "luong": "luong"}
LETTERS = string.ascii_letters  # one for each phoneme, so that a phoneme is one character
COMMON = [
    "tokenizer.kind=character",
    "batches.tokens=3072",
    "training.steps=1000000",
    "training.learning_rate=2e-3",
    "training.select=loss",
    "training.validate_every=1000",
    "training.validate_sentences=20",
    "training.checkpoint_every=500",
    "decoding.max_ratio=2",
]
# All have 256 hidden units. Dropout on one-hot input hides whole letters: without it char-lstm is
# better after six minutes (validation loss 0.59 against 0.83 with 0.2). The others' dropout is a
# first choice and was not searched for.
OWN = {
    "plain": ["model.dropout=0.0"],
    "bahdanau": ["model.dropout=0.3", "model.embedding=128"],
    "luong": ["model.dropout=0.3", "model.embedding=128"],
}

Dictionary = dict[str, list[str]]


def main() -> None:
    """Train, test and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30.0)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/cmudict"))
    options.add_argument("--dictionary", type=Path, default=DICTIONARY)
    options.add_argument("--only", choices=list(RECIPES), help="train just this model")
    options.add_argument("--set", action="append", default=[], help="a setting, key=value")
    given = options.parse_args()
    words, phonemes = read_dictionary(given.dictionary)
    parts = split(words)
    names = [given.only] if given.only else list(RECIPES)
    figures: dict[str, float] = {}
    details: dict[str, object] = {"phonemes": len(phonemes)}
    details |= {f"{part}_words": len(members) for part, members in parts.items()}
    for name in names:
        trained = train(name, given.runs, given.minutes, words, parts, given.set)
        found = test(trained, words, parts["test"])
        figures |= {f"wer_{name}": found["wer"], f"per_{name}": found["per"]}
        details[name] = found
        print(name, json.dumps(found))
    if given.only or given.set:
        return
    figures["training_minutes"] = given.minutes
    command = f"python bench/cmudict.py --minutes {given.minutes:g}"
    path = write_result("cmudict", figures, command=command, details=details)
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def read_dictionary(path: Path) -> tuple[Dictionary, dict[str, str]]:
    """Return each word's pronunciations, a letter a phoneme, and the letters of the phonemes."""
    entries: dict[str, list[list[str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        word, *sounds = line.partition("#")[0].split()
        plain = [sound.rstrip("012") for sound in sounds]
        entries.setdefault(re.sub(r"\(\d+\)$", "", word), []).append(plain)
    sounds = sorted({sound for variants in entries.values() for v in variants for sound in v})
    letters = dict(zip(sounds, LETTERS, strict=False))
    words = {
        word: list(dict.fromkeys("".join(letters[s] for s in variant) for variant in variants))
        for word, variants in entries.items()
    }
    return words, letters


def split(words: Dictionary) -> dict[str, list[str]]:
    """Return 90, 5 and 5 % of the words; a word's pronunciations stay together."""
    shuffled = sorted(words)
    random.Random(1).shuffle(shuffled)
    five = len(shuffled) // 20
    return {
        "test": shuffled[:five],
        "valid": shuffled[five : 2 * five],
        "train": shuffled[2 * five :],
    }


def train(
    name: str,
    folder: Path,
    minutes: float,
    words: Dictionary,
    parts: dict[str, list[str]],
    changes: list[str],
) -> TrainedTranslator:
    """Train one model for some minutes, or continue an interrupted training."""
    overrides = [*COMMON, *OWN[name], f"training.minutes={minutes}", *changes]
    recipe = expect(find_recipe(RECIPES[name], overrides=overrides), TranslationRecipe)
    run = finish_or_start(folder / name, recipe)
    splits = Splits(
        train=[SentencePair(word, sounds) for word in parts["train"] for sounds in words[word]],
        valid=[SentencePair(word, words[word][0]) for word in parts["valid"]],
        test=[],
    )
    with TrainingDisplay(Console(), limits_of(recipe.training), title=name) as display:
        return train_translator(recipe, run, splits=splits, observers=[display])


def test(trained: TrainedTranslator, words: Dictionary, chosen: list[str]) -> dict[str, float]:
    """Return the error rates on words that were never trained on, by beam search and greedily."""
    references = [words[word] for word in chosen]
    rates = {}
    for label, beam in (("", None), ("_greedy", 1)):
        found = trained.model.translate(chosen, beam=beam, attention=False)
        outputs = [translation.text for translation in found]
        rates[f"wer{label}"] = round(sequence_error_rate(outputs, references).value, 2)
        rates[f"per{label}"] = round(token_error_rate(outputs, references).value, 2)
    return rates


if __name__ == "__main__":
    main()
