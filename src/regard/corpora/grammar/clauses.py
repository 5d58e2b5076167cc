"""Draws clauses of an exact number of English words."""

from __future__ import annotations

from typing import Literal, NamedTuple

from regard.corpora.grammar.clause_plan import Plan, draw_plan, phrase_options
from regard.corpora.grammar.clause_verbs import CLAUSE_VERBS
from regard.corpora.grammar.lexicon import Noun, Verb
from regard.corpora.grammar.noun_phrases import LIGHT, LONGEST_PHRASE, SHORTEST_PHRASE, NounPhrases
from regard.corpora.grammar.random_stream import RandomStream
from regard.corpora.grammar.selection import LIVING, PERSON, Selection
from regard.corpora.grammar.shares import Bounds, possible, share
from regard.corpora.grammar.style import Style
from regard.corpora.grammar.tree import (
    Clause,
    Coordination,
    Nominal,
    NounPhrase,
    Preposition,
    Pronoun,
    PronounWord,
    RelativePronoun,
    Tense,
)

LONGEST_RELATIVE = 11
HEAVY = LIGHT + LONGEST_RELATIVE
JOINED = 2 * LIGHT + 1
"""Most words of two noun phrases and the "and" between them."""
LONGEST_CLAUSE = 18
"""Words that a clause can always fill, even in the simple style."""


OTHERS: tuple[PronounWord, ...] = ("he", "they")
ANYONE: tuple[PronounWord, ...] = ("I", "we", "he", "they")


class Gap(NamedTuple):
    """What a relative clause describes, and the part it plays there."""

    pronoun: RelativePronoun
    role: Literal["subject", "object"]


class Layout(NamedTuple):
    """The parts of a clause and how many words each may have."""

    subject: Bounds
    object: Bounds | None
    phrases: list[tuple[Preposition, ...]]

    def bounds(self) -> list[Bounds]:
        """Return the bounds in the order subject, object, phrases."""
        parts = [self.subject] if self.object is None else [self.subject, self.object]
        return parts + [(SHORTEST_PHRASE, LONGEST_PHRASE)] * len(self.phrases)


