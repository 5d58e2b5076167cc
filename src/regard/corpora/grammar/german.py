"""German: verb second in main clauses, verb last in subordinate ones."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from regard.corpora.grammar.german_forms import (
    BE,
    BOUND,
    CASES,
    CONJUNCTIONS,
    CONTRACTIONS,
    DEGREES,
    MODALS,
    NUMERALS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVE,
    Case,
    Number,
    adjective_form,
    column,
    determiner_form,
    kein_form,
    noun_form,
    verb_form,
)
from regard.corpora.grammar.tree import (
    Cause,
    Clause,
    Coordination,
    Description,
    Language,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    Sentence,
    Subordinate,
    Token,
    words,
)

Order: TypeAlias = Literal["second", "inverted", "last"]
"""Where the finite verb stands: after the subject, before it, or at the end."""


def realise(sentence: Sentence) -> list[Token]:
    """Return the words of a sentence."""
    tokens: list[Token] = []
    order: Order = "second"
    if sentence.fronted is not None:
        tokens += _subordinate(sentence.fronted)
        tokens.append(_comma((sentence.fronted, "close")))
        order = "inverted"
    for index, clause in enumerate(sentence.clauses):
        if index:
            cause = (sentence, f"joint {index - 1}")
            if sentence.joints[index - 1] == "but":
                tokens += [_comma(cause), Token("aber", (cause,))]
            else:
                tokens.append(Token("und", (cause,)))
        tokens += _clause(clause, order)
        order = "second"
    for subordinate in sentence.subordinates:
        tokens.append(_comma((subordinate, "conjunction")))
        tokens += _subordinate(subordinate)
    return _merge_commas(tokens)


def _comma(cause: Cause) -> Token:
    return Token(",", (cause,))


def _merge_commas(tokens: list[Token]) -> list[Token]:
    """Drop a comma at the end or before another: the comma that opens speaks for both."""
    following = [*(token.text for token in tokens[1:]), ","]
    return [
        token for token, after in zip(tokens, following, strict=True)
        if token.text != "," or after != ","
    ]  # fmt: skip


def _subordinate(subordinate: Subordinate) -> list[Token]:
    conjunction = CONJUNCTIONS[subordinate.conjunction]
    tokens = [Token(conjunction, ((subordinate, "conjunction"),))]
    return tokens + _clause(subordinate.clause, "last")


def _clause(clause: Clause, order: Order) -> list[Token]:
    """Return a clause with its finite verb second, first (inverted) or last."""
    finite, ending = _verbs(clause)
    front: list[Token] = []
    if clause.fronted is not None:
        front = words(clause.fronted.german, (clause, "fronted"))
        order = "inverted"
    if isinstance(clause.object, RelativePronoun):
        front += _nominal(clause.object, _object_case(clause))
    subject = _nominal(clause.subject, "nominative")
    middle = _middle(clause)
    if order == "second":
        tokens = [*front, *subject, finite, *middle, *ending]
    elif order == "inverted":
        tokens = [*front, finite, *subject, *middle, *ending]
    else:
        tokens = [*front, *subject, *middle, *_joined(clause, finite, ending)]
    if clause.content is not None:
        cause = (clause, "that")
        tokens += [_comma(cause), Token("dass", (cause,)), *_clause(clause.content, "last")]
    return tokens


def _verbs(clause: Clause) -> tuple[Token, list[Token]]:
    """Return the finite verb, and what stands at the end of a main clause: prefix or infinitive."""
    number = _number(clause.subject)
    finite, full = (clause, "finite"), (clause, "verb")
    verb = clause.verb
    if clause.modal is not None:
        singular, plural = MODALS[clause.modal, clause.tense]
        infinitive = verb.german_prefix + verb.german if verb is not None else "sein"
        modal = Token(plural if number == "plural" else singular, (finite,))
        return modal, [Token(infinitive, (full,))]
    if verb is None:
        return Token(BE[clause.tense, number], (finite,)), []
    prefix = [Token(verb.german_prefix, (full,))] if verb.german_prefix else []
    return Token(verb_form(verb, clause.tense, number), (finite,)), prefix


def _joined(clause: Clause, finite: Token, ending: list[Token]) -> list[Token]:
    """Return the verbs as they stand at the end: "anruft", "anrufen will"."""
    if not ending or clause.modal is not None:
        return [*ending, finite]
    return [Token(ending[0].text + finite.text, finite.causes)]


def _number(subject: Nominal) -> Number:
    if subject.plural:
        return "plural"
    return "first" if isinstance(subject, Pronoun) and subject.word == "I" else "third"


def _object_case(clause: Clause) -> Case:
    return cast(Case, clause.verb.german_case) if clause.verb is not None else "accusative"


def _middle(clause: Clause) -> list[Token]:
    """Return what stands between the verbs.

    What is known comes early and what is new late: pronouns and definite objects, time, frequency,
    "nicht", manner, place, then indefinite or long objects, phrases, and predicate adjectives.
    """
    tokens: list[Token] = []
    thing = clause.object if not isinstance(clause.object, RelativePronoun) else None
    negated_object = clause.negated and isinstance(thing, NounPhrase) and thing.indefinite
    light = thing is not None and _light(thing)
    if thing is not None and light:
        tokens += _nominal(thing, _object_case(clause))
    for adverb, role in ((clause.time, "time"), (clause.frequency, "frequency")):
        if adverb is not None:
            tokens += words(adverb.german, (clause, role))
    if clause.negated and not negated_object:
        tokens.append(Token("nicht", ((clause, "not"),)))
    for adverb, role in ((clause.manner, "manner"), (clause.place, "place")):
        if adverb is not None:
            tokens += words(adverb.german, (clause, role))
    if thing is not None and not light:
        denial = (clause, "not") if negated_object else None
        tokens += _nominal(thing, _object_case(clause), denial=denial)
    for phrase in clause.phrases:
        tokens += _prepositional(phrase)
    if clause.predicate is not None:
        tokens += _degree(clause.predicate)
        adjective = clause.predicate.adjective.german
        tokens.append(Token(adjective, ((clause.predicate, "adjective"),)))
    return tokens


def _light(thing: Nominal) -> bool:
    """Whether an object stands before the adverbs and "nicht": known, and without a clause."""
    if isinstance(thing, Coordination):
        return _light(thing.first) and _light(thing.second)
    if isinstance(thing, NounPhrase):
        new = thing.indefinite or thing.determiner in NUMERALS
        return not new and thing.relative is None
    return True


def _nominal(nominal: Nominal, case: Case, *, denial: Cause | None = None) -> list[Token]:
    if isinstance(nominal, NounPhrase):
        return _noun_phrase(nominal, case, denial=denial)
    if isinstance(nominal, Pronoun):
        return [Token(_pronoun(nominal, case), ((nominal, "pronoun"),))]
    if isinstance(nominal, RelativePronoun):
        cause = (nominal, "pronoun")
        word = RELATIVE[case][column(nominal.noun, nominal.plural)]
        return [_comma(cause), Token(word, (cause,))]
    joint = Token("und", ((nominal, "and"),))
    return [*_noun_phrase(nominal.first, case), joint, *_noun_phrase(nominal.second, case)]


def _pronoun(pronoun: Pronoun, case: Case) -> str:
    """Return the pronoun; "it" takes the gender of the noun that it stands for."""
    word = pronoun.word
    if word == "it" and pronoun.antecedent is not None:
        word = BOUND[pronoun.antecedent.noun.german_gender]
    return PRONOUNS[word][CASES.index(case)]


def _noun_phrase(
    phrase: NounPhrase, case: Case, *, denial: Cause | None = None, article: bool = True
) -> list[Token]:
    """Return the phrase; denied, it takes "kein"; a contracted preposition holds its article."""
    tokens: list[Token] = []
    determiner = phrase.determiner
    cause = (phrase, "determiner")
    if denial is not None:
        kein = kein_form(case, phrase.noun, phrase.plural)
        tokens.append(Token(kein, (denial, cause) if determiner else (denial,)))
        determiner = "a"
    elif determiner and article:
        form = determiner_form(determiner, case, phrase.noun, phrase.plural)
        tokens.append(Token(form, (cause,)))
    if phrase.description is not None:
        tokens += _degree(phrase.description)
        adjective = adjective_form(
            phrase.description.adjective, determiner, case, column(phrase.noun, phrase.plural)
        )
        tokens.append(Token(adjective, ((phrase.description, "adjective"),)))
    tokens.append(Token(noun_form(phrase.noun, case, phrase.plural), ((phrase, "noun"),)))
    if phrase.place is not None:
        tokens += _prepositional(phrase.place)
    if phrase.relative is not None:
        tokens += _relative(phrase.relative)
    return tokens


def _relative(clause: Clause) -> list[Token]:
    """Return a relative clause between its commas; both belong to the relative pronoun."""
    tokens = _clause(clause, "last")
    return [*tokens, tokens[0]]


def _degree(description: Description) -> list[Token]:
    if not description.degree:
        return []
    return [Token(DEGREES[description.degree], ((description, "degree"),))]


def _prepositional(phrase: PrepositionalPhrase) -> list[Token]:
    """Return preposition and noun phrase, contracted where German contracts: "im", "zur"."""
    preposition, case = PREPOSITIONS[phrase.preposition]
    complement = phrase.complement
    cause = (phrase, "preposition")
    if complement.determiner == "the":
        article = determiner_form("the", case, complement.noun, complement.plural)
        contracted = CONTRACTIONS.get((preposition, article))
        if contracted is not None and not complement.plural:
            token = Token(contracted, (cause, (complement, "determiner")))
            return [token, *_noun_phrase(complement, case, article=False)]
    return [Token(preposition, (cause,)), *_noun_phrase(complement, case)]


LANGUAGE = Language(realise=realise, conjunctions=tuple(CONJUNCTIONS))
