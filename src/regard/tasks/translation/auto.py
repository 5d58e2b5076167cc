"""`regard train auto`: a recipe chosen by the data and the minutes, with the reasons.

The choice is a function of three things: statistics of the training pairs, the minutes, and the
speed of this machine, which is measured on a probe. `choose` is that function; the same three give
the same recipe everywhere. Its constants were set on validation parts alone (docs/planning.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from math import isqrt, sqrt
from statistics import fmean
from typing import Any

import torch

from regard.base.errors import SettingsError
from regard.batching.batch import Batch, Example, collate
from regard.batching.order import BatchPosition
from regard.compute.device import processes_for
from regard.corpora.parallel import SentencePair, drawn_evenly
from regard.corpora.store import MOST_IN_MEMORY
from regard.models.build import build_translator
from regard.runs.plan import estimate_training
from regard.tasks.planning import AutoChoice
from regard.tasks.translation.data import GivenData, given_splits
from regard.tasks.translation.objective import batch_loss, optimizer_of
from regard.tasks.translation.settings import TranslationRecipe
from regard.training.objective import Limits, Objective, Optimisation, Validation, in_minutes
from regard.training.update import Sharing


@dataclass(frozen=True)
class PairStatistics:
    """What the choice knows of the training pairs."""

    pairs: int
    source_words: float
    """Mean number of words of a source, separated by spaces."""
    target_words: float
    source_characters: float
    target_characters: float
    characters: int
    """Number of different characters."""

    @property
    def single_words(self) -> bool:
        """Whether the pairs are words rather than sentences, as a spelling and its sounds."""
        sides = (
            (self.source_words, self.source_characters),
            (self.target_words, self.target_characters),
        )
        return any(words <= MOST_WORDS and letters <= MOST_LETTERS for words, letters in sides)

    def tokens(self, *, level: str) -> tuple[float, float]:
        """Return about how many tokens a source and a target have, end marks included."""
        sides = (
            (self.source_words, self.source_characters),
            (self.target_words, self.target_characters),
        )
        if level == "character":
            return sides[0][1] + 1, sides[1][1] + 1
        source, target = (
            1 + (words * SUBWORDS_PER_WORD if letters <= MOST_LETTERS * words else letters / 2)
            for words, letters in sides  # a script without spaces has two characters a subword
        )
        return source, target


@dataclass(frozen=True)
class Size:
    """A Transformer of the ladder, with equal numbers of layers on both sides."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    fewest_tokens: float
    """With fewer tokens to read in the time, a smaller model learns more."""
    fewest_pairs: int

    def work(self, source: float, target: float, *, vocabulary: int) -> float:
        """Return the multiplications of a forward pass over these numbers of tokens."""
        attention, feed_forward = 4 * self.width**2, 2 * self.width * self.feed_forward
        encoder = self.layers * (attention + feed_forward)
        decoder = self.layers * (2 * attention + feed_forward) + vocabulary * self.width
        return source * encoder + target * decoder


