"""German: verb second in main clauses, verb last in subordinate ones."""

from typing import Literal, TypeAlias, cast

from regard.corpora.grammar import german_forms as forms
from regard.corpora.grammar import tree

Order: TypeAlias = Literal["second", "inverted", "last"]
"""Where the finite verb stands: after the subject, before it, or at the end."""


def realise(sentence: tree.SentenceTree) -> list[tree.LinkedWord]:
    """Return the words of a sentence."""
    tokens: list[tree.LinkedWord] = []
    order: Order = "second"
    if sentence.fronted is not None:
        tokens += _subordinate(sentence.fronted)
        tokens.append(_comma((sentence.fronted, "close")))
        order = "inverted"
    for index, clause in enumerate(sentence.clauses):
        if index:
            cause = (sentence, f"joint {index - 1}")
            if sentence.joints[index - 1] == "but":
                tokens += [_comma(cause), tree.LinkedWord("aber", (cause,))]
            else:
                tokens.append(tree.LinkedWord("und", (cause,)))
        tokens += _clause(clause, order)
        order = "second"
    for subordinate in sentence.subordinates:
        tokens.append(_comma((subordinate, "conjunction")))
        tokens += _subordinate(subordinate)
    return _merge_commas(tokens)


def _comma(cause: tree.Cause) -> tree.LinkedWord:
    return tree.LinkedWord(",", (cause,))


def _merge_commas(tokens: list[tree.LinkedWord]) -> list[tree.LinkedWord]:
    """Drop a comma at the end or before another: the comma that opens speaks for both."""
    following = [*(token.text for token in tokens[1:]), ","]
    return [
        token for token, after in zip(tokens, following, strict=True)
        if token.text != "," or after != ","
    ]  # fmt: skip


def _subordinate(subordinate: tree.Subordinate) -> list[tree.LinkedWord]:
    conjunction = forms.CONJUNCTIONS[subordinate.conjunction]
    tokens = [tree.LinkedWord(conjunction, ((subordinate, "conjunction"),))]
    return tokens + _clause(subordinate.clause, "last")


def _clause(clause: tree.Clause, order: Order) -> list[tree.LinkedWord]:
    """Return a clause with its finite verb second, first (inverted) or last."""
    finite, ending = _verbs(clause)
    front: list[tree.LinkedWord] = []
    if clause.fronted is not None:
        front = tree.words(clause.fronted.german, (clause, "fronted"))
        order = "inverted"
    if isinstance(clause.object, tree.RelativePronoun):
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
        tokens += [
            _comma(cause),
            tree.LinkedWord("dass", (cause,)),
            *_clause(clause.content, "last"),
        ]
    return tokens


def _verbs(clause: tree.Clause) -> tuple[tree.LinkedWord, list[tree.LinkedWord]]:
    """Return the finite verb, and what stands at the end of a main clause: prefix or infinitive."""
    number = _number(clause.subject)
    finite, full = (clause, "finite"), (clause, "verb")
    verb = clause.verb
    if clause.modal is not None:
        singular, plural = forms.MODALS[clause.modal, clause.tense]
        infinitive = verb.german_prefix + verb.german if verb is not None else "sein"
        modal = tree.LinkedWord(plural if number == "plural" else singular, (finite,))
        return modal, [tree.LinkedWord(infinitive, (full,))]
    if verb is None:
        return tree.LinkedWord(forms.BE[clause.tense, number], (finite,)), []
    prefix = [tree.LinkedWord(verb.german_prefix, (full,))] if verb.german_prefix else []
    return tree.LinkedWord(forms.verb_form(verb, clause.tense, number), (finite,)), prefix


def _joined(
    clause: tree.Clause, finite: tree.LinkedWord, ending: list[tree.LinkedWord]
) -> list[tree.LinkedWord]:
    """Return the verbs as they stand at the end: "anruft", "anrufen will"."""
    if not ending or clause.modal is not None:
        return [*ending, finite]
    return [tree.LinkedWord(ending[0].text + finite.text, finite.causes)]


def _number(subject: tree.Nominal) -> forms.Number:
    if subject.plural:
        return "plural"
    return "first" if isinstance(subject, tree.Pronoun) and subject.word == "I" else "third"


def _object_case(clause: tree.Clause) -> forms.Case:
    return cast(forms.Case, clause.verb.german_case) if clause.verb is not None else "accusative"


def _middle(clause: tree.Clause) -> list[tree.LinkedWord]:
    """Return what stands between the verbs.

    What is known comes early and what is new late: pronouns and definite objects, time, frequency,
    "nicht", manner, place, then indefinite or long objects, phrases, and predicate adjectives.
    """
    tokens: list[tree.LinkedWord] = []
    thing = clause.object if not isinstance(clause.object, tree.RelativePronoun) else None
    negated_object = clause.negated and isinstance(thing, tree.NounPhrase) and thing.indefinite
    light = thing is not None and _light(thing)
    if thing is not None and light:
        tokens += _nominal(thing, _object_case(clause))
    for adverb, role in ((clause.time, "time"), (clause.frequency, "frequency")):
        if adverb is not None:
            tokens += tree.words(adverb.german, (clause, role))
    if clause.negated and not negated_object:
        tokens.append(tree.LinkedWord("nicht", ((clause, "not"),)))
    for adverb, role in ((clause.manner, "manner"), (clause.place, "place")):
        if adverb is not None:
            tokens += tree.words(adverb.german, (clause, role))
    if thing is not None and not light:
        denial = (clause, "not") if negated_object else None
        tokens += _nominal(thing, _object_case(clause), denial=denial)
    for phrase in clause.phrases:
        tokens += _prepositional(phrase)
    if clause.predicate is not None:
        tokens += _degree(clause.predicate)
        adjective = clause.predicate.adjective.german
        tokens.append(tree.LinkedWord(adjective, ((clause.predicate, "adjective"),)))
    return tokens


