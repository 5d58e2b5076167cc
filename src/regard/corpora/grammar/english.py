"""English: the source of every pair. Its only comma ends a fronted subordinate clause."""

from typing import Literal

from regard.corpora.grammar import tree
from regard.corpora.grammar.lexicon import Verb

OBJECT_PRONOUNS = {"I": "me", "we": "us", "he": "him", "she": "her", "it": "it", "they": "them"}
MODALS: dict[tuple[tree.Modal, tree.Tense], str] = {
    ("can", "present"): "can",
    ("must", "present"): "must",
    ("should", "present"): "should",
}
SILENT_H = ("hour", "honest", "heir")
CONSONANT_SOUND = ("uni", "use", "usu", "eu", "one")

SubjectForm = Literal["I", "singular", "plural"]


def realise(sentence: tree.SentenceTree) -> list[tree.LinkedWord]:
    """Return the words of a sentence."""
    tokens: list[tree.LinkedWord] = []
    if sentence.fronted is not None:
        tokens += _subordinate(sentence.fronted)
        tokens.append(tree.LinkedWord(",", ((sentence.fronted, "close"),)))
    for index, clause in enumerate(sentence.clauses):
        if index:
            joint = sentence.joints[index - 1]
            tokens.append(tree.LinkedWord(joint, ((sentence, f"joint {index - 1}"),)))
        tokens += _clause(clause)
    for subordinate in sentence.subordinates:
        tokens += _subordinate(subordinate)
    return tokens


def _subordinate(subordinate: tree.Subordinate) -> list[tree.LinkedWord]:
    conjunction = tree.LinkedWord(subordinate.conjunction, ((subordinate, "conjunction"),))
    return [conjunction, *_clause(subordinate.clause)]


def _clause(clause: tree.Clause) -> list[tree.LinkedWord]:
    """Return [time] [object pronoun] subject verb object manner place phrases time that-clause."""
    tokens: list[tree.LinkedWord] = []
    if clause.fronted is not None:
        tokens += tree.words(clause.fronted.english, (clause, "fronted"))
    moved = isinstance(clause.object, tree.RelativePronoun)
    if clause.object is not None and moved:
        tokens += _nominal(clause.object, subject=False)
    tokens += _nominal(clause.subject, subject=True)
    tokens += _verbs(clause)
    if clause.object is not None and not moved:
        tokens += _nominal(clause.object, subject=False)
    if clause.predicate is not None:
        tokens += _description(clause.predicate)
    if clause.manner is not None:
        tokens += tree.words(clause.manner.english, (clause, "manner"))
    if clause.place is not None:
        tokens += tree.words(clause.place.english, (clause, "place"))
    for phrase in clause.phrases:
        tokens += _prepositional(phrase)
    if clause.time is not None:
        tokens += tree.words(clause.time.english, (clause, "time"))
    if clause.content is not None:
        tokens.append(tree.LinkedWord("that", ((clause, "that"),)))
        tokens += _clause(clause.content)
    return tokens


def _verbs(clause: tree.Clause) -> list[tree.LinkedWord]:
    """Return the finite verb with "do", "not", the frequency adverb and "to"."""
    agreement = _agreement(clause.subject)
    finite = (clause, "finite")
    base = clause.verb.english if clause.verb is not None else "be"
    rest: list[tree.LinkedWord] = []
    if clause.modal == "want":
        to = tree.LinkedWord("to", ())
        rest = [to, *tree.words(base, (clause, "verb"))]
        if clause.negated:
            head = [tree.LinkedWord(_do(clause.tense, agreement), (finite,))]
            rest = [tree.LinkedWord("want", (finite,)), *rest]
        else:
            head = [tree.LinkedWord(_want(clause.tense, agreement), (finite,))]
    elif clause.modal is not None:
        head = [tree.LinkedWord(MODALS[clause.modal, clause.tense], (finite,))]
        rest = tree.words(base, (clause, "verb"))
    elif clause.verb is None:
        head = [tree.LinkedWord(_be(clause.tense, agreement), (finite, (clause, "verb")))]
    elif clause.negated:
        head = [tree.LinkedWord(_do(clause.tense, agreement), (finite,))]
        rest = tree.words(base, finite, (clause, "verb"))
    else:
        head = []
        rest = tree.words(_finite(clause.verb, clause.tense, agreement), finite, (clause, "verb"))
    if clause.negated:
        head.append(tree.LinkedWord("not", ((clause, "not"),)))
    if clause.frequency is not None:
        head += tree.words(clause.frequency.english, (clause, "frequency"))
    return head + rest


