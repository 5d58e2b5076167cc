"""Samples the parts of a clause: noun phrases, adverbs, negation and modals."""

from dataclasses import dataclass

from regard.corpora.grammar import choices, tree
from regard.corpora.grammar.lexicon import Adverb, Noun, Verb

LIGHT = 4
"""Most words of a noun phrase without phrase or clause: "the very old man"."""
SHORTEST_PHRASE, LONGEST_PHRASE = 3, 1 + LIGHT


class NounPhrases:
    """A sampler of noun phrases without relative clauses."""

    def __init__(
        self, selection: choices.Selection, stream: choices.RandomStream, style: choices.Style
    ):
        self._selection = selection
        self._stream = stream
        self._style = style

    def light(
        self,
        nouns: tuple[Noun, ...],
        words: int,
        determiners: tuple[tree.Determiner, ...],
        *,
        counted: bool = True,
    ) -> tree.NounPhrase:
        """Return determiner, perhaps degree and adjective, and noun, in 1 to 4 words.

        One word is a bare plural; `counted` allows a numeral.
        """
        stream = self._stream
        noun = stream.choose(nouns)
        determiner = stream.choose(determiners) if 1 < words < LIGHT else ""
        if words == LIGHT:
            determiner = stream.choose(determiners) or "the"
        room = words - 2 if determiner else words - 1
        description = self.description(noun.kind, degree=room == 2) if room else None
        plural = not determiner or (determiner not in ("a", "every") and stream.chance(35))
        if plural and determiner == "the" and counted and self._style.numerals:
            determiner = stream.choose(("the", "the", "the", "two", "three", "four"))
        return tree.NounPhrase(noun, plural, determiner, description)

    def description(self, kind: str, *, degree: bool, predicate: bool = False) -> tree.Description:
        """Return an adjective for a noun of this kind; "too" only after "is"."""
        stream = self._stream
        if not degree:
            return tree.Description(stream.choose(self._selection.adjectives[kind]))
        if predicate and self._selection.predicates[kind] and stream.chance(50):
            return tree.Description(stream.choose(self._selection.predicates[kind]), "too")
        return tree.Description(stream.choose(self._selection.gradable[kind]), "very")

    def joined(self, nouns: tuple[Noun, ...], words: int) -> tree.Coordination:
        """Return two definite noun phrases with "and" between them, in 5 to 9 words."""
        sizes = choices.share(self._stream, words - 1, [(2, LIGHT), (2, LIGHT)])
        first = self.light(nouns, sizes[0], ("the",))
        others = tuple(noun for noun in nouns if noun is not first.noun) or nouns
        return tree.Coordination(first, self.light(others, sizes[1], ("the",)))

    def placed(self, nouns: tuple[Noun, ...], words: int) -> tree.NounPhrase:
        """Return a noun phrase with the place where it is, in 5 to 9 words."""
        head, place = choices.share(
            self._stream, words, [(2, LIGHT), (SHORTEST_PHRASE, LONGEST_PHRASE)]
        )
        phrase = self.light(nouns, head, ("the", "the", "a"))
        where = self.phrase(self._stream.choose(self._style.places), place)
        return tree.NounPhrase(
            phrase.noun, phrase.plural, phrase.determiner, phrase.description, place=where
        )

    def phrase(self, preposition: tree.Preposition, words: int) -> tree.PrepositionalPhrase:
        """Return a preposition with a noun that makes sense after it, in 3 to 5 words."""
        nouns = self._selection.complements[preposition]
        complement = self.light(nouns, words - 1, self._style.determiners)
        return tree.PrepositionalPhrase(preposition, complement)


DIRECTIONS: tuple[tree.Preposition, ...] = ("to", "to", "from")
MODALS: dict[tree.Tense, tuple[tree.Modal, ...]] = {
    "present": ("can", "must", "should", "want"),
    "past": ("want",),
}


@dataclass(slots=True)
class ClausePlan:
    """The choices for a clause, and the number of words left for nouns and phrases."""

    words: int
    negated: bool = False
    modal: tree.Modal | None = None
    frequency: Adverb | None = None
    manner: Adverb | None = None
    place: Adverb | None = None
    time: Adverb | None = None
    fronted: Adverb | None = None

    @property
    def trailing(self) -> bool:
        """Whether an adverb follows the object."""
        return not (self.manner is None and self.place is None and self.time is None)


def draw_plan(
    stream: choices.RandomStream,
    selection: choices.Selection,
    style: choices.Style,
    *,
    verb: Verb,
    words: int,
    keep: int,
    tense: tree.Tense,
    timed: bool,
    affirmative: bool,
    living: bool,
    relative: bool,
) -> ClausePlan:
    """Return random choices for a clause; at least `keep` words are left for the nouns.

    A negated clause has no adverb but of time: "he does not sleep everywhere" is not "he sleeps
    nowhere". A relative clause ends in none: "the man who sings loudly laughs".
    """
    plan = ClausePlan(words)
    if style.modals and living and verb.english not in choices.STATES and stream.chance(17):
        modal = stream.choose(MODALS[tense])
        cost = 2 if modal == "want" else 1
        if plan.words - cost >= keep:
            plan.modal = modal
            plan.words -= cost
    # "must not" forbids, which is another verb in German and French.
    if plan.modal != "must" and not affirmative and stream.chance(24):
        cost = 1 if plan.modal in ("can", "should") else 2
        if plan.words - cost >= keep:
            plan.negated = True
            plan.words -= cost
    if style.adverbs and plan.words > keep:
        _draw_adverb(
            plan,
            stream,
            selection,
            tense=tense,
            timed=timed,
            manner=living and not relative and verb.english not in choices.NO_MANNER,
            place=not relative and verb.english not in choices.NO_PLACE,
        )
    return plan


def _draw_adverb(
    plan: ClausePlan,
    stream: choices.RandomStream,
    selection: choices.Selection,
    *,
    tense: tree.Tense,
    timed: bool,
    manner: bool,
    place: bool,
) -> None:
    """Draw at most one adverb for the clause."""
    kind = stream.below(100)
    free = not plan.negated and plan.modal is None
    if kind < 8 and free:
        plan.frequency = stream.choose(selection.adverbs["frequency"])
    elif kind < 16 and free and manner:
        plan.manner = stream.choose(selection.adverbs["manner"])
    elif kind < 21 and place and not plan.negated:
        plan.place = stream.choose(selection.adverbs["place"])
    elif kind < 36 and timed:
        adverb = stream.choose(selection.adverbs[f"time-{tense}"])
        if kind < 30:
            plan.fronted = adverb
        else:
            plan.time = adverb
    else:
        return
    plan.words -= 1


def phrase_options(
    style: choices.Style, verb: Verb, plan: ClausePlan, *, living: bool
) -> list[tuple[tree.Preposition, ...]]:
    """Return the prepositions that may follow: those of company, then those of place."""
    options: list[tuple[tree.Preposition, ...]] = []
    name = verb.english
    if living and name not in choices.NO_MANNER:
        options.append(style.company_or_for if name in choices.FOR_SOMEONE else style.company)
    if name in choices.DIRECTED:
        options.append(DIRECTIONS)
    elif plan.place is None and name not in choices.NO_PLACE:
        options.append(style.places)
    return options
