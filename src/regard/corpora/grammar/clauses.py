"""Samples clauses with an exact number of English words."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from regard.corpora.grammar import choices, tree
from regard.corpora.grammar import phrases as clause_parts
from regard.corpora.grammar.lexicon import Noun, Verb, clause_verbs

SHORTEST_RELATIVE, LONGEST_RELATIVE = 3, 11
HEAVY = clause_parts.LIGHT + LONGEST_RELATIVE
JOINED = 2 * clause_parts.LIGHT + 1
"""Most words of two noun phrases and the "and" between them."""
LONGEST_CLAUSE = 18
"""Words that a clause can always fill, even in the simple style."""


SUBJECTS: tuple[tree.PronounWord, ...] = ("I", "we", "he", "she")
SUBJECTS_WITH_THEY: tuple[tree.PronounWord, ...] = (*SUBJECTS, "they", "they")
# Not "her" and "it": English "her" is also a possessive, and "it" needs a noun to stand for.
OBJECTS: tuple[tree.PronounWord, ...] = ("I", "we", "he", "they")
OBJECTS_OF_FIRST: tuple[tree.PronounWord, ...] = ("he", "they")


class RelativeGap(NamedTuple):
    """What a relative clause describes, and the part it plays there."""

    pronoun: tree.RelativePronoun
    role: Literal["subject", "object"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClausePlace:
    """Where a clause stands, and what it may therefore hold.

    `timed` allows an adverb of time, `affirmative` forbids negation, `content` allows a
    that-clause, and `they` that pronoun without a noun for it. `inverted` says that something
    stands before the clause, so that German puts the verb before the subject.
    Next to an "and" between clauses no noun phrases are joined by another one: it would be unclear
    which of them joins the clauses. In a relative clause, `gap` is what it describes.
    """

    timed: bool = False
    affirmative: bool = False
    content: bool = False
    they: bool = False
    inverted: bool = False
    after_and: bool = False
    before_and: bool = False
    gap: RelativeGap | None = None

    @property
    def gap_role(self) -> str:
        """The part of the described noun, "" outside relative clauses."""
        return self.gap.role if self.gap is not None else ""


INNER = ClausePlace()


class ClauseLayout(NamedTuple):
    """The parts of a clause and how many words each may have."""

    subject: choices.Bounds
    object: choices.Bounds | None
    phrases: list[tuple[tree.Preposition, ...]]

    def bounds(self) -> list[choices.Bounds]:
        """Return the bounds in the order subject, object, phrases."""
        parts = [self.subject] if self.object is None else [self.subject, self.object]
        return parts + [(clause_parts.SHORTEST_PHRASE, clause_parts.LONGEST_PHRASE)] * len(
            self.phrases
        )


class Clauses:
    """A sampler of clauses; `words` is always their number of English words."""

    def __init__(
        self, selection: choices.Selection, stream: choices.RandomStream, style: choices.Style
    ):
        self._selection = selection
        self._stream = stream
        self._style = style
        self._noun_phrases = clause_parts.NounPhrases(selection, stream, style)

    def clause(self, words: int, tense: tree.Tense, position: ClausePlace = INNER) -> tree.Clause:
        """Return a clause of 3 to `LONGEST_CLAUSE` words."""
        stream = self._stream
        if position.content and words >= 7 and self._style.contents and stream.chance(18):
            return self._saying(words, tense)
        if words <= clause_parts.LIGHT + 3 and stream.chance(20):
            return self._copula(words, tense, affirmative=position.affirmative)
        return self.action(words, tense, position)

    def action(self, words: int, tense: tree.Tense, position: ClausePlace = INNER) -> tree.Clause:
        """Return a clause with a full verb."""
        selection, stream = self._selection, self._stream
        while True:
            transitive = stream.chance(72)
            verb = stream.choose(selection.transitive if transitive else selection.intransitive)
            clause = self._act(verb, words, tense, position)
            if clause is not None:
                return clause

    def host(self, words: int, tense: tree.Tense, position: ClausePlace) -> tree.Clause:
        """Return a clause of 4 words or more about things that "it" can stand for."""
        while True:
            clause = self._act(self._stream.choose(self._selection.hosts), words, tense, position)
            if clause is not None:
                return clause

    def _saying(self, words: int, tense: tree.Tense) -> tree.Clause:
        """Return "someone thinks that" and a clause."""
        subject = self._stream.between(1, min(clause_parts.LIGHT, words - 5))
        return tree.Clause(
            subject=self._sayer(subject),
            verb=self._stream.choose(clause_verbs()),
            tense=tense,
            content=self.clause(words - subject - 2, tense),
        )

    def _sayer(self, words: int) -> tree.NounPhrase | tree.Pronoun:
        """Return a person who thinks or says something."""
        if words == 1 and self._stream.chance(65):
            return tree.Pronoun(self._stream.choose(SUBJECTS))
        nouns = self._selection.nouns(choices.PERSON)
        return self._noun_phrases.light(nouns, words, self._style.determiners)

    def _copula(
        self,
        words: int,
        tense: tree.Tense,
        *,
        gap: tree.RelativePronoun | None = None,
        affirmative: bool = False,
    ) -> tree.Clause:
        """Return "someone is tired", with "not" and a degree where there is room."""
        stream = self._stream
        longest = min(3 if affirmative else 4, words - 1)
        predicate = words - 1
        if gap is None:
            predicate = stream.between(max(2, words - clause_parts.LIGHT), longest)
        negated = predicate == 4 or (predicate == 3 and not affirmative and stream.chance(40))
        degree = predicate - negated == 3
        if gap is None:
            subject, kind = self._described(words - predicate)
        else:
            subject, kind = gap, gap.noun.kind
        description = self._noun_phrases.description(kind, degree=degree, predicate=True)
        return tree.Clause(subject=subject, tense=tense, predicate=description, negated=negated)

    def _described(self, words: int) -> tuple[tree.Nominal, str]:
        """Return a subject of any kind, and its kind."""
        if words == 1 and self._style.pronouns and self._stream.chance(50):
            return tree.Pronoun(self._stream.choose(SUBJECTS)), "person"
        phrase = self._noun_phrases.light(self._selection.all_nouns, words, self._style.determiners)
        return phrase, phrase.noun.kind

    def _act(
        self, verb: Verb, words: int, tense: tree.Tense, position: ClausePlace
    ) -> tree.Clause | None:
        """Return a clause with this verb, or None if it cannot have this number of words."""
        parts = 2 if verb.objects else 1
        gap = position.gap
        acting = verb.subjects
        if gap is not None and gap.role == "subject":
            acting = frozenset({gap.pronoun.noun.kind})
        plan = clause_parts.draw_plan(
            self._stream,
            self._selection,
            self._style,
            verb=verb,
            words=words - 1,
            keep=parts,
            tense=tense,
            timed=position.timed,
            affirmative=position.affirmative,
            living=acting <= choices.LIVING,
            relative=gap is not None,
        )
        layout = self._layout(verb, plan, position, living=acting <= choices.LIVING)
        return self._fill(verb, plan, layout, tense, position) if layout is not None else None

    def _layout(
        self, verb: Verb, plan: clause_parts.ClausePlan, position: ClausePlace, *, living: bool
    ) -> ClauseLayout | None:
        """Return parts that can have the words of the plan, or None if there are none.

        Nothing may follow a relative clause at the end of an object: it would seem to belong
        inside. So a clause has either a long object or phrases and adverbs after it. For the same
        reason no frequency adverb follows a long subject.
        """
        stream = self._stream
        nested = position.gap is None and self._style.relatives
        long_subject = nested and plan.frequency is None
        long_object = nested and not plan.negated and not plan.trailing
        options = clause_parts.phrase_options(self._style, verb, plan, living=living)
        phrases = [prepositions for prepositions in options if stream.chance(40)]
        # Shorter than it might be, so that not every noun is "very old".
        light = (
            (1, clause_parts.LIGHT - 1)
            if plan.words < 2 * clause_parts.LIGHT and stream.chance(70)
            else (1, clause_parts.LIGHT)
        )
        subject = (1, 1) if position.gap_role == "subject" else light
        thing = None
        if verb.objects:
            thing = (1, 1) if position.gap_role == "object" else light
            if long_object and plan.words > clause_parts.LIGHT and stream.chance(33):
                thing, options, phrases = (1, HEAVY), [], []
        longest = (1, HEAVY) if long_subject else subject
        layout = ClauseLayout(longest if stream.chance(25) else subject, thing, phrases)
        if choices.possible(plan.words, layout.bounds()):
            return layout
        fuller = ClauseLayout(longest, thing, options)
        if choices.possible(plan.words, fuller.bounds()):
            return fuller
        barer = ClauseLayout(longest, thing, [])
        return barer if choices.possible(plan.words, barer.bounds()) else None

    def _fill(
        self,
        verb: Verb,
        plan: clause_parts.ClausePlan,
        layout: ClauseLayout,
        tense: tree.Tense,
        position: ClausePlace,
    ) -> tree.Clause:
        """Draw the nouns of a clause into its layout."""
        stream = self._stream
        shares = choices.share(stream, plan.words, layout.bounds())
        chosen = [stream.choose(prepositions) for prepositions in layout.phrases]
        sizes = shares[len(shares) - len(chosen) :]
        phrases = tuple(
            self._noun_phrases.phrase(preposition, size)
            for preposition, size in zip(chosen, sizes, strict=True)
        )
        subject: tree.Nominal
        thing: tree.Nominal | None = None
        gap = position.gap
        if gap is not None and gap.role == "subject":
            subject = gap.pronoun
        else:
            placed = gap is None and not phrases and plan.place is None
            subject = self._subject(shares[0], verb, plan, tense, position, placed=placed)
        if gap is not None and gap.role == "object":
            thing = gap.pronoun
        elif verb.objects:
            thing = self._object(shares[1], verb, subject, plan, tense, position)
        return tree.Clause(
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
            phrases=phrases,
        )

    def _subject(
        self,
        words: int,
        verb: Verb,
        plan: clause_parts.ClausePlan,
        tense: tree.Tense,
        position: ClausePlace,
        *,
        placed: bool,
    ) -> tree.NounPhrase | tree.Pronoun | tree.Coordination:
        """Return who or what acts; `placed` allows "the man in the garden"."""
        stream, style = self._stream, self._style
        if words == 1 and "person" in verb.subjects and style.pronouns and stream.chance(65):
            return tree.Pronoun(stream.choose(SUBJECTS_WITH_THEY if position.they else SUBJECTS))
        nouns = self._selection.nouns(verb.subjects)
        if words <= clause_parts.LIGHT:
            determiners = style.determiners if plan.negated else style.subject_determiners
            return self._noun_phrases.light(nouns, words, determiners)
        if words <= JOINED and not position.after_and and stream.chance(25):
            return self._noun_phrases.joined(nouns, words)
        if (
            placed
            and words <= clause_parts.LIGHT + clause_parts.LONGEST_PHRASE
            and stream.chance(40)
        ):
            return self._noun_phrases.placed(nouns, words)
        return self._with_relative(nouns, words, tense)

    def _object(
        self,
        words: int,
        verb: Verb,
        subject: tree.Nominal,
        plan: clause_parts.ClausePlan,
        tense: tree.Tense,
        position: ClausePlace,
    ) -> tree.NounPhrase | tree.Pronoun | tree.Coordination:
        """Return what the verb is done to; a negated one has no numeral ("not three dogs")."""
        stream, style = self._stream, self._style
        # "gestern sah ihn der Mann", "gestern sah der Mann ihn": neither order is the only one.
        either = (position.inverted or plan.fronted) and not isinstance(subject, tree.Pronoun)
        pronouns = style.pronouns and "person" in verb.objects and not either
        if words == 1 and pronouns and stream.chance(50):
            first = isinstance(subject, tree.Pronoun) and subject.word in ("I", "we")
            return tree.Pronoun(stream.choose(OBJECTS_OF_FIRST if first else OBJECTS))
        nouns = self._selection.nouns(verb.objects)
        if words <= clause_parts.LIGHT:
            counted = not plan.negated
            phrase = self._noun_phrases.light(nouns, words, style.determiners, counted=counted)
            if isinstance(subject, tree.NounPhrase) and phrase.noun is subject.noun:
                # "The dog sees the dog" is rarely meant; a second draw makes it rare.
                phrase = self._noun_phrases.light(nouns, words, style.determiners, counted=counted)
            return phrase
        if words <= JOINED and not position.before_and and stream.chance(25):
            return self._noun_phrases.joined(nouns, words)
        return self._with_relative(nouns, words, tense)

    def _with_relative(
        self, nouns: tuple[Noun, ...], words: int, tense: tree.Tense
    ) -> tree.NounPhrase:
        """Return a noun phrase with a relative clause, of 5 words or more."""
        longest = min(LONGEST_RELATIVE, words - 2)
        relative = self._stream.between(max(SHORTEST_RELATIVE, words - clause_parts.LIGHT), longest)
        head = self._noun_phrases.light(nouns, words - relative, ("the", "the", "a", ""))
        return tree.NounPhrase(
            head.noun,
            head.plural,
            head.determiner,
            head.description,
            relative=self._relative(tree.RelativePronoun(head.noun, head.plural), relative, tense),
        )

    def _relative(
        self, pronoun: tree.RelativePronoun, words: int, tense: tree.Tense
    ) -> tree.Clause:
        """Return a relative clause of `SHORTEST_RELATIVE` to `LONGEST_RELATIVE` words."""
        stream = self._stream
        kind = pronoun.noun.kind
        if words <= 5 and stream.chance(25):
            return self._copula(words, tense, gap=pronoun)
        acting, undergoing = self._selection.acting[kind], self._selection.undergoing[kind]
        as_subject = ClausePlace(gap=RelativeGap(pronoun, "subject"))
        as_object = ClausePlace(gap=RelativeGap(pronoun, "object"))
        while True:
            if acting and stream.chance(60):
                clause = self._act(stream.choose(acting), words, tense, as_subject)
            else:
                clause = self._act(stream.choose(undergoing), words, tense, as_object)
            if clause is not None:
                return clause