def _finite(verb: Verb, tense: tree.Tense, agreement: SubjectForm) -> str:
    if tense == "past":
        return verb.english_past
    return verb.english_third if agreement == "singular" else verb.english


def _do(tense: tree.Tense, agreement: SubjectForm) -> str:
    if tense == "past":
        return "did"
    return "does" if agreement == "singular" else "do"


def _want(tense: tree.Tense, agreement: SubjectForm) -> str:
    if tense == "past":
        return "wanted"
    return "wants" if agreement == "singular" else "want"


def _be(tense: tree.Tense, agreement: SubjectForm) -> str:
    if tense == "past":
        return "were" if agreement == "plural" else "was"
    return {"I": "am", "singular": "is", "plural": "are"}[agreement]


def _agreement(subject: tree.Nominal) -> SubjectForm:
    if isinstance(subject, tree.Pronoun) and subject.word == "I":
        return "I"
    return "plural" if subject.plural else "singular"


def _nominal(nominal: tree.Nominal, *, subject: bool) -> list[tree.LinkedWord]:
    if isinstance(nominal, tree.NounPhrase):
        return _noun_phrase(nominal)
    if isinstance(nominal, tree.Pronoun):
        word = nominal.word if subject else OBJECT_PRONOUNS[nominal.word]
        return [tree.LinkedWord(word, ((nominal, "pronoun"),))]
    if isinstance(nominal, tree.RelativePronoun):
        person = "who" if subject else "whom"
        word = person if nominal.noun.kind == "person" else "that"
        return [tree.LinkedWord(word, ((nominal, "pronoun"),))]
    return _coordination(nominal)


def _coordination(nominal: tree.Coordination) -> list[tree.LinkedWord]:
    joint = tree.LinkedWord("and", ((nominal, "and"),))
    return [*_noun_phrase(nominal.first), joint, *_noun_phrase(nominal.second)]


def _noun_phrase(phrase: tree.NounPhrase) -> list[tree.LinkedWord]:
    tokens: list[tree.LinkedWord] = []
    if phrase.description is not None:
        tokens += _description(phrase.description)
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    tokens += tree.words(noun, (phrase, "noun"))
    if phrase.determiner:
        determiner = _determiner(phrase, following=tokens[0].text)
        tokens.insert(0, tree.LinkedWord(determiner, ((phrase, "determiner"),)))
    if phrase.place is not None:
        tokens += _prepositional(phrase.place)
    if phrase.relative is not None:
        tokens += _clause(phrase.relative)
    return tokens


def _determiner(phrase: tree.NounPhrase, *, following: str) -> str:
    if phrase.determiner == "a":
        return indefinite_article(following)
    if phrase.determiner == "this" and phrase.plural:
        return "these"
    return phrase.determiner


def indefinite_article(following: str) -> str:
    """Return "a" or "an", depending on the first sound of the next word."""
    vowel = following[0] in "aeiou" and not following.startswith(CONSONANT_SOUND)
    return "an" if vowel or following.startswith(SILENT_H) else "a"


def _description(description: tree.Description) -> list[tree.LinkedWord]:
    adjective = tree.words(description.adjective.english, (description, "adjective"))
    if description.degree:
        return [tree.LinkedWord(description.degree, ((description, "degree"),)), *adjective]
    return adjective


def _prepositional(phrase: tree.PrepositionalPhrase) -> list[tree.LinkedWord]:
    preposition = tree.LinkedWord(phrase.preposition, ((phrase, "preposition"),))
    return [preposition, *_noun_phrase(phrase.complement)]
