"""Does encoder self-attention find the noun that "it" stands for?

    python bench/antecedent.py [--steps 2500] [--runs runs/bench/antecedent] [--test-only]

Trains a small Transformer on sentences of the grammar. In half of them only the adjective tells
which noun a pronoun stands for ("... because it was too tired / too wide"), and the model learns it
only from the German translation (er, sie or es). The encoder head is chosen on validation data:
the one whose most attended word from the pronoun is most often the gold antecedent. Its share on
test sentences is written to results/antecedent.json, together with that of guessing. An interrupted
training is continued; with --test-only it is used as it is.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from regard.batching.batch import collate, encode_pairs
from regard.corpora.grammar import generate
from regard.corpora.grammar.choices import Selection
from regard.corpora.grammar.generate import SplitName, WordList
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.parallel import SentencePair
from regard.pictures.arcs import WordAttention, draw_arcs
from regard.runs.display import TrainingDisplay
from regard.runs.run import finish_or_start, limits_of
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits
from regard.tasks.translation.evaluation import evaluate
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator
from regard.training.checkpoint import read_state
from result import write_result

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "antecedent.png"
SIZES: dict[SplitName, int] = {"train": 16_000, "valid": 600, "test": 1_000}
WORDS: WordList = "small"
LENGTHS = {"min_words": 8, "max_words": 18}
# One decoder layer: it cannot look for the noun by itself, so the encoder has to.
SETTINGS = [
    "tokenizer.kind=word",
    "tokenizer.shared=false",
    "model.tie=target",
    "model.layers=3",
    "model.decoder_layers=1",
    "model.norm_placement=pre",
    "model.dropout=0.1",
    "batches.tokens=1024",
    "training.optimizer=adam",
    "training.schedule=cosine",
    "training.learning_rate=0.002",
    "training.warmup=200",
    "training.average=0",
    "training.select=loss",
    "training.validate_every=500",
    "training.validate_sentences=50",
    "training.checkpoint_every=250",
    "training.keep=1",
]
# The same clause twice; what is said of "it" decides which noun is meant.
EXAMPLES = [
    "the animal did not cross the street because it was too tired",
    "the animal did not cross the street because it was too wide",
]


@dataclass(frozen=True)
class Case:
    """A pronoun with its gold noun, and how much it looked at each word: [layers, heads, words]."""

    pair: SentencePair
    pronoun: int
    noun: int
    weights: np.ndarray
    translated: bool

    @property
    def chosen(self) -> np.ndarray:
        """Return the most attended word of every layer and head."""
        return self.weights.argmax(axis=-1)


def main() -> None:
    """Train, choose a head, test it, draw it and write the result file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=2_500)
    options.add_argument("--runs", type=Path, default=Path("runs/bench/antecedent"))
    options.add_argument("--test-only", action="store_true", help="of the best model so far")
    given = options.parse_args()
    if not given.test_only:
        train(given.runs, steps=given.steps)
    model = load(given.runs)
    pairs = {split: half_with_pronouns(split, SIZES[split]) for split in ("valid", "test")}
    valid, test = (list(cases(model, part)) for part in pairs.values())
    shares = np.mean([case.chosen == case.noun for case in valid], axis=0)
    layer, head = (int(place) for place in np.unravel_index(shares.argmax(), shares.shape))
    contested = [case for case in test if rivals(case) > 1]
    figures = {
        "accuracy": share_right(test, layer, head),
        "accuracy_contested": share_right(contested, layer, head),
        "accuracy_validation": float(shares.max()),
        "random_word": float(np.mean([1 / case.weights.shape[-1] for case in test])),
        **guesses(test, ""),
        **guesses(contested, "_contested"),
        "pronoun_translated": float(np.mean([case.translated for case in test])),
        "pronoun_most_frequent": most_frequent(test),
        "cases": len(test),
        "cases_contested": len(contested),
        "layer": layer + 1,
        "head": head + 1,
        "bleu": evaluate(model, pairs["test"], beam=1).bleu.value,
        "updates": read_state(given.runs / "best")["progress"]["step"],
    }
    figures = {name: round(value, 4) for name, value in figures.items()}
    draw_arcs([gaze(model, text, layer, head) for text in EXAMPLES], PICTURE)
    details = {
        "guesses": "among the nouns before the pronoun that its number and kind allow",
        "contested": "cases in which these are at least two",
        "validation_shares": np.round(shares, 3).tolist(),
        "settings": SETTINGS,
    }
    command = f"OMP_NUM_THREADS=1 python bench/antecedent.py --steps {given.steps}"
    command += " --test-only" if given.test_only else ""
    path = write_result("antecedent", figures, command=command, details=details)
    print(json.dumps(figures, indent=1), f"\nwrote {path}")


