"""Filters of sentence pairs: what each of them keeps."""

from __future__ import annotations

import hashlib
import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeAlias

from pydantic import Field

from regard.base.errors import SettingsError
from regard.settings.recipe import Settings
from regard.text.lexical_table import WordTable, learn_word_table


class TextPair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


Keeps: TypeAlias = Callable[[TextPair], bool]


class FilterSettings(Settings):
    """Which pairs are dropped; 0 or false switches a filter off."""

    min_words: int = Field(1, ge=0, description="fewest words of either side")
    max_words: int = Field(200, ge=0, description="most words of either side")
    max_ratio: float = Field(3.0, ge=0, description="most characters of one side per character")
    identical: bool = Field(True, description="drop pairs whose sides are the same text")
    duplicates: bool = Field(True, description="drop pairs that came before")
    near_duplicates: bool = Field(
        True, description="drop pairs that differ from an earlier one in case, digits or marks only"
    )
    markup: bool = Field(True, description="drop pairs with tags, entities or addresses")
    control: bool = Field(True, description="drop control characters and broken encodings")
    script: bool = Field(True, description="drop sides mostly written in another script")
    numbers: bool = Field(True, description="drop pairs whose sides have other numbers")
    language: bool = Field(True, description="drop sides in another language (needs the codes)")
    alignment: bool = Field(
        True, description="drop pairs whose words translate each other no better than random pairs"
    )
    sample: int = Field(
        20_000, ge=1, description="pairs from which scripts and word translations are learned"
    )
    seed: int = Field(1, ge=0, description="seed of that sample")


@dataclass(frozen=True)
class Filters:
    """What decides about pairs, in this order; the first that drops a pair is the reason."""

    single: Mapping[str, Keeps]
    """By name, functions of the pair alone, which may run anywhere and in any order."""
    copies: Mapping[str, Callable[[TextPair], str]]
    """By name, what two pairs share of which the second is dropped."""
    scored: Mapping[str, Callable[[Sequence[TextPair]], Sequence[bool]]] = field(
        default_factory=dict
    )
    """By name, functions of many pairs at once, for models."""

    def reason(self, pair: TextPair) -> str | None:
        """Return the first filter that drops a pair for itself."""
        return next((name for name, keeps in self.single.items() if not keeps(pair)), None)


def choose_filters(
    settings: FilterSettings, pairs: Iterable[TextPair], *, pair: str | None = None
) -> Filters:
    """Return the filters that the settings ask for, cheap ones first.

    `pairs` are the corpus, from a sample of which scripts and word translations are learned; `pair`
    are the languages, as "en-de", without which they are not identified.
    """
    found: dict[str, Keeps] = {"empty": _has_text}
    if settings.control:
        found["control characters"] = _is_clean
    if settings.min_words or settings.max_words:
        found["length"] = Length(settings.min_words, settings.max_words)
    if settings.max_ratio:
        found["ratio"] = Ratio(settings.max_ratio)
    if settings.identical:
        found["identical sides"] = _differs
    if settings.markup:
        found["markup"] = _is_plain
    if settings.numbers:
        found["numbers"] = _has_equal_numbers
    usable: list[TextPair] = []
    if settings.script or settings.alignment:
        drawn = drawn_sample(pairs, settings.sample, seed=settings.seed)
        usable = [each for each in drawn if all(keeps(each) for keeps in found.values())]
    if settings.script and usable:
        found["script"] = Scripts.of(usable)
    if settings.language and pair is not None:
        found["language"] = LanguageCheck.of(pair)
    if settings.alignment and len(usable) >= FEWEST_TO_ALIGN:
        found["alignment"] = WordAlignment.of(usable)
    copies: dict[str, Callable[[TextPair], str]] = {}
    if settings.duplicates:
        copies["duplicates"] = _as_it_is
    if settings.near_duplicates:
        copies["near-duplicates"] = _skeletons
    return Filters(found, copies)


def drawn_sample(pairs: Iterable[TextPair], size: int, *, seed: int) -> list[TextPair]:
    """Return a random sample of a stream of pairs (Vitter 1985, algorithm R)."""
    draw = random.Random(seed)
    stream = iter(pairs)
    chosen = list(islice(stream, size))
    for number, pair in enumerate(stream, size + 1):
        place = int(draw.random() * number)
        if place < size:
            chosen[place] = pair
    return chosen


def _has_text(pair: TextPair) -> bool:
    return bool(pair.source.strip() and pair.target.strip())


def _differs(pair: TextPair) -> bool:
    return folded(pair.source) != folded(pair.target)


def _is_plain(pair: TextPair) -> bool:
    return not (MARKUP.search(pair.source) or MARKUP.search(pair.target))


def _has_equal_numbers(pair: TextPair) -> bool:
    return numbers_in(pair.source) == numbers_in(pair.target)


def _as_it_is(pair: TextPair) -> str:
    return f"{pair.source}\t{pair.target}"


def _skeletons(pair: TextPair) -> str:
    return f"{skeleton(pair.source)}\t{skeleton(pair.target)}"


def _is_clean(pair: TextPair) -> bool:
    """Return whether both sides are free of control characters and of broken encodings."""
    return not any(BROKEN.search(side) for side in pair)


# Controls, the replacement character, and UTF-8 that was read as Latin-1 ("Ã©", "â€™").
BROKEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd\ufeff\u200b\u202a-\u202e]|Ã[\x80-\xbf¡-¿]|â€|Â[\xa0-\xbf]"
)
MARKUP = re.compile(
    r"</?[a-zA-Z][^<>]{0,200}>|&(?:[a-zA-Z]{2,8}|#\d{1,6});|https?://|www\.[a-z0-9-]+\.|\{\{|\}\}|\[\["
)
NUMBER = re.compile(r"\d+")


