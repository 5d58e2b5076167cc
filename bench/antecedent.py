"""Does encoder self-attention find the noun that "it" stands for?

    python bench/antecedent.py [--seeds 3] [--runs runs/bench/antecedent] [--test-only]

Trains the recipe `antecedent` with several seeds on sentences of the grammar, without any loss on
attention weights: that "it" is er, sie or es is all that tells the model which noun it stands for.
It is measured on sentences in which "it" could stand for two nouns or more and only an adjective
tells which. The encoder head is chosen on validation sentences, for each seed. The worst of the
seeds is reported. No sentence of the test, nor of the two examples, is trained on. An interrupted
training is continued; with --test-only the runs are used as they are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from regard.base.files import write_json
from regard.batching.batch import collate, encode_pairs
from regard.corpora.grammar import generate
from regard.corpora.grammar.choices import Selection
from regard.corpora.grammar.generate import SplitName
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.parallel import SentencePair
from regard.pictures.arcs import WordAttention, draw_arcs
from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits, grammar_splits
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from result import write_result

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "antecedent.png"
CPU = "cpu_minutes.json"
PLACES = ("minutes", "layer", "head")
SIZES: dict[SplitName, int] = {"valid": 300, "test": 500}
# The same clause twice; what is said of "it" decides which noun is meant.
EXAMPLES = {
    "the animal did not cross the street because it was too tired": "es",
    "the animal did not cross the street because it was too wide": "sie",
}


@dataclass(frozen=True)
class Case:
    """A pronoun, its noun and rivals, what each encoder head saw from it, and the translation."""

    pair: SentencePair
    pronoun: int
    noun: int
    candidates: tuple[int, ...]
    chosen: np.ndarray
    """The most attended word by layer and head."""
    said: str

    @property
    def translated(self) -> bool:
        """Whether the right pronoun stands where the reference has it."""
        assert self.pair.alignment is not None
        place = next(target for source, target in self.pair.alignment if source == self.pronoun)
        return self.said.split()[place : place + 1] == self.pair.target.split()[place : place + 1]


def main() -> None:
    """Train, choose heads, test them, draw the first and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/antecedent"))
    options.add_argument("--set", action="append", default=[], help="settings for a small trial")
    options.add_argument("--test-only", action="store_true", help="of the runs as they are")
    given = options.parse_args()
    torch.set_num_threads(1)
    recipe = expect(find_recipe("antecedent", overrides=given.set), TranslationRecipe)
    valid, test = (contested(recipe, split, size) for split, size in SIZES.items())
    splits = training_splits(recipe, [*valid, *test])
    rows = []
    for seed in range(1, given.seeds + 1):
        folder = given.runs / f"seed-{seed}"
        if not given.test_only:
            changed = [*given.set, f"training.seed={seed}"]
            train(folder, expect(find_recipe("antecedent", overrides=changed), TranslationRecipe),
                  splits)  # fmt: skip
        rows.append(measured(folder, valid, test))
        print(json.dumps(rows[-1]), flush=True)
    more = "".join(f" --set {each}" for each in given.set) + " --test-only" * given.test_only
    report(rows, test, f"OMP_NUM_THREADS=1 python bench/antecedent.py --seeds {given.seeds}{more}")


def report(rows: Sequence[dict[str, float]], test: Sequence[SentencePair], command: str) -> None:
    """Write the result: of each figure that of the worst seed."""
    worst = {name: min(row[name] for row in rows) for name in rows[0] if name not in PLACES}
    figures = {
        **worst,
        "minutes": max(row["minutes"] for row in rows),
        "seeds": len(rows),
        "test_sentences": len(test),
    }
    details = {
        "two_candidates": "sentences in which it could stand for several nouns, by number and kind",
        "pronoun": "the right pronoun at its place in the translation (greedy)",
        "nearest_noun": "how often the nearest candidate would be right",
        "minutes": "of training, of one processor core, of the slowest seed",
        "worst": "each figure is that of the worst seed",
        "seeds": rows,
    }
    path = write_result("antecedent", figures, command=command, details=details)
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def contested(recipe: TranslationRecipe, split: SplitName, size: int) -> list[SentencePair]:
    """Return sentences of the recipe's lengths in which "it" has rivals, and no others."""
    grammar = recipe.data.grammar
    drawn = generate(
        pair=grammar.pair,
        split=split,
        size=2 * size,
        min_words=10,
        max_words=grammar.max_words,
        words=grammar.words,
        contested=1.0,
        seed=grammar.seed,
    )
    return [pair for pair in drawn if any(len(rivals(pair, it)) > 1 for it, _ in pronouns(pair))][
        :size
    ]


def pronouns(pair: SentencePair) -> Iterator[tuple[int, int]]:
    """Yield the places of each "it" and of its noun."""
    words = pair.source.split()
    yield from (each for each in pair.antecedents if words[each[0]] == "it")