# Up to this number of words a side, of this number of letters each, a pair is one of words.
MOST_WORDS, MOST_LETTERS = 1.5, 15.0
SUBWORDS_PER_WORD = 1.3
# From small to large; the first is that of transformer-tiny, the last that of transformer-base.
LADDER = (
    Size(4, 128, 4, 256, 0.0, 0),
    Size(6, 256, 4, 1024, 1e8, 50_000),
    Size(6, 512, 8, 2048, 2e9, 500_000),
)
# In a minute on Multi30k, 4,000 subwords had BLEU 20.6 on validation, 10,000 had 19.4.
# Subwords: this number times the root of the pairs, but they must cost no more than the layers.
SUBWORDS_PER_ROOT = 30
FEWEST_SUBWORDS, SUBWORDS_PER_WIDTH = 1_000, 64
# The dropout, up to a number of epochs. Stronger means were worse on validation: 1,000 pairs of
# Multi30k in 2.5 minutes, 37 epochs, had BLEU 13.2 with 0.3, and 7.6 with 0.4, word dropout 0.1 and
# sampled subwords.
DROPOUT = ((5.0, 0.1), (20.0, 0.2), (float("inf"), 0.3))
LABEL_SMOOTHING = 0.1
# Updates to aim at, and the smallest and largest batches in tokens of source and target. An update
# costs 70 ms besides its tokens: in a minute, batches of 2,048 learned more than twice as many of
# 1,024 (BLEU 21.7 and 20.6 on validation, Multi30k).
UPDATES = 3_000
FEWEST_TOKENS, MOST_TOKENS = 2_048, 16_384
# transformer-tiny's rate with its batches; smaller batches take smaller steps.
RATE, RATE_TOKENS = 0.01, 4_096
WARMUP_SHARE, VALIDATIONS, CHECKPOINTS = 0.05, 10, 20
PROBE_TOKENS, PROBE_VOCABULARY = 4_096, 4_000


def auto(recipe: TranslationRecipe, data: GivenData | None, *, minutes: float) -> AutoChoice:
    """Return the recipe for this data and these minutes, with the data that was read."""
    recipe, splits = given_splits(recipe, data)
    if not splits.train:
        raise SettingsError("There are no training pairs to choose a recipe by.")
    seen = drawn_evenly(splits.train, MOST_IN_MEMORY, seed=0)
    found = replace(statistics(seen), pairs=len(splits.train))
    table, reasons = choose(found, minutes=minutes, speed=measured_speed(found))
    chosen = TranslationRecipe.model_validate({"data": recipe.data, **table})
    return AutoChoice(chosen, splits, reasons)


def statistics(pairs: Sequence[SentencePair]) -> PairStatistics:
    """Return what the choice wants to know."""
    return PairStatistics(
        pairs=len(pairs),
        source_words=fmean(len(pair.source.split()) for pair in pairs),
        target_words=fmean(len(pair.target.split()) for pair in pairs),
        source_characters=fmean(len(pair.source) for pair in pairs),
        target_characters=fmean(len(pair.target) for pair in pairs),
        characters=len(set(chain.from_iterable(p.source + p.target for p in pairs))),
    )