def folded(text: str) -> str:
    """Return a text without differences of case, marks and spaces."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def skeleton(text: str) -> str:
    """Return a text without differences of case, marks, spaces and digits."""
    return NUMBER.sub("0", folded(text))


def numbers_in(text: str) -> list[str]:
    """Return the digits of a text in order of size, whatever separates groups of them.

    Numbers of one digit are left out: they are often written as words.
    """
    found = NUMBER.findall(re.sub(r"(?<=\d)[.,'\s](?=\d)", "", text))
    return sorted(number for number in found if len(number) > 1)


@dataclass(frozen=True)
class Length:
    """Keeps pairs whose sides have this many words."""

    least: int
    most: int
    """0 stands for any number."""

    def __call__(self, pair: TextPair) -> bool:
        """Return whether both sides are neither too short nor too long."""
        counts = [len(side.split()) for side in pair]
        return min(counts) >= self.least and (not self.most or max(counts) <= self.most)


@dataclass(frozen=True)
class Ratio:
    """Keeps pairs of similar length; a few characters more are always allowed."""

    most: float
    free: int = 10

    def __call__(self, pair: TextPair) -> bool:
        """Return whether the longer side is not far longer."""
        short, long = sorted(len(side) for side in pair)
        return long <= self.most * short + self.free


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter, as "LATIN"; empty for what is no letter."""
    return unicodedata.name(letter, "").split(" ")[0] if letter.isalpha() else ""


@dataclass(frozen=True)
class Scripts:
    """Keeps sides that are mostly in the script of their language."""

    expected: tuple[str, str]

    @classmethod
    def of(cls, sample: Sequence[TextPair]) -> Scripts:
        """Learn which script each side of a corpus is written in."""
        counts = [Counter[str](), Counter[str]()]
        for pair in sample[:2_000]:
            for side, count in zip(pair, counts, strict=True):
                count.update(script_of(letter) for letter in side)
        for count in counts:
            count.pop("", None)
        first, second = (count.most_common(1)[0][0] if count else "" for count in counts)
        return cls((first, second))

    def __call__(self, pair: TextPair) -> bool:
        """Return whether at least half of the letters of both sides are in the script."""
        for side, expected in zip(pair, self.expected, strict=True):
            scripts = [script for letter in side if (script := script_of(letter))]
            if scripts and scripts.count(expected) * 2 < len(scripts):
                return False
        return True


SURE_LETTERS = 25  # of a text from which on its language can be told


class LanguageCheck:
    """Keeps sides that are in their language, as far as that can be told."""

    def __init__(self, expected: tuple[str, str], rank: Callable[[str], list[tuple[str, float]]]):
        self._expected = expected
        self._rank = rank

    @classmethod
    def of(cls, pair: str) -> LanguageCheck:
        """Identify languages with py3langid, which must be installed."""
        source, _, target = pair.partition("-")
        if not (source and target):
            raise SettingsError(f"--pair {pair}: give the two languages, as en-de.")
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise SettingsError(
                "Languages are identified with py3langid, which is not installed: "
                "pip install py3langid, or leave it out with --set language=false."
            ) from None
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = set(identifier.nb_classes)
        if unknown := [code for code in (source, target) if code not in known]:
            raise SettingsError(
                f"py3langid does not know the language {unknown[0]!r}: give another code, or "
                "leave it out with --set language=false."
            )
        return cls((source, target), identifier.rank)

    def __call__(self, pair: TextPair) -> bool:
        """Return whether each side's language is among the likely ones."""
        for side, expected in zip(pair, self._expected, strict=True):
            if sum(map(str.isalpha, side)) >= SURE_LETTERS:
                likely = self._rank(side)
                chance = next(value for code, value in likely if code == expected)
                if chance < LEAST_CHANCE and likely[0][0] != expected:
                    return False
        return True


LEAST_CHANCE = 0.02
FEWEST_TO_ALIGN = 200
WORST_PART = 0.9  # of random pairs that score less than what is kept
RANDOM_PAIRS = 2_000


@dataclass(frozen=True)
class WordAlignment:
    """Keeps pairs whose words translate each other better than those of random pairs do.

    A table has seen the words of each pair that it was learned from together, also of a wrong one.
    So there are two halves, and each pair is scored with what the other half has taught.
    """

    halves: tuple[tuple[WordTable, WordTable], ...]
    """Tables from source to target and back, of either half."""
    least: float

    @classmethod
    def of(cls, sample: Sequence[TextPair]) -> WordAlignment:
        """Learn word translations by IBM model 1, and what random pairs of the corpus score."""
        parts: list[list[tuple[list[str], list[str]]]] = [[], []]
        for pair in sample:
            parts[_half(pair)].append((folded(pair.source).split(), folded(pair.target).split()))
        found = cls(
            tuple(
                (learn_word_table(part), learn_word_table([(two, one) for one, two in part]))
                for part in parts
            ),
            -math.inf,
        )
        step = len(sample) // 2 + 1
        random = sorted(
            found.score(TextPair(pair.source, sample[(place + step) % len(sample)].target))
            for place, pair in enumerate(sample[:RANDOM_PAIRS])
        )
        return cls(found.halves, random[int(WORST_PART * len(random))])

    def score(self, pair: TextPair) -> float:
        """Return the mean evidence of each word for its best partner, both ways."""
        there, back = self.halves[1 - _half(pair)]
        one, two = (folded(side).split() for side in pair)
        return (there.score(one, two) + back.score(two, one)) / 2

    def __call__(self, pair: TextPair) -> bool:
        """Return whether the words of the pair belong together."""
        return self.score(pair) > self.least


def _half(pair: TextPair) -> int:
    """Return 0 or 1, always the same for the same pair."""
    return (
        hashlib.blake2b(pair.target.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2
    )