def half_with_pronouns(split: SplitName, size: int) -> list[SentencePair]:
    """Return pairs of the grammar: as many with a pronoun that has its noun in sight as without."""
    drawn = generate(pair="en-de", split=split, size=3 * size, words=WORDS, **LENGTHS)
    found = [pair for pair in drawn if pair.antecedents][: size // 2]
    if len(found) < size // 2:
        raise RuntimeError(f"only {len(found)} sentences with pronouns in {3 * size}")
    return found + [pair for pair in drawn if not pair.antecedents][: size - len(found)]


def train(folder: Path, *, steps: int) -> None:
    """Train or continue."""
    recipe = expect(
        find_recipe("transformer-tiny", overrides=[*SETTINGS, f"training.steps={steps}"]),
        TranslationRecipe,
    )
    run = finish_or_start(folder, recipe)
    splits = Splits(**{split: half_with_pronouns(split, size) for split, size in SIZES.items()})
    with TrainingDisplay(Console(), limits_of(recipe.training), title="antecedent") as display:
        train_translator(recipe, run, splits=splits, observers=[display])


def cases(model: LoadedTranslator, pairs: Sequence[SentencePair]) -> Iterator[Case]:
    """Yield every pronoun of these pairs with what each encoder head saw from it."""
    for pair in pairs:
        if not pair.antecedents:
            continue
        (example,) = encode_pairs([pair], model.source_tokenizer, model.target_tokenizer)
        batch = collate([example])
        with torch.inference_mode():
            maps = model.model.head_maps(batch.source, batch.source_mask, batch.target_input)
            output = model.model(batch.source, batch.source_mask, batch.target_input)
            said = model.model.project(output.features)[0].argmax(dim=-1)
        for pronoun, noun in pair.antecedents:
            # A word is a token here; the end mark is none.
            seen = maps.encoder[:, 0, :, pronoun, :-1].numpy()
            place = next(target for source, target in pair.alignment if source == pronoun)
            right = bool(said[place] == batch.target_output[0, place])
            yield Case(pair, pronoun, noun, seen, right)


def share_right(found: Sequence[Case], layer: int, head: int) -> float:
    """Return how often the head's most attended word is the gold noun."""
    return float(np.mean([case.chosen[layer, head] == case.noun for case in found]))


def candidates(case: Case) -> list[int]:
    """Return the nouns before the pronoun that it could stand for, by number and kind alone."""
    words = case.pair.source.split()
    forms = noun_forms(plural=words[case.pronoun] == "they")
    return [place for place, word in enumerate(words[: case.pronoun]) if word in forms]


@cache
def noun_forms(*, plural: bool) -> frozenset[str]:
    """Return the nouns that "it" or "they" can stand for; "it" is never a person."""
    nouns = Selection(lexicon(small=WORDS == "small")).all_nouns
    if plural:
        return frozenset(noun.english_plural for noun in nouns)
    return frozenset(noun.english for noun in nouns if noun.kind != "person")


def rivals(case: Case) -> int:
    """Return how many nouns the pronoun could stand for."""
    return len(candidates(case))


def nearest(case: Case) -> int:
    """Return the last noun that the pronoun could stand for."""
    return candidates(case)[-1]


def guesses(found: Sequence[Case], name: str) -> dict[str, float]:
    """Return how often a noun at random, and the nearest one, would be right."""
    return {
        f"random_noun{name}": float(np.mean([1 / rivals(case) for case in found])),
        f"nearest_noun{name}": float(np.mean([nearest(case) == case.noun for case in found])),
    }


def most_frequent(found: Sequence[Case]) -> float:
    """Return how often the most frequent German pronoun would be right."""
    counts: Counter[str] = Counter()
    for case in found:
        place = next(target for source, target in case.pair.alignment if source == case.pronoun)
        counts[case.pair.target.split()[place]] += 1
    return counts.most_common(1)[0][1] / len(found)


def gaze(model: LoadedTranslator, text: str, layer: int, head: int) -> WordAttention:
    """Return what a head sees from the pronoun of a sentence."""
    words = text.split()
    translation = model.translate(text)
    (example,) = encode_pairs(
        [SentencePair(text, translation.text)], model.source_tokenizer, model.target_tokenizer
    )
    batch = collate([example])
    maps = model.model.head_maps(batch.source, batch.source_mask, batch.target_input)
    place = words.index("it")
    weights = maps.encoder[layer, 0, head, place, :-1].numpy()
    return WordAttention(words, place, weights, note=translation.text)


if __name__ == "__main__":
    main()
