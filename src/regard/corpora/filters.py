"""Filters of sentence pairs, and an account of how many pairs each of them dropped."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from pydantic import Field

from regard.base.errors import SettingsError
from regard.settings.recipe import Settings
from regard.text.lexical_table import WordTable, learn_word_table

EXAMPLES = 3  # of dropped pairs, for each filter
SHOWN = 60  # characters of an example
SAMPLE = 20_000  # pairs from which scripts and word translations are learned


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


@dataclass
class Account:
    """How many pairs were read, kept and dropped, with examples of what each filter dropped."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[TextPair]] = field(default_factory=dict)

    def add(self, pair: TextPair, reason: str | None) -> None:
        """Count a pair that was kept, or dropped for this reason."""
        self.read += 1
        if reason is None:
            self.kept += 1
            return
        self.dropped[reason] += 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < EXAMPLES:
            shown.append(pair)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "read": self.read,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "examples": {
                name: [list(pair) for pair in found] for name, found in self.examples.items()
            },
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Account:
        """Return the account of `to_dict`."""
        examples = {
            name: [TextPair(*pair) for pair in found] for name, found in record["examples"].items()
        }
        return cls(record["read"], record["kept"], Counter(record["dropped"]), examples)

    def __str__(self) -> str:
        share = self.kept / self.read if self.read else 0.0
        lines = [f"{self.read:,} pairs read, {self.kept:,} kept ({share:.1%})"]
        for name, count in self.dropped.most_common():
            lines.append(f"{count:>10,}  {name}")
            for pair in self.examples[name][:1]:
                lines.append(f"{'':>12}{_short(pair.source)} ||| {_short(pair.target)}")
        return "\n".join(lines)


def _short(text: str) -> str:
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def filter_pairs(
    pairs: Iterable[TextPair], filters: Mapping[str, Keeps], account: Account
) -> Iterator[TextPair]:
    """Yield the pairs that all filters keep; the first that drops a pair is its reason."""
    for pair in pairs:
        reason = next((name for name, keeps in filters.items() if not keeps(pair)), None)
        account.add(pair, reason)
        if reason is None:
            yield pair


def choose_filters(
    settings: FilterSettings, sample: Iterable[TextPair], *, pair: str | None = None
) -> dict[str, Keeps]:
    """Return the filters by name, cheap ones first.

    `sample` are pairs of the corpus, from which its scripts and word translations are learned;
    `pair` are the languages, as "en-de", without which they are not identified.
    """
    found: dict[str, Keeps] = {"empty": lambda p: bool(p.source.strip() and p.target.strip())}
    if settings.control:
        found["control characters"] = _is_clean
    if settings.min_words or settings.max_words:
        found["length"] = Length(settings.min_words, settings.max_words)
    if settings.max_ratio:
        found["ratio"] = Ratio(settings.max_ratio)
    if settings.identical:
        found["identical sides"] = lambda p: folded(p.source) != folded(p.target)
    if settings.markup:
        found["markup"] = lambda p: not (MARKUP.search(p.source) or MARKUP.search(p.target))
    if settings.numbers:
        found["numbers"] = lambda p: numbers_in(p.source) == numbers_in(p.target)
    usable = [
        each for each in islice(sample, SAMPLE) if all(keeps(each) for keeps in found.values())
    ]
    if settings.script and usable:
        found["script"] = Scripts.of(usable)
    if settings.duplicates:
        found["duplicates"] = Seen(lambda p: f"{p.source}\t{p.target}")
    if settings.near_duplicates:
        found["near-duplicates"] = Seen(lambda p: f"{skeleton(p.source)}\t{skeleton(p.target)}")
    if settings.language and pair is not None:
        found["language"] = LanguageCheck.of(pair)
    if settings.alignment and len(usable) >= FEWEST_TO_ALIGN:
        found["alignment"] = WordAlignment.of(usable)
    return found


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


class Seen:
    """Keeps what did not come before, by a digest of 8 bytes for each pair."""

    def __init__(self, key: Callable[[TextPair], str]):
        self._key = key
        self._known: set[bytes] = set()

    def __call__(self, pair: TextPair) -> bool:
        """Return whether the pair is new, and remember it."""
        digest = hashlib.blake2b(
            self._key(pair).encode("utf-8", "surrogatepass"), digest_size=8
        ).digest()
        if digest in self._known:
            return False
        self._known.add(digest)
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