def _light(thing: tree.Nominal) -> bool:
    """Whether an object stands before the adverbs and "nicht": known, and without a clause."""
    if isinstance(thing, tree.Coordination):
        return _light(thing.first) and _light(thing.second)
    if isinstance(thing, tree.NounPhrase):
        new = thing.indefinite or thing.determiner in forms.NUMERALS
        return not new and thing.relative is None
    return True


def _nominal(
    nominal: tree.Nominal, case: forms.Case, *, denial: tree.Cause | None = None
) -> list[tree.LinkedWord]:
    if isinstance(nominal, tree.NounPhrase):
        return _noun_phrase(nominal, case, denial=denial)
    if isinstance(nominal, tree.Pronoun):
        return [tree.LinkedWord(_pronoun(nominal, case), ((nominal, "pronoun"),))]
    if isinstance(nominal, tree.RelativePronoun):
        cause = (nominal, "pronoun")
        word = forms.RELATIVE[case][forms.column(nominal.noun, nominal.plural)]
        return [_comma(cause), tree.LinkedWord(word, (cause,))]
    joint = tree.LinkedWord("und", ((nominal, "and"),))
    return [*_noun_phrase(nominal.first, case), joint, *_noun_phrase(nominal.second, case)]


def _pronoun(pronoun: tree.Pronoun, case: forms.Case) -> str:
    """Return the pronoun; "it" takes the gender of the noun that it stands for."""
    word = pronoun.word
    if word == "it" and pronoun.antecedent is not None:
        word = forms.BOUND[pronoun.antecedent.noun.german_gender]
    return forms.PRONOUNS[word][forms.CASES.index(case)]


def _noun_phrase(
    phrase: tree.NounPhrase,
    case: forms.Case,
    *,
    denial: tree.Cause | None = None,
    article: bool = True,
) -> list[tree.LinkedWord]:
    """Return the phrase; denied, it takes "kein"; a contracted preposition holds its article."""
    tokens: list[tree.LinkedWord] = []
    determiner = phrase.determiner
    cause = (phrase, "determiner")
    if denial is not None:
        kein = forms.kein_form(case, phrase.noun, phrase.plural)
        tokens.append(tree.LinkedWord(kein, (denial, cause) if determiner else (denial,)))
        determiner = "a"
    elif determiner and article:
        form = forms.determiner_form(determiner, case, phrase.noun, phrase.plural)
        tokens.append(tree.LinkedWord(form, (cause,)))
    if phrase.description is not None:
        tokens += _degree(phrase.description)
        adjective = forms.adjective_form(
            phrase.description.adjective, determiner, case, forms.column(phrase.noun, phrase.plural)
        )
        tokens.append(tree.LinkedWord(adjective, ((phrase.description, "adjective"),)))
    tokens.append(
        tree.LinkedWord(forms.noun_form(phrase.noun, case, phrase.plural), ((phrase, "noun"),))
    )
    if phrase.place is not None:
        tokens += _prepositional(phrase.place)
    if phrase.relative is not None:
        tokens += _relative(phrase.relative)
    return tokens


def _relative(clause: tree.Clause) -> list[tree.LinkedWord]:
    """Return a relative clause between its commas; both belong to the relative pronoun."""
    tokens = _clause(clause, "last")
    return [*tokens, tokens[0]]


def _degree(description: tree.Description) -> list[tree.LinkedWord]:
    if not description.degree:
        return []
    return [tree.LinkedWord(forms.DEGREES[description.degree], ((description, "degree"),))]


def _prepositional(phrase: tree.PrepositionalPhrase) -> list[tree.LinkedWord]:
    """Return preposition and noun phrase, contracted where German contracts: "im", "zur"."""
    preposition, case = forms.PREPOSITIONS[phrase.preposition]
    complement = phrase.complement
    cause = (phrase, "preposition")
    if complement.determiner == "the":
        article = forms.determiner_form("the", case, complement.noun, complement.plural)
        contracted = forms.CONTRACTIONS.get((preposition, article))
        if contracted is not None and not complement.plural:
            token = tree.LinkedWord(contracted, (cause, (complement, "determiner")))
            return [token, *_noun_phrase(complement, case, article=False)]
    return [tree.LinkedWord(preposition, (cause,)), *_noun_phrase(complement, case)]


LANGUAGE = tree.Language(realise=realise, conjunctions=tuple(forms.CONJUNCTIONS))
