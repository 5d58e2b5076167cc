"""Which words go together: the lexicon sorted by semantic class, and what prepositions ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import get_args

from regard.corpora.grammar.lexicon import Adjective, Lexicon, Noun, Verb
from regard.corpora.grammar.tree import Preposition

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
# How things are rather than what one does: not done slowly, with someone or at a place.
STATES = frozenset(
    {"admire", "believe", "belong", "bloom", "despise", "die", "envy", "exist", "fail", "fear",
     "forget", "hate", "know", "like", "love", "miss", "need", "own", "possess", "prefer",
     "recognize", "remember", "resemble", "respect", "survive", "trust", "understand", "want"}
)  # fmt: skip
# Done at a place, but neither slowly nor together.
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

# Nothing is "very round" or "very wooden" in good style.
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
    """The words of a lexicon, ready to be drawn by class.

    Words that look the same in two forms ("sheep", "cut") are left out: their sentences would have
    two right translations.
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
    """Yield verbs narrowed to things "it" can stand for: as both parts, or as their object.

    Those with two come more often, because there the pronoun has a choice.
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
    """Return the adjectives that a noun of this class can have."""
    return tuple(adjective for adjective in adjectives if kind in adjective.nouns)


def fits(preposition: Preposition, noun: Noun) -> bool:
    """Whether a noun makes sense after a preposition, and takes this one in every language."""
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
