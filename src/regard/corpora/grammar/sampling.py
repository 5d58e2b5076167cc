"""Samples sentences with an exact number of English words."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from regard.corpora.grammar import tree
from regard.corpora.grammar.choices import FULL, SMALL, RandomStream, Selection, share
from regard.corpora.grammar.clauses import LONGEST_CLAUSE, ClausePlace, Clauses
from regard.corpora.grammar.lexicon import Adjective, Lexicon

PLURALS_PASSED = 70
HostRole: TypeAlias = Literal["subject", "object"]


class Antecedent(NamedTuple):
    """A noun phrase, and an adjective that fits no other noun of the clause."""

    phrase: tree.NounPhrase
    adjective: Adjective


def find_antecedent(
    stream: RandomStream,
    selection: Selection,
    host: tree.Clause,
    *,
    contested: HostRole | None = None,
) -> Antecedent | None:
    """Return a head noun of the clause that an adjective identifies, or None.

    With `contested` it must play this part, be singular and have a rival: another noun that "it"
    could stand for.
    """
    in_sight = list(noun_phrases(host))
    joined = isinstance(host.subject, tree.Coordination) or isinstance(
        host.object, tree.Coordination
    )
    heads = [
        phrase
        for phrase in (host.subject, host.object)
        if isinstance(phrase, tree.NounPhrase) and _may_stand(phrase, host, joined=joined)
    ]
    singular = [phrase for phrase in heads if not phrase.plural]
    # "It" shows its gender and "they" does not, so most hosts with plurals alone are passed over.
    if not heads or (not singular and stream.chance(PLURALS_PASSED)):
        return None
    chosen = stream.choose(singular or heads)
    if contested is not None:
        if len([phrase for phrase in in_sight if may_be_it(phrase)]) < 2:
            return None
        wanted = host.subject if contested == "subject" else host.object
        if wanted not in singular:
            return None
        chosen = next(phrase for phrase in singular if phrase is wanted)
    rivals = {
        phrase.noun.kind
        for phrase in in_sight
        if phrase is not chosen and phrase.plural == chosen.plural
    }
    if not chosen.plural:
        rivals.discard("person")  # "it" is never a person
    adjectives = [
        adjective
        for adjective in selection.predicates[chosen.noun.kind]
        if not rivals & adjective.nouns
    ]
    return Antecedent(chosen, stream.choose(adjectives)) if adjectives else None


def may_be_it(phrase: tree.NounPhrase) -> bool:
    """Whether "it" could stand for a noun, by number and kind alone."""
    return not phrase.plural and phrase.noun.kind != "person"


def _may_stand(phrase: tree.NounPhrase, host: tree.Clause, *, joined: bool) -> bool:
    """Whether "it" or "they" can refer to a phrase: not to a person, nor to what is denied."""
    denied = host.negated and phrase is host.object and phrase.indefinite
    if denied or phrase.determiner == "every":
        return False
    return not joined if phrase.plural else phrase.noun.kind != "person"


def noun_phrases(clause: tree.Clause) -> Iterator[tree.NounPhrase]:
    """Yield every noun phrase of a clause, those inside others included."""
    yield from _inside(clause.subject)
    if clause.object is not None:
        yield from _inside(clause.object)
    for phrase in clause.phrases:
        yield from _inside(phrase.complement)
    if clause.content is not None:
        yield from noun_phrases(clause.content)


def _inside(nominal: tree.Nominal) -> Iterator[tree.NounPhrase]:
    if isinstance(nominal, tree.Coordination):
        yield from _inside(nominal.first)
        yield from _inside(nominal.second)
    elif isinstance(nominal, tree.NounPhrase):
        yield nominal
        if nominal.place is not None:
            yield from _inside(nominal.place.complement)
        if nominal.relative is not None:
            yield from noun_phrases(nominal.relative)


HOST_BOUNDS = (4, 14)
"""Words of a clause with a noun for a pronoun; in longer ones no noun stands out."""
PRONOUN_TRIES = 8
CONTESTED_WORDS = 10
"""Words of the shortest sentences in which "it" has rivals: two nouns with their articles."""
CONTESTED_TRIES = 400
CLAUSE_BOUNDS = (3, LONGEST_CLAUSE)
Joint: TypeAlias = Literal["and", "but"]


class Sampler:
    """A sampler of sentences for a target language."""

    def __init__(
        self,
        lexicon: Lexicon,
        stream: RandomStream,
        language: tree.Language,
        *,
        small: bool,
        contested: float = 0.0,
    ):
        """`contested` is the share of sentences of 10 words and more in which "it" has rivals."""
        self._contested = round(100 * contested)
        self._stream = stream
        self._style = SMALL if small else FULL
        self._selection = Selection(lexicon)
        self._clauses = Clauses(self._selection, stream, self._style)
        conjunctions = [each for each in self._style.conjunctions if each in language.conjunctions]
        self._conjunctions: dict[tree.Tense, tuple[tree.Conjunction, ...]] = {
            "present": tuple(conjunctions),
            # "if he slept" could be a wish or a habit.
            "past": tuple(each for each in conjunctions if each != "if"),
        }

    def sentence(self, words: int) -> tree.SentenceTree:
        """Return a sentence of exactly `words` English words, 3 or more."""
        stream = self._stream
        tense: tree.Tense = "past" if stream.chance(50) else "present"
        if self._contested and words >= CONTESTED_WORDS and stream.chance(self._contested):
            # Drawn before the sentence, so that its place in the clause gives no noun away.
            role: HostRole = "subject" if stream.chance(50) else "object"
            found = self._with_pronoun(words, tense, contested=role)
            if found is not None:
                return found
        if words >= 8 and stream.chance(self._style.pronoun_percent):
            found = self._with_pronoun(words, tense)
            if found is not None:
                return found
        return self._plain(words, tense)

    def _plain(self, words: int, tense: tree.Tense) -> tree.SentenceTree:
        """Return main and subordinate clauses."""
        stream = self._stream
        count = self._number_of_clauses(words)
        fronted = count > 1 and self._style.fronted and stream.chance(30)
        after = stream.below(min(2, count - 1 - fronted) + 1)
        sizes = share(stream, words - (count - 1) - fronted, [CLAUSE_BOUNDS] * count)
        mains = count - fronted - after
        conjunctions = self._draw_conjunctions(tense, after + fronted)
        joints = self._joints(mains - 1)
        first = None
        if fronted:
            first = self._subordinate(conjunctions.pop(), sizes.pop(), tense)
        return tree.SentenceTree(
            clauses=tuple(
                self._main(sizes.pop(), tense, index, joints, fronted=fronted)
                for index in range(mains)
            ),
            joints=joints,
            fronted=first,
            subordinates=self._subordinates(conjunctions, sizes, tense),
        )

    def _number_of_clauses(self, words: int) -> int:
        """Return how many clauses share the words, so that each has its bounds.

        Each but the first takes one more word for its joint, and a fronted one two.
        """
        shortest, longest = CLAUSE_BOUNDS
        fewest = -(-words // longest)
        most = max(fewest, (words - 1) // (shortest + 4))
        return self._stream.between(fewest, most)

    def _main(
        self, words: int, tense: tree.Tense, index: int, joints: Sequence[Joint], *, fronted: bool
    ) -> tree.Clause:
        """Return a main clause; only the last may hold a that-clause, which "and" would join."""
        position = ClausePlace(
            timed=index == 0 and not fronted,
            they=index == 0 and not fronted,
            inverted=index == 0 and fronted,
            content=index == len(joints),
            after_and=index > 0 and joints[index - 1] == "and",
            before_and=index < len(joints) and joints[index] == "and",
        )
        return self._clauses.clause(words, tense, position)

    def _subordinate(
        self, conjunction: tree.Conjunction, words: int, tense: tree.Tense
    ) -> tree.Subordinate:
        """Return a subordinate clause; "before" takes no negation."""
        position = ClausePlace(affirmative=conjunction == "before")
        return tree.Subordinate(conjunction, self._clauses.clause(words, tense, position))

    def _subordinates(
        self, conjunctions: list[tree.Conjunction], sizes: list[int], tense: tree.Tense
    ) -> tuple[tree.Subordinate, ...]:
        """Return the subordinate clauses at the end, one for each conjunction."""
        return tuple(
            self._subordinate(conjunction, size, tense)
            for conjunction, size in zip(conjunctions, sizes, strict=True)
        )

    def _draw_conjunctions(
        self, tense: tree.Tense, count: int, before: tree.Conjunction | None = None
    ) -> list[tree.Conjunction]:
        """Return conjunctions, each another than the one before it where there is a choice."""
        drawn: list[tree.Conjunction] = []
        options = self._conjunctions[tense]
        for _ in range(count):
            fresh = [each for each in options if each != before]
            drawn.append(self._stream.choose(fresh or options))
            before = drawn[-1]
        return drawn

    def _joints(self, count: int) -> tuple[Joint, ...]:
        """Return "and" for each place between clauses, with one "but" among them at most."""
        joints: list[Joint] = ["and"] * count
        if joints and self._style.fronted and self._stream.chance(40):
            joints[self._stream.below(count)] = "but"
        return tuple(joints)

    def _with_pronoun(
        self, words: int, tense: tree.Tense, *, contested: HostRole | None = None
    ) -> tree.SentenceTree | None:
        """Return a sentence in which a pronoun stands for a noun of the clause before it.

        The two clauses come first, so that no other noun is in sight, and other clauses follow.
        """
        stream = self._stream
        degree: tree.Degree = stream.choose(("", "very", "too", "too", "too", "too"))
        left = words - (5 if degree else 4)
        shortest, longest = HOST_BOUNDS
        alone = left <= longest and (left < shortest + 5 or stream.chance(60))
        if not alone and not self._style.fronted:
            return None
        host_words = left if alone else stream.between(shortest, min(longest, left - 4))
        pair = self._pronoun_pair(host_words, degree, tense, contested)
        if pair is None:
            return None
        host, described = pair
        count = 0 if alone else self._number_of_clauses(left - host_words)
        sizes = share(stream, left - host_words - count, [CLAUSE_BOUNDS] * count)
        if count > 2 or stream.chance(30):
            return self._contrast(host, described, sizes, tense)
        conjunction = self._pronoun_conjunction()
        others = self._draw_conjunctions(tense, count, conjunction)
        return tree.SentenceTree(
            clauses=(host,),
            subordinates=(
                tree.Subordinate(conjunction, described),
                *self._subordinates(others, sizes, tense),
            ),
        )

    def _pronoun_pair(
        self, words: int, degree: tree.Degree, tense: tree.Tense, contested: HostRole | None
    ) -> tuple[tree.Clause, tree.Clause] | None:
        """Return a clause and what is said of one of its nouns: "it was too wide"."""
        for _ in range(PRONOUN_TRIES if contested is None else CONTESTED_TRIES):
            host = self._clauses.host(words, tense, ClausePlace(timed=True))
            found = find_antecedent(self._stream, self._selection, host, contested=contested)
            if found is not None:
                subject = tree.Pronoun("they" if found.phrase.plural else "it", found.phrase)
                predicate = tree.Description(found.adjective, degree)
                return host, tree.Clause(subject=subject, tense=tense, predicate=predicate)
        return None

    def _pronoun_conjunction(self) -> tree.Conjunction:
        """Return "because", or sometimes "although" if the style and the language have it."""
        options = self._conjunctions["past"]
        return "although" if "although" in options and self._stream.chance(20) else "because"

    def _contrast(
        self, host: tree.Clause, described: tree.Clause, sizes: list[int], tense: tree.Tense
    ) -> tree.SentenceTree:
        """Return "the animal saw the street but it was too wide", and the clauses that follow."""
        after = self._stream.below(min(2, len(sizes)) + 1)
        joints: list[Joint] = ["but"]
        joints += ["and"] * (len(sizes) - after)
        conjunctions = self._draw_conjunctions(tense, after)
        mains = [
            self._main(size, tense, index, joints, fronted=False)
            for index, size in enumerate(sizes[after:], start=2)
        ]
        return tree.SentenceTree(
            clauses=(host, described, *mains),
            joints=tuple(joints),
            subordinates=self._subordinates(conjunctions, sizes[:after], tense),
        )