def rivals(pair: SentencePair, pronoun: int) -> tuple[int, ...]:
    """Return the nouns before "it" that it could stand for, by number and kind alone."""
    words = pair.source.split()
    return tuple(place for place, word in enumerate(words[:pronoun]) if word in noun_forms())


@cache
def noun_forms() -> frozenset[str]:
    """Return the nouns that "it" can stand for: it is never a person."""
    nouns = Selection(lexicon(small=True)).all_nouns
    return frozenset(noun.english for noun in nouns if noun.kind != "person")


def training_splits(recipe: TranslationRecipe, held_out: Sequence[SentencePair]) -> Splits:
    """Return the recipe's data without the examples; nothing that is measured is among them."""
    splits = grammar_splits(recipe.data.grammar)
    train = [pair for pair in splits.train if pair.source not in EXAMPLES]
    seen = {pair.source for pair in train}
    if seen & {pair.source for pair in held_out}:
        raise RuntimeError("a sentence of the test is trained on")
    return Splits(train=train, valid=splits.valid, test=splits.test)


def train(folder: Path, recipe: TranslationRecipe, splits: Splits) -> None:
    """Train or continue."""
    run, begin = finish_or_start(folder, recipe), time.process_time()
    with TrainingDisplay(Console(), limits_of(recipe.training), title=folder.name) as display:
        train_translator(recipe, run, splits=splits, observers=[display])
    write_json(folder / CPU, minutes_of(folder) + (time.process_time() - begin) / 60)


def minutes_of(folder: Path) -> float:
    """Return the minutes that a training has had so far."""
    path = folder / CPU
    return float(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else 0.0


def measured(
    folder: Path, valid: Sequence[SentencePair], test: Sequence[SentencePair]
) -> dict[str, float]:
    """Return the figures of one run: the head is chosen on validation, all else is the test."""
    model = load(folder)
    validated = list(cases(model, valid, [""] * len(valid)))
    shares = np.mean([case.chosen == case.noun for case in validated], axis=0)
    layer, head = (int(place) for place in np.unravel_index(shares.argmax(), shares.shape))
    outputs = model.translate([pair.source for pair in test], beam=1)
    found = list(cases(model, test, [output.text for output in outputs]))
    said = {text: model.translate(text).text for text in EXAMPLES}
    if folder.name == "seed-1":
        draw_arcs([gaze(model, text, layer, head) for text in EXAMPLES], PICTURE)
    right = [said[text].split()[-4:-3] == [pronoun] for text, pronoun in EXAMPLES.items()]
    share = {
        "pronoun_accuracy_two_candidates": np.mean([case.translated for case in found]),
        "exact_two_candidates": np.mean([case.said == case.pair.target for case in found]),
        "head_accuracy_two_candidates": np.mean(
            [case.chosen[layer, head] == case.noun for case in found]
        ),
        "head_accuracy_validation": shares[layer, head],
        "nearest_noun_accuracy": np.mean([case.candidates[-1] == case.noun for case in found]),
        "random_noun_accuracy": np.mean([1 / len(case.candidates) for case in found]),
    }
    return {
        **{name: round(100 * float(value), 2) for name, value in share.items()},
        "examples_right": sum(right),
        "layer": layer + 1,
        "head": head + 1,
        "minutes": round(minutes_of(folder), 2),
    }


def cases(
    model: LoadedTranslator, pairs: Sequence[SentencePair], said: Sequence[str]
) -> Iterator[Case]:
    """Yield every "it" of these pairs with what each encoder head saw from it."""
    for pair, text in zip(pairs, said, strict=True):
        weights = encoder_weights(model, pair)
        for pronoun, noun in pronouns(pair):
            chosen = weights[:, :, pronoun].argmax(axis=-1)
            yield Case(pair, pronoun, noun, rivals(pair, pronoun), chosen, text)


def encoder_weights(model: LoadedTranslator, pair: SentencePair) -> np.ndarray:
    """Return [layers, heads, words, words]: a word is a token here, and the end mark is none."""
    (example,) = encode_pairs([pair], model.source_tokenizer, model.target_tokenizer)
    batch = collate([example])
    with torch.inference_mode():
        maps = model.model.head_maps(batch.source, batch.source_mask, batch.target_input)
    return np.asarray(maps.encoder[:, 0, :, :-1, :-1].numpy())


def gaze(model: LoadedTranslator, text: str, layer: int, head: int) -> WordAttention:
    """Return what a head sees from the pronoun of a sentence."""
    words, said = text.split(), model.translate(text).text
    weights = encoder_weights(model, SentencePair(text, said))[layer, head, words.index("it")]
    return WordAttention(words, words.index("it"), weights, note=said)


if __name__ == "__main__":
    main()