def choose(
    found: PairStatistics, *, minutes: float, speed: float
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return settings by table and key, and the reasons for them.

    `speed` is in multiplications of a forward pass a second, updates included.
    """
    level = "character" if found.single_words else "sentencepiece"
    source, target = found.tokens(level=level)
    for size in reversed(LADDER):
        subwords = _subwords(found, size)
        vocabulary = found.characters if level == "character" else subwords
        work = size.work(source, target, vocabulary=vocabulary)
        epochs = 60 * minutes * speed / (work * found.pairs)
        tokens = epochs * found.pairs * (source + target)
        if tokens >= size.fewest_tokens and found.pairs >= size.fewest_pairs:
            break
    batch = _power_of_two(tokens / UPDATES)
    updates = max(1, round(tokens / batch))
    dropout = next(dropout for most, dropout in DROPOUT if epochs <= most)
    rate = float(f"{RATE * sqrt(batch / RATE_TOKENS) * LADDER[0].width / size.width:.2g}")
    warmup = max(10, round(WARMUP_SHARE * updates))
    table = {
        "title": f"auto: {found.pairs:,} pairs in {in_minutes(minutes)}",
        "tokenizer": {"kind": level, "shared": True}
        | ({} if level == "character" else {"size": subwords}),
        "model": _model(size, dropout),
        "batches": {"tokens": batch},
        "training": {
            "minutes": minutes,
            "steps": 1_000_000,
            "optimizer": "muon",
            "learning_rate": rate,
            "warmup": warmup,
            "label_smoothing": LABEL_SMOOTHING,
            "select": "loss" if level == "character" else "bleu",
            "validate_every": max(50, updates // VALIDATIONS),
            "checkpoint_every": max(25, updates // CHECKPOINTS),
            "average": 5,
        },
    }
    reasons = (
        _level_reason(found, level, subwords),
        f"{in_minutes(minutes)} here read about {_short(tokens)} tokens, {_short(epochs)} epochs: "
        f"{size.layers} + {size.layers} layers of width {size.width}, dropout {dropout:g}",
        f"about {updates:,} updates of {batch:,} tokens, learning rate {rate:g} after {warmup} "
        "updates of warm-up",
    )
    return table, reasons


def _subwords(found: PairStatistics, size: Size) -> int:
    """Return the number of subwords: what the pairs can teach and the time can pay for."""
    taught = max(FEWEST_SUBWORDS, SUBWORDS_PER_ROOT * isqrt(found.pairs))
    return min(taught, SUBWORDS_PER_WIDTH * size.width) + found.characters


def _model(size: Size, dropout: float) -> dict[str, Any]:
    return {
        "family": "transformer",
        "layers": size.layers,
        "model_dim": size.width,
        "heads": size.heads,
        "feed_forward": size.feed_forward,
        "norm_placement": "pre",
        "dropout": dropout,
        "tie": "all",
    }


def _power_of_two(tokens: float) -> int:
    """Return the next power of two within the limits of a batch."""
    found = FEWEST_TOKENS
    while found < min(tokens, MOST_TOKENS):
        found *= 2
    return found


def _level_reason(found: PairStatistics, level: str, subwords: int) -> str:
    if level == "character":
        return (
            f"{found.pairs:,} pairs of single words, {found.source_characters:.1f} and "
            f"{found.target_characters:.1f} letters long: tokens are characters"
        )
    return (
        f"{found.pairs:,} pairs of {found.source_words:.1f} and {found.target_words:.1f} words: "
        f"{subwords:,} subwords for both sides"
    )


def _short(number: float) -> str:
    for size, unit in ((1e9, " billion"), (1e6, " million")):
        if number >= size:
            return f"{number / size:.2g}{unit}"
    return f"{float(f'{number:.2g}'):,.0f}" if number >= 10 else f"{number:.1f}"


def measured_speed(found: PairStatistics) -> float:
    """Return the multiplications a second of a few updates of the smallest model of the ladder.

    The batches have sentences of these pairs' mean lengths; their tokens do not matter.
    """
    level = "character" if found.single_words else "sentencepiece"
    source, target = (max(1, round(length) - 1) for length in found.tokens(level=level))
    rows = max(1, PROBE_TOKENS // (source + target + 2))
    example = Example(list(range(4, 4 + source)), list(range(4, 4 + target)))
    batch = collate([example] * rows)
    size = LADDER[0]
    recipe = TranslationRecipe.model_validate(
        {
            "tokenizer": {"shared": True},
            "model": _model(size, 0.1),
            "training": {"optimizer": "muon", "label_smoothing": 0.1},
        }
    )
    with torch.random.fork_rng():
        vocabulary = max(PROBE_VOCABULARY, source + 4, target + 4)
        network = build_translator(recipe.model, source_vocab=vocabulary, target_vocab=vocabulary)
        estimate = estimate_training(
            network,
            Objective[Batch](
                loss_sum=partial(batch_loss, network, smoothing=0.1),
                batches_from=lambda epoch, number: repeat((BatchPosition(), batch)),
                validate=lambda: Validation(metrics={}, value=0.0),
            ),
            Optimisation[Batch](
                optimizer=optimizer_of(network, recipe.training),
                learning_rate=lambda step, done: RATE,
                sharing=Sharing(
                    processes_for(network, wanted=None, tokens=PROBE_TOKENS), Batch.split
                ),
            ),
            limits=Limits(steps=1),
        )
    work = size.work(source + 1.0, target + 1.0, vocabulary=vocabulary) * rows
    return work / estimate.seconds_per_update