class Clauses:
    """Draws clauses; `words` is always the number of English words that come out."""

    def __init__(self, selection: Selection, stream: RandomStream, style: Style):
        self._selection = selection
        self._stream = stream
        self._style = style
        self._noun_phrases = NounPhrases(selection, stream, style)

    def clause(
        self,
        words: int,
        tense: Tense,
        *,
        timed: bool = False,
        content: bool = False,
        they: bool = False,
    ) -> Clause:
        """Return a clause of 2 to `LONGEST_CLAUSE` words.

        `timed` allows an adverb of time, `content` a that-clause, and `they` that pronoun.
        """
        stream = self._stream
        if content and words >= 7 and self._style.contents and stream.chance(18):
            return self._saying(words, tense)
        if 3 <= words <= LIGHT + 4 and stream.chance(20):
            return self._copula(words, tense)
        return self.action(words, tense, timed=timed, they=they)

    def action(
        self, words: int, tense: Tense, *, timed: bool = False, they: bool = False
    ) -> Clause:
        """Return a clause with a full verb."""
        selection, stream = self._selection, self._stream
        while True:
            transitive = words > 2 and stream.chance(72)
            verb = stream.choose(selection.transitive if transitive else selection.intransitive)
            clause = self._act(verb, words, tense, timed=timed, they=they)
            if clause is not None:
                return clause

    def _saying(self, words: int, tense: Tense) -> Clause:
        """Return "someone thinks that" and a clause."""
        subject = self._stream.between(1, min(LIGHT, words - 5))
        return Clause(
            subject=self._subject(subject, PERSON, tense, place=False),
            verb=self._stream.choose(CLAUSE_VERBS),
            tense=tense,
            content=self.clause(words - subject - 2, tense),
        )

    def _copula(self, words: int, tense: Tense, gap: RelativePronoun | None = None) -> Clause:
        """Return "someone is tired", with "not" and a degree where there is room."""
        stream = self._stream
        fewest = max(2, words - LIGHT) if gap is None else words - 1
        predicate = stream.between(fewest, min(4, words - 1))
        negated = predicate == 4 or (predicate == 3 and stream.chance(40))
        degree = predicate - negated == 3
        if gap is None:
            subject, kind = self._described(words - predicate)
        else:
            subject, kind = gap, gap.noun.kind
        return Clause(
            subject=subject,
            tense=tense,
            predicate=self._noun_phrases.description(kind, degree=degree, predicate=True),
            negated=negated,
        )

    def _described(self, words: int) -> tuple[Nominal, str]:
        """Return a subject of any kind, and its kind."""
        if words == 1 and self._stream.chance(50):
            return Pronoun(self._stream.choose(("I", "we", "he", "she"))), "person"
        phrase = self._noun_phrases.light(self._selection.all_nouns, words, self._style.determiners)
        return phrase, phrase.noun.kind

    def _act(
        self,
        verb: Verb,
        words: int,
        tense: Tense,
        *,
        gap: Gap | None = None,
        timed: bool = False,
        they: bool = False,
    ) -> Clause | None:
        """Return a clause with this verb, or None if the verb cannot fill or fit the words."""
        parts = 2 if verb.objects else 1
        if words < 1 + parts:
            return None
        living = (
            verb.subjects <= LIVING
            if gap is None or gap.role == "object"
            else (gap.pronoun.noun.kind in LIVING)
        )
        plan = draw_plan(
            self._stream, self._selection, self._style,
            verb=verb, words=words - 1, keep=parts, tense=tense, timed=timed, living=living,
        )  # fmt: skip
        layout = self._layout(verb, plan, gap, living=living)
        if layout is None:
            return None
        return self._fill(verb, plan, layout, tense, gap, they=they)

    def _layout(self, verb: Verb, plan: Plan, gap: Gap | None, *, living: bool) -> Layout | None:
        """Return parts that can have the words of the plan, or None if there are none.

        Nothing may follow a relative clause at the end of an object: it would seem to belong
        inside. So a clause has either a long object or phrases and adverbs after it.
        """
        stream = self._stream
        nested = gap is None and self._style.relatives
        options = phrase_options(self._style, verb, plan, living=living)
        phrases = [prepositions for prepositions in options if stream.chance(40)]
        subject = (1, 1) if gap is not None and gap.role == "subject" else (1, LIGHT)
        thing = None
        if verb.objects:
            thing = (1, 1) if gap is not None and gap.role == "object" else (1, LIGHT)
        if nested and plan.words > LIGHT and stream.chance(50):
            if thing is not None and not plan.negated and not plan.trailing and stream.chance(65):
                return self._fitting(plan, Layout(subject, (1, HEAVY), []))
            subject = (1, HEAVY)
        for layout in (
            Layout(subject, thing, phrases),
            Layout(subject, thing, options),
            Layout((1, HEAVY) if nested else subject, thing, options),
            Layout((1, HEAVY) if nested else subject, thing, []),
        ):
            if possible(plan.words, layout.bounds()):
                return layout
        return None

    def _fitting(self, plan: Plan, layout: Layout) -> Layout | None:
        return layout if possible(plan.words, layout.bounds()) else None

    def _fill(
        self,
        verb: Verb,
        plan: Plan,
        layout: Layout,
        tense: Tense,
        gap: Gap | None,
        *,
        they: bool,
    ) -> Clause:
        """Draw the nouns of a clause into its layout."""
        stream = self._stream
        shares = share(stream, plan.words, layout.bounds())
        chosen = [stream.choose(prepositions) for prepositions in layout.phrases]
        sizes = shares[len(shares) - len(chosen) :]
        phrases = [
            self._noun_phrases.phrase(preposition, size)
            for preposition, size in zip(chosen, sizes, strict=True)
        ]
        company = plan.modal == "want" or plan.manner is not None or "with" in chosen
        kinds = verb.subjects & LIVING if company else verb.subjects
        subject: Nominal
        if gap is not None and gap.role == "subject":
            subject = gap.pronoun
        else:
            place = gap is None and len(layout.phrases) == 0 and plan.place is None
            subject = self._subject(
                shares[0], kinds, tense, place=place, negated=plan.negated, they=they
            )
        thing: Nominal | None = None
        if gap is not None and gap.role == "object":
            thing = gap.pronoun
        elif verb.objects:
            thing = self._object(shares[1], verb, subject, tense, negated=plan.negated)
        return Clause(
            subject=subject,
            verb=verb,
            object=thing,
            tense=tense,
            modal=plan.modal,
            negated=plan.negated,
            fronted=plan.fronted,
            frequency=plan.frequency,
            manner=plan.manner,
            place=plan.place,
            time=plan.time,
            phrases=tuple(phrases),
        )

    def _subject(
        self,
        words: int,
        kinds: frozenset[str],
        tense: Tense,
        *,
        place: bool,
        negated: bool = False,
        they: bool = False,
    ) -> NounPhrase | Pronoun | Coordination:
        """Return who or what acts; `place` allows "the man in the garden"."""
        stream = self._stream
        if words == 1 and "person" in kinds and self._style.pronouns and stream.chance(65):
            pronouns: tuple[PronounWord, ...] = ("I", "we", "he", "she")
            return Pronoun(stream.choose((*pronouns, "they") if they else pronouns))
        determiners = self._style.determiners if negated else self._style.subject_determiners
        nouns = self._selection.nouns(kinds)
        if words <= LIGHT:
            return self._noun_phrases.light(nouns, words, determiners)
        if words <= JOINED and stream.chance(25):
            return self._noun_phrases.joined(nouns, words)
        if place and words <= LIGHT + LONGEST_PHRASE and stream.chance(40):
            return self._noun_phrases.placed(nouns, words)
        return self._with_relative(nouns, words, tense)

    def _object(
        self, words: int, verb: Verb, subject: Nominal, tense: Tense, *, negated: bool
    ) -> NounPhrase | Pronoun | Coordination:
        """Return what the verb is done to; a negated one has no numeral ("not three dogs")."""
        stream = self._stream
        if words == 1 and "person" in verb.objects and self._style.pronouns and stream.chance(50):
            first = isinstance(subject, Pronoun) and subject.word in ("I", "we")
            return Pronoun(stream.choose(OTHERS if first else ANYONE))
        nouns = self._selection.nouns(verb.objects)
        if words <= LIGHT:
            determiners = self._style.determiners
            phrase = self._noun_phrases.light(nouns, words, determiners, counted=not negated)
            while isinstance(subject, NounPhrase) and phrase.noun is subject.noun:
                phrase = self._noun_phrases.light(nouns, words, determiners, counted=not negated)
            return phrase
        if words <= JOINED and stream.chance(25):
            return self._noun_phrases.joined(nouns, words)
        return self._with_relative(nouns, words, tense)

    def _with_relative(self, nouns: tuple[Noun, ...], words: int, tense: Tense) -> NounPhrase:
        """Return a noun phrase with a relative clause, of 5 words or more."""
        longest = min(LONGEST_RELATIVE, words - 2)
        relative = self._stream.between(max(3, words - LIGHT), longest)
        head = self._noun_phrases.light(nouns, words - relative, ("the", "the", "a", ""))
        return NounPhrase(
            head.noun,
            head.plural,
            head.determiner,
            head.description,
            relative=self._relative(RelativePronoun(head.noun, head.plural), relative, tense),
        )

    def _relative(self, pronoun: RelativePronoun, words: int, tense: Tense) -> Clause:
        """Return a relative clause of 3 words or more."""
        stream = self._stream
        kind = pronoun.noun.kind
        if words <= 5 and stream.chance(25):
            return self._copula(words, tense, pronoun)
        acting, undergoing = self._selection.acting[kind], self._selection.undergoing[kind]
        while True:
            if acting and stream.chance(60):
                clause = self._act(stream.choose(acting), words, tense, gap=Gap(pronoun, "subject"))
            else:
                clause = self._act(
                    stream.choose(undergoing), words, tense, gap=Gap(pronoun, "object")
                )
            if clause is not None:
                return clause
