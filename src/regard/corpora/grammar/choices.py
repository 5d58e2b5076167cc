"""Random choices: numbers, lengths of parts, style, and words that fit together."""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import shake_128
from itertools import chain, count
from typing import TypeVar, get_args

from regard.corpora.grammar.lexicon import Adjective, Lexicon, Noun, Verb
from regard.corpora.grammar.tree import Conjunction, Determiner, Preposition

Item = TypeVar("Item")

BLOCK = 1024
UNPACK = struct.Struct(f"<{BLOCK}I").unpack


class RandomStream:
    """A stream of integers drawn from SHAKE-128 over seed and block number."""

    __slots__ = ("_next",)

    def __init__(self, seed: int):
        self._next: Callable[[], int] = chain.from_iterable(_blocks(seed)).__next__

    def below(self, limit: int) -> int:
        """Return an integer from 0 to `limit` - 1."""
        return (self._next() * limit) >> 32

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`, both included."""
        return low + ((self._next() * (high - low + 1)) >> 32)

    def chance(self, percent: int) -> bool:
        """Return True with a probability of `percent` percent."""
        return (self._next() * 100) >> 32 < percent

    def choose(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely."""
        return items[(self._next() * len(items)) >> 32]


def _blocks(seed: int) -> Iterator[tuple[int, ...]]:
    """Yield endless blocks of 32-bit numbers."""
    for block in count():
        yield UNPACK(shake_128(f"{seed}:{block}".encode()).digest(4 * BLOCK))


Bounds = tuple[int, int]
"""The smallest and largest number of words of a part."""


def possible(total: int, bounds: Sequence[Bounds]) -> bool:
    """Return whether parts within these bounds can have `total` words together."""
    return sum([low for low, _ in bounds]) <= total <= sum([high for _, high in bounds])


def share(stream: RandomStream, total: int, bounds: Sequence[Bounds]) -> list[int]:
    """Return random shares of a total, each within its bounds; `possible` must hold."""
    shares = [low for low, _ in bounds]
    extra = total - sum(shares)
    room = sum([high for _, high in bounds]) - sum(shares)
    # Start at a random part, so that no part is always the longest.
    place = stream.below(len(bounds)) if extra else 0
    while extra:
        low, high = bounds[place]
        room -= high - low
        given = stream.between(max(0, extra - room), min(high - low, extra))
        shares[place] += given
        extra -= given
        place = (place + 1) % len(bounds)
    return shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """What a sampler may use; repeated determiners and prepositions are drawn more often."""

    determiners: tuple[Determiner, ...]
    subject_determiners: tuple[Determiner, ...]
    places: tuple[Preposition, ...]
    company: tuple[Preposition, ...]
    company_or_for: tuple[Preposition, ...]
    conjunctions: tuple[Conjunction, ...]
    numerals: bool
    pronouns: bool
    pronoun_percent: int
    modals: bool
    adverbs: bool
    relatives: bool
    contents: bool
    fronted: bool


COMMON: tuple[Determiner, ...] = ("the",) * 9 + ("a",) * 4
MARKED: tuple[Determiner, ...] = ("this", "this", "my", "his", "her", "our", "their", "")

FULL = Style(
    determiners=COMMON + MARKED,
    subject_determiners=(*COMMON, *MARKED, "every"),
    places=("in", "in", "in", "in", "on", "near", "near", "behind", "beside", "under"),
    company=("with", "with", "without"),
    company_or_for=("with", "without", "for", "for"),
    conjunctions=("because", "because", "because", "although", "if", "before", "while"),
    numerals=True,
    pronouns=True,
    pronoun_percent=16,
    modals=True,
    adverbs=True,
    relatives=True,
    contents=True,
    fronted=True,
)
SMALL = Style(
    determiners=("the", "the", "the", "a", ""),
    subject_determiners=("the", "the", "the", "a", ""),
    places=("in", "near", "behind"),
    company=("with",),
    company_or_for=("with", "for"),
    conjunctions=("because",),
    numerals=False,
    pronouns=False,
    pronoun_percent=25,
    modals=False,
    adverbs=False,
    relatives=False,
    contents=False,
    fronted=False,
)
PERSON = frozenset({"person"})
LIVING = frozenset({"person", "animal"})

# After verbs of movement "in" and "behind" could be place or direction; some take "to" and "from".
MOTION = frozenset(
    {"arrive", "bring", "climb", "come", "crawl", "cross", "depart", "disappear", "emigrate",
     "enter", "explore", "fall", "flee", "fly", "go", "hurry", "jump", "leave", "limp", "march",
     "plant", "pull", "push", "reach", "return", "run", "send", "slip", "stumble", "swim", "throw",
     "travel", "visit", "walk"}
)  # fmt: skip
DIRECTED = frozenset({"come", "go", "hurry", "march", "return", "run", "travel", "walk"})
# States: they take no manner, company or place.
STATES = frozenset(
    {"admire", "believe", "belong", "bloom", "despise", "die", "envy", "exist", "fail", "fear",
     "forget", "hate", "know", "like", "love", "miss", "need", "own", "possess", "prefer",
     "recognize", "remember", "resemble", "respect", "survive", "trust", "understand", "want"}
)  # fmt: skip
# They take a place, but no manner or company.
ALONE = frozenset(
    {"breathe", "congratulate", "cough", "fall", "find", "hear", "limp", "lose", "notice", "see",
     "sigh", "sleep", "slip", "sneeze", "snore", "stumble", "suffer", "sweat", "threaten",
     "tremble", "wake", "yawn"}
)  # fmt: skip
NO_MANNER = STATES | ALONE
NO_PLACE = STATES | MOTION
FOR_SOMEONE = frozenset(
    {"buy", "make", "cook", "bake", "write", "choose", "paint", "build", "sing", "work", "dance",
     "carry", "sell", "fetch", "repair", "draw", "order", "collect", "steal", "open", "close"}
)  # fmt: skip

# Without "very": "very round" and "very wooden" are bad style.
UNGRADABLE = frozenset(
    {"black", "blind", "blond", "blue", "brown", "central", "dead", "deaf", "empty", "foreign",
     "golden", "green", "grey", "injured", "married", "medieval", "official", "orange", "perfect",
     "pink", "purple", "red", "rotten", "round", "secret", "square", "tame", "white", "wooden",
     "yellow"}
)  # fmt: skip

# Not "on the market" or "in the street": these take another preposition in German or French.
IN_PLACES = frozenset(
    {"alley", "bay", "canyon", "capital", "cave", "city", "courtyard", "desert", "forest",
     "garden", "harbour", "jungle", "orchard", "park", "region", "swamp", "tunnel", "valley",
     "village", "vineyard", "zoo"}
)  # fmt: skip
NOT_INSIDE = frozenset({"bridge", "farm", "fence", "monument", "roof", "wall"})
ON_NOUNS = frozenset(
    {"boat", "bridge", "farm", "field", "hill", "island", "meadow", "mountain", "raft", "road",
     "roof", "ship", "square", "street"}
)  # fmt: skip
NEAR_PLACES = frozenset({"bridge", "forest", "harbour", "lake", "park", "pond", "river", "square"})
TREES = frozenset({"birch", "bush", "fir", "hedge", "maple", "oak", "tree"})
PREPOSITIONS: tuple[Preposition, ...] = get_args(Preposition)


class Selection:
    """The words of a lexicon by class.

    Words with two equal forms ("sheep", "cut") are left out, because their sentences would have two
    correct translations.
    """

    def __init__(self, lexicon: Lexicon):
        nouns = [noun for noun in lexicon.nouns if noun.english != noun.english_plural]
        verbs = [verb for verb in lexicon.verbs if verb.english != verb.english_past]
        self.all_nouns = tuple(nouns)
        self._nouns_of: dict[frozenset[str], tuple[Noun, ...]] = {}
        self.intransitive = tuple(verb for verb in verbs if not verb.objects)
        self.transitive = tuple(verb for verb in verbs if verb.objects)
        kinds = sorted({noun.kind for noun in nouns})
        self.adjectives = {kind: fitting(lexicon.adjectives, kind) for kind in kinds}
        self.predicates = {
            kind: tuple(adjective for adjective in self.adjectives[kind] if adjective.predicate)
            for kind in kinds
        }
        self.gradable = {
            kind: tuple(each for each in self.adjectives[kind] if each.english not in UNGRADABLE)
            for kind in kinds
        }
        self.hosts = tuple(_hosts(self.transitive))
        self.acting = {
            kind: tuple(verb for verb in verbs if kind in verb.subjects) for kind in kinds
        }
        self.undergoing = {
            kind: tuple(verb for verb in verbs if kind in verb.objects) for kind in kinds
        }
        self.adverbs = {
            kind: tuple(adverb for adverb in lexicon.adverbs if adverb.kind == kind)
            for kind in ("time-past", "time-present", "frequency", "manner", "place")
        }
        self.complements = {
            preposition: tuple(noun for noun in nouns if fits(preposition, noun))
            for preposition in PREPOSITIONS
        }

    def nouns(self, kinds: frozenset[str]) -> tuple[Noun, ...]:
        """Return the nouns of these classes."""
        found = self._nouns_of.get(kinds)
        if found is None:
            found = tuple(noun for noun in self.all_nouns if noun.kind in kinds)
            self._nouns_of[kinds] = found
        return found


def _hosts(verbs: Iterable[Verb]) -> Iterator[Verb]:
    """Yield verbs restricted to things that "it" can refer to, as their object or as both parts.

    Verbs with two such parts come more often, because there the pronoun is ambiguous.
    """
    for verb in verbs:
        objects = verb.objects - PERSON
        things = verb.subjects - PERSON
        if objects and things:
            both = replace(verb, subjects=things, objects=objects)
            yield from (both,) * 6
        if objects and verb.subjects & PERSON:
            yield replace(verb, subjects=PERSON, objects=objects)


def fitting(adjectives: Iterable[Adjective], kind: str) -> tuple[Adjective, ...]:
    """Return the adjectives that fit nouns of this class."""
    return tuple(adjective for adjective in adjectives if kind in adjective.nouns)


def fits(preposition: Preposition, noun: Noun) -> bool:
    """Return whether a noun makes sense after this preposition in every language."""
    if preposition in ("with", "without", "for"):
        return noun.kind == "person"
    if preposition in ("to", "from"):
        return noun.kind == "building" or noun.kind == "person"
    if preposition == "in":
        inside = noun.kind == "building" and noun.english not in NOT_INSIDE
        return inside or noun.english in IN_PLACES
    if preposition == "on":
        return noun.english in ON_NOUNS
    if preposition == "under":
        return noun.english in TREES or noun.english == "bridge"
    if preposition == "near":
        return noun.kind == "building" or noun.english in TREES | NEAR_PLACES
    return noun.kind in ("building", "vehicle", "person") or noun.english in TREES
