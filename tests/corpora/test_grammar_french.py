"""French: each rule of form and order by hand-written sentences, and what holds for every one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import SettingsError
from regard.corpora.grammar import english, french
from regard.corpora.grammar.choices import RandomStream
from regard.corpora.grammar.french_forms import (
    PERSONS,
    Agreement,
    adjective_form,
    begins_with_vowel,
    imperfect_form,
    joined,
    participle_form,
)
from regard.corpora.grammar.generate import PAIRS, align, generate, target_language
from regard.corpora.grammar.lexicon import Adjective, Adverb, Noun, Verb, clause_verbs, lexicon
from regard.corpora.grammar.sampling import Sampler
from regard.corpora.grammar.tree import (
    Clause,
    Coordination,
    Degree,
    Description,
    Determiner,
    Nominal,
    NounPhrase,
    Preposition,
    PrepositionalPhrase,
    Pronoun,
    PronounWord,
    RelativePronoun,
    SentenceTree,
    Subordinate,
)

FULL = lexicon(small=False)


def noun(word: str) -> Noun:
    return next(each for each in FULL.nouns if each.english == word)


def verb(word: str) -> Verb:
    return next(each for each in (*FULL.verbs, *clause_verbs()) if each.english == word)


def adjective(word: str) -> Adjective:
    return next(each for each in FULL.adjectives if each.english == word)


def adverb(word: str) -> Adverb:
    return next(each for each in FULL.adverbs if each.english == word)


def describe(word: str, degree: Degree = "") -> Description:
    return Description(adjective(word), degree)


def np(words: str, **parts: Any) -> NounPhrase:
    """Read "the cat", "two old cats" or "cats"; adjective and number come from the words."""
    first, *rest = words.split()
    determiner: Determiner = ""
    names = [first, *rest]
    known = ("the", "a", "this", "these", "every", "my", "his", "her", "our", "their",
             "two", "three", "four")  # fmt: skip
    if first in known:
        determiner = "this" if first == "these" else first  # type: ignore[assignment]
        names = rest
    if len(names) > 1:
        degree: Degree = names[0] if len(names) == 3 else ""  # type: ignore[assignment]
        parts["description"] = describe(names[-2], degree)
    for each in FULL.nouns:
        if names[-1] in (each.english, each.english_plural):
            return NounPhrase(each, names[-1] == each.english_plural, determiner, **parts)
    raise LookupError(words)


def pp(preposition: Preposition, words: str) -> PrepositionalPhrase:
    return PrepositionalPhrase(preposition, np(words))


def nominal(thing: str | Nominal) -> Nominal:
    if not isinstance(thing, str):
        return thing
    pronouns: dict[str, PronounWord] = {
        "I": "I", "we": "we", "he": "he", "she": "she", "they": "they",
        "me": "I", "us": "we", "him": "he", "her": "she", "them": "they",
    }  # fmt: skip
    return Pronoun(pronouns[thing]) if thing in pronouns else np(thing)


def act(
    subject: str | Nominal,
    action: str,
    thing: str | Nominal | None = None,
    *,
    past: bool = False,
    **parts: Any,
) -> Clause:
    return Clause(
        subject=nominal(subject),
        verb=verb(action),
        object=None if thing is None else nominal(thing),
        tense="past" if past else "present",
        **parts,
    )


def be(
    subject: str | Nominal, word: str, degree: Degree = "", *, past: bool = False, **parts: Any
) -> Clause:
    return Clause(
        subject=nominal(subject),
        predicate=describe(word, degree),
        tense="past" if past else "present",
        **parts,
    )


def sentence(*clauses: Clause, **parts: Any) -> SentenceTree:
    return SentenceTree(clauses=clauses, **parts)


def text(tree: SentenceTree) -> str:
    return " ".join(token.text for token in french.realise(tree))


def say(clause: Clause) -> str:
    return text(sentence(clause))


def links(tree: SentenceTree) -> set[str]:
    source, target = english.realise(tree), french.realise(tree)
    return {f"{source[i].text}-{target[j].text}" for i, j in align(source, target)}


NOUN_PHRASES = [
    ("the cat", "le chat"),
    ("the street", "la rue"),
    ("the animal", "l'animal"),
    ("the school", "l'école"),
    ("the man", "l'homme"),
    ("the egg", "l'œuf"),
    ("the owl", "le hibou"),
    ("the axe", "la hache"),
    ("the animals", "les animaux"),
    ("the newspapers", "les journaux"),
    ("a dog", "un chien"),
    ("a mouse", "une souris"),
    ("this dog", "ce chien"),
    ("this tree", "cet arbre"),
    ("this owl", "ce hibou"),
    ("this mouse", "cette souris"),
    ("these mice", "ces souris"),
    ("every school", "chaque école"),
    ("my dog", "mon chien"),
    ("my car", "ma voiture"),
    ("my school", "mon école"),
    ("my old school", "ma vieille école"),
    ("my axe", "ma hache"),
    ("her son", "son fils"),
    ("his mother", "sa mère"),
    ("his flower", "sa fleur"),
    ("her letters", "ses lettres"),
    ("our house", "notre maison"),
    ("our houses", "nos maisons"),
    ("their key", "leur clé"),
    ("their keys", "leurs clés"),
    ("two horses", "deux chevaux"),
    ("three cakes", "trois gâteaux"),
    ("four birds", "quatre oiseaux"),
    ("the red car", "la voiture rouge"),
    ("the green houses", "les maisons vertes"),
    ("the big house", "la grande maison"),
    ("the very big house", "la très grande maison"),
    ("the very expensive houses", "les maisons très chères"),
    ("a beautiful animal", "un bel animal"),
    ("a very beautiful animal", "un très bel animal"),
    ("a beautiful dog", "un beau chien"),
    ("a beautiful owl", "un beau hibou"),
    ("an old man", "un vieil homme"),
    ("an old owl", "un vieux hibou"),
    ("an old woman", "une vieille femme"),
    ("a new hospital", "un nouvel hôpital"),
    ("the new hospitals", "les nouveaux hôpitaux"),
    ("the beautiful animals", "les beaux animaux"),
    ("the old men", "les vieux hommes"),
    ("the medieval castles", "les châteaux médiévaux"),
    ("two bad women", "deux mauvaises femmes"),
    ("two big trees", "deux grands arbres"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), NOUN_PHRASES, ids=[row[0] for row in NOUN_PHRASES])
def test_a_noun_phrase(words: str, expected: str) -> None:
    assert say(act("I", "see", np(words.replace("an ", "a ", 1)))) == f"je vois {expected}"


SUBJECTS = [
    ("habit of all", act("cats", "sleep"), "les chats dorment"),
    ("like all", act("cats", "like", "dogs", negated=True), "les chats n'aiment pas les chiens"),
    ("state in the past", be("cats", "tired", past=True), "les chats étaient fatigués"),
    ("event of some", act("cats", "sleep", past=True), "des chats ont dormi"),
    ("dated event", act("cats", "sleep", time=adverb("now")), "des chats dorment maintenant"),
    (
        "de before an adjective",
        act("old cats", "sleep", past=True),
        "de vieux chats ont dormi",
    ),
    (
        "des before a noun with an adjective after it",
        act("tired cats", "sleep", past=True),
        "des chats fatigués ont dormi",
    ),
    ("generic with adjective", act("old cats", "sleep"), "les vieux chats dorment"),
    ("singular", act("a cat", "sleep"), "un chat dort"),
    (
        "coordination",
        act(Coordination(np("the cat"), np("the mouse")), "arrive", past=True),
        "le chat et la souris sont arrivés",
    ),
    (
        "feminine coordination",
        act(Coordination(np("the girl"), np("the mouse")), "arrive", past=True),
        "la fille et la souris sont arrivées",
    ),
    ("place", act(np("the cat", place=pp("in", "the garden")), "sleep"),
     "le chat dans le jardin dort"),
]  # fmt: skip
OBJECTS = [
    ("some", act("I", "see", "dogs"), "je vois des chiens"),
    ("some with an adjective", act("I", "see", "big houses"), "je vois de grandes maisons"),
    ("some with degree", act("I", "see", "very big trees"), "je vois de très grands arbres"),
    ("some, adjective after", act("I", "see", "red houses"), "je vois des maisons rouges"),
    ("none of several", act("I", "see", "dogs", negated=True), "je ne vois pas de chiens"),
    ("none of one", act("I", "see", "a dog", negated=True), "je ne vois pas de chien"),
    ("none, elided", act("I", "see", "animals", negated=True), "je ne vois pas d'animaux"),
    ("none, before h", act("I", "see", "owls", negated=True), "je ne vois pas de hiboux"),
    ("one not liked", act("I", "like", "a dog", negated=True), "je n'aime pas un chien"),
    ("definite, denied", act("I", "see", "the dogs", negated=True), "je ne vois pas les chiens"),
    (
        "none, under a modal",
        act("he", "buy", "books", modal="want", negated=True),
        "il ne veut pas acheter de livres",
    ),
]
VERBS = [
    ("je", act("I", "write", "a letter"), "j'écris une lettre"),
    ("je before a consonant", act("I", "sleep"), "je dors"),
    ("il", act("he", "choose", "a book"), "il choisit un livre"),
    ("elle", act("she", "laugh"), "elle rit"),
    ("nous", act("we", "eat", "the cake"), "nous mangeons le gâteau"),
    ("ils", act("they", "take", "the key"), "ils prennent la clé"),
    ("avoir", act("I", "eat", "the apple", past=True), "j'ai mangé la pomme"),
    ("être, masculine", act("I", "arrive", past=True), "je suis arrivé"),
    ("être, feminine", act("the girl", "fall", past=True), "la fille est tombée"),
    ("être, feminine plural", act("the girls", "come", past=True), "les filles sont venues"),
    ("être, we", act("we", "return", past=True), "nous sommes revenus"),
    ("être, she", act("she", "die", past=True), "elle est morte"),
    ("être, denied", act("he", "stay", past=True, negated=True), "il n'est pas resté"),
    ("no agreement", act("the girls", "eat", "the apple", past=True),
     "les filles ont mangé la pomme"),
    ("denied", act("we", "sleep", past=True, negated=True), "nous n'avons pas dormi"),
    ("state", act("we", "fear", "the dog", past=True), "nous craignions le chien"),
    ("predicate", be("the woman", "happy"), "la femme est heureuse"),
    ("predicate of I", be("I", "tired"), "je suis fatigué"),
    ("predicate of we", be("we", "tired", past=True), "nous étions fatigués"),
    ("predicate denied", be("she", "ill", "very", negated=True), "elle n'est pas très malade"),
    ("predicate with modal", be("he", "happy", modal="want"), "il veut être heureux"),
    ("predicate on -x", be("the men", "jealous"), "les hommes sont jaloux"),
    ("predicate before a vowel word", be("the animal", "old"), "l'animal est vieux"),
    ("can", act("I", "see", "the dog", modal="can"), "je peux voir le chien"),
    ("can, plural", act("they", "sleep", modal="can", negated=True), "ils ne peuvent pas dormir"),
    ("must", act("we", "sleep", modal="must"), "nous devons dormir"),
    ("should", act("he", "sleep", modal="should", negated=True), "il ne devrait pas dormir"),
    ("want", act("they", "sleep", modal="want"), "ils veulent dormir"),
    ("wanted", act("he", "sleep", modal="want", past=True), "il voulait dormir"),
]  # fmt: skip
PRONOUNS = [
    ("me", act("he", "see", "me"), "il me voit"),
    ("me, elided", act("he", "help", "me"), "il m'aide"),
    ("us", act("he", "help", "us", negated=True), "il ne nous aide pas"),
    ("him", act("we", "follow", "him"), "nous le suivons"),
    ("him, elided and denied", act("I", "like", "him", negated=True), "je ne l'aime pas"),
    ("her", act("I", "see", "her", past=True), "je l'ai vue"),
    ("them", act("she", "see", "them", past=True), "elle les a vus"),
    ("us, agreeing", act("dogs", "follow", "us", past=True), "des chiens nous ont suivis"),
    ("me, denied", act("he", "see", "me", past=True, negated=True), "il ne m'a pas vu"),
    ("before the infinitive", act("he", "help", "me", modal="can"), "il peut m'aider"),
    ("denied infinitive", act("I", "see", "them", modal="should", negated=True),
     "je ne devrais pas les voir"),
    ("it, feminine", act("I", "buy", Pronoun("it", np("the car")), past=True), "je l'ai achetée"),
    ("they, feminine", be(Pronoun("they", np("the keys")), "heavy"), "elles sont lourdes"),
    ("them, feminine", act("I", "sell", Pronoun("they", np("the keys")), past=True),
     "je les ai vendues"),
]  # fmt: skip
ADVERBS = [
    ("frequency", act("he", "see", "me", frequency=adverb("often")), "il me voit souvent"),
    ("frequency in the past", act("he", "eat", "cakes", past=True, frequency=adverb("always")),
     "il a toujours mangé des gâteaux"),
    ("manner", act("he", "eat", "the cake", manner=adverb("slowly")),
     "il mange lentement le gâteau"),
    ("manner in the past", act("he", "eat", "the cake", past=True, manner=adverb("quickly")),
     "il a mangé rapidement le gâteau"),
    ("place", act("he", "buy", "the cake", place=adverb("here")), "il achète le gâteau ici"),
    ("fronted", act("he", "sleep", past=True, fronted=adverb("yesterday")), "hier il a dormi"),
    ("time", act("he", "sleep", time=adverb("today")), "il dort aujourd'hui"),
]  # fmt: skip
PHRASES = [
    ("in", act("he", "sleep", phrases=(pp("in", "the garden"),)), "il dort dans le jardin"),
    ("on", act("he", "sleep", phrases=(pp("on", "the table"),)), "il dort sur la table"),
    ("on the street", act("he", "sleep", phrases=(pp("on", "the street"),)), "il dort dans la rue"),
    ("near a masculine", act("he", "sleep", phrases=(pp("near", "the park"),)),
     "il dort près du parc"),
    ("near a feminine", act("he", "sleep", phrases=(pp("near", "the house"),)),
     "il dort près de la maison"),
    ("near a vowel", act("he", "sleep", phrases=(pp("near", "the hospital"),)),
     "il dort près de l'hôpital"),
    ("near several", act("he", "sleep", phrases=(pp("near", "the houses"),)),
     "il dort près des maisons"),
    ("near one", act("he", "sleep", phrases=(pp("near", "a school"),)), "il dort près d'une école"),
    ("near some", act("he", "sleep", phrases=(pp("near", "schools"),)), "il dort près d'écoles"),
    ("near big ones", act("he", "sleep", phrases=(pp("near", "big houses"),)),
     "il dort près de grandes maisons"),
    ("beside", act("he", "sleep", phrases=(pp("beside", "the train"),)),
     "il dort à côté du train"),
    ("with some", act("he", "sleep", phrases=(pp("with", "friends"),)), "il dort avec des amis"),
    ("with old ones", act("he", "sleep", phrases=(pp("with", "old friends"),)),
     "il dort avec de vieux amis"),
    ("without", act("he", "sleep", phrases=(pp("without", "friends"),)), "il dort sans amis"),
    ("for", act("he", "work", phrases=(pp("for", "the king"),)), "il travaille pour le roi"),
    ("come to a masculine", act("he", "come", phrases=(pp("to", "the castle"),)),
     "il vient au château"),
    ("come to several", act("he", "come", phrases=(pp("to", "the shops"),)),
     "il vient aux magasins"),
    ("come to a vowel", act("he", "come", phrases=(pp("to", "the school"),)), "il vient à l'école"),
    ("come to someone", act("he", "come", phrases=(pp("to", "the king"),)), "il vient chez le roi"),
    ("come from a masculine", act("he", "come", phrases=(pp("from", "the castle"),)),
     "il vient du château"),
    ("come from someone", act("he", "come", phrases=(pp("from", "the king"),)),
     "il vient de chez le roi"),
    ("run to", act("he", "run", phrases=(pp("to", "the castle"),)), "il court vers le château"),
    ("run from", act("he", "run", phrases=(pp("from", "the castle"),)),
     "il court depuis le château"),
]  # fmt: skip


def who(word: str, *, plural: bool = False) -> RelativePronoun:
    return RelativePronoun(noun(word), plural)


RELATIVES = [
    ("qui", act(np("the cat", relative=act(who("cat"), "sleep")), "laugh"), "le chat qui dort rit"),
    ("qui, agreeing", act("I", "see", np("the girls", relative=act(
        who("girl", plural=True), "arrive", past=True))), "je vois les filles qui sont arrivées"),
    ("qui est", act("I", "see", np("the street", relative=be(who("street"), "wide"))),
     "je vois la rue qui est large"),
    ("que", act("I", "see", np("the street", relative=act("the cat", "cross", who("street")))),
     "je vois la rue que le chat traverse"),
    ("qu'il", act("I", "see", np("the street", relative=act(
        "he", "cross", who("street"), past=True))), "je vois la rue qu'il a traversée"),
    ("que, plural", act("I", "see", np("the keys", relative=act(
        "a man", "take", who("key", plural=True), past=True))),
     "je vois les clés qu'un homme a prises"),
    ("que, masculine on -s", act("I", "see", np("the books", relative=act(
        "they", "take", who("book", plural=True), past=True, negated=True))),
     "je vois les livres qu'ils n'ont pas pris"),
]  # fmt: skip

CASES = [*SUBJECTS, *OBJECTS, *VERBS, *PRONOUNS, *ADVERBS, *PHRASES, *RELATIVES]


@pytest.mark.parametrize(
    ("clause", "expected"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_a_clause(clause: Clause, expected: str) -> None:
    assert say(clause) == expected


def crossing(predicate: str) -> SentenceTree:
    """Return why the animal did not cross the street: it, or the street, was too ..."""
    animal, street = np("the animal"), np("the street")
    antecedent = animal if predicate == "tired" else street
    reason = be(Pronoun("it", antecedent), predicate, "too", past=True)
    host = act(animal, "cross", street, past=True, negated=True)
    return sentence(host, subordinates=(Subordinate("because", reason),))


SLEEPS, SLEPT = act("he", "sleep"), act("he", "sleep", past=True)
SHE_LAUGHS, SHE_LAUGHED = act("she", "laugh"), act("she", "laugh", past=True)
SENTENCES = [
    ("the animal was too tired", crossing("tired"),
     "l'animal n'a pas traversé la rue parce qu'il était trop fatigué"),
    ("the street was too wide", crossing("wide"),
     "l'animal n'a pas traversé la rue parce qu'elle était trop large"),
    ("and", sentence(SLEEPS, SHE_LAUGHS, joints=("and",)), "il dort et elle rit"),
    ("but", sentence(SLEEPS, SHE_LAUGHS, joints=("but",)), "il dort , mais elle rit"),
    ("fronted", sentence(SHE_LAUGHED, fronted=Subordinate("because", SLEPT)),
     "parce qu'il a dormi , elle a ri"),
    ("although he", sentence(SHE_LAUGHS, subordinates=(Subordinate("although", SLEEPS),)),
     "elle rit même s'il dort"),
    ("if he", sentence(SHE_LAUGHS, fronted=Subordinate("if", SLEEPS)), "s'il dort , elle rit"),
    ("if they", sentence(SLEEPS, fronted=Subordinate("if", act("they", "laugh"))),
     "s'ils rient , il dort"),
    ("if she", sentence(SLEEPS, subordinates=(Subordinate("if", SHE_LAUGHS),)),
     "il dort si elle rit"),
    ("if he should", sentence(SHE_LAUGHS, subordinates=(
        Subordinate("if", act("he", "sleep", modal="should")),)), "elle rit s'il doit dormir"),
    ("although he should", sentence(SHE_LAUGHS, subordinates=(
        Subordinate("although", act("he", "sleep", modal="should")),)),
     "elle rit même s'il devrait dormir"),
    ("while", sentence(SHE_LAUGHS, subordinates=(Subordinate("while", SLEEPS),)),
     "elle rit pendant qu'il dort"),
    ("while in the past", sentence(SHE_LAUGHED, subordinates=(Subordinate("while", SLEPT),)),
     "elle a ri pendant qu'il dormait"),
    ("while dogs slept", sentence(SHE_LAUGHED, fronted=Subordinate(
        "while", act("dogs", "sleep", past=True))), "pendant que des chiens dormaient , elle a ri"),
    ("that", sentence(act("he", "think", content=act("the dog", "sleep"))),
     "il pense que le chien dort"),
    ("that in the past", sentence(act("he", "know", past=True, content=SHE_LAUGHED)),
     "il savait qu'elle riait"),
    ("said that", sentence(act("she", "say", past=True, content=act(
        "he", "eat", "cakes", past=True, negated=True))),
     "elle a dit qu'il ne mangeait pas de gâteaux"),
    ("relative in a that-clause", sentence(act("he", "think", past=True, content=act(
        np("the dog", relative=act(who("dog"), "fall", past=True)), "sleep", past=True))),
     "il pensait que le chien qui est tombé dormait"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tree", "expected"), [row[1:] for row in SENTENCES], ids=[row[0] for row in SENTENCES]
)
def test_a_sentence(tree: SentenceTree, expected: str) -> None:
    assert text(tree) == expected


ALIGNMENTS = [
    (sentence(act("cats", "like", "dogs", negated=True)),
     "cats-les cats-chats do-n'aiment not-n'aiment like-n'aiment not-pas dogs-les dogs-chiens"),
    (sentence(act("the old cat", "sleep", past=True)),
     "the-le old-vieux cat-chat slept-a slept-dormi"),
    (sentence(act("the red car", "arrive", past=True)),
     "the-la car-voiture red-rouge arrived-est arrived-arrivée"),
    (sentence(act("he", "sleep", phrases=(pp("near", "the park"),))),
     "he-il sleeps-dort near-près near-du the-du park-parc"),
    (sentence(act("I", "see", "a dog", negated=True)),
     "I-je do-vois see-vois not-ne not-pas a-de dog-chien"),
    (sentence(act("I", "see", "animals", negated=True)),
     "I-je do-vois see-vois not-ne not-pas animals-d'animaux"),
    (sentence(act("I", "see", "big houses")), "I-je see-vois houses-de big-grandes houses-maisons"),
    (sentence(act("he", "help", "me", modal="want")), "he-il wants-veut help-m'aider me-m'aider"),
    (sentence(act("I", "see", np("the cat", relative=act("he", "like", who("cat"))))),
     "I-je see-vois the-le cat-chat that-qu'il he-qu'il likes-aime"),
    (sentence(SLEEPS, SHE_LAUGHS, joints=("but",)),
     "he-il sleeps-dort but-, but-mais she-elle laughs-rit"),
    (sentence(SHE_LAUGHS, fronted=Subordinate("while", SLEEPS)),
     "while-pendant while-qu'il he-qu'il sleeps-dort ,-, she-elle laughs-rit"),
    (sentence(act("he", "think", content=SHE_LAUGHS)),
     "he-il thinks-pense that-qu'elle she-qu'elle laughs-rit"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "expected"), ALIGNMENTS, ids=[row[1] for row in ALIGNMENTS])
def test_words_are_linked_as_a_reader_would(tree: SentenceTree, expected: str) -> None:
    assert links(tree) == set(expected.split())


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("eat", "mangeais mangeait mangions mangeaient"),
        ("throw", "lançais lançait lancions lançaient"),
        ("forget", "oubliais oubliait oubliions oubliaient"),
        ("take", "prenais prenait prenions prenaient"),
        ("drink", "buvais buvait buvions buvaient"),
        ("choose", "choisissais choisissait choisissions choisissaient"),
    ],
)
def test_the_imparfait(word: str, expected: str) -> None:
    assert " ".join(imperfect_form(verb(word), person) for person in PERSONS) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("see", "vu vue vus vues"), ("take", "pris prise pris prises")],
)
def test_a_participle_agrees(word: str, expected: str) -> None:
    forms = [
        participle_form(verb(word), Agreement(feminine, plural))
        for plural in (False, True)
        for feminine in (False, True)
    ]
    assert " ".join(forms) == expected


def test_an_adjective_after_a_noun_ignores_what_follows() -> None:
    assert adjective_form(adjective("beautiful"), Agreement()) == "beau"


@pytest.mark.parametrize(
    ("word", "following", "expected"),
    [
        ("de", "le", "du"),
        ("à", "les", "aux"),
        ("de", "la", None),
        ("de", "l'animal", None),
        ("la", "école", "l'école"),
        ("que", "elle", "qu'elle"),
        ("si", "elle", None),
        ("si", "ils", "s'ils"),
        ("qui", "aime", None),
        ("le", "hérisson", None),
    ],
)
def test_neighbours_join(word: str, following: str, expected: str | None) -> None:
    assert joined(word, following) == expected


def test_mute_and_aspirate_h() -> None:
    assert begins_with_vowel("histoire")
    assert not begins_with_vowel("haricots")


def test_french_is_a_pair() -> None:
    assert PAIRS == ("en-de", "en-fr")
    assert target_language("en-fr") is french.LANGUAGE


def test_an_unknown_pair_names_those_there_are() -> None:
    with pytest.raises(SettingsError, match="no pair 'en-it'; it has: en-de, en-fr"):
        target_language("en-it")


def test_no_conjunction_of_french_asks_for_the_subjunctive() -> None:
    assert french.LANGUAGE.conjunctions == ("because", "although", "if", "while")


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), longest=st.integers(4, 60))
def test_every_word_of_every_sentence_is_linked(seed: int, longest: int) -> None:
    for pair in generate(pair="en-fr", split="train", size=10, max_words=longest, seed=seed):
        assert pair.alignment is not None
        target = pair.target.split(" ")
        assert {index for _, index in pair.alignment} == set(range(len(target)))
        assert all(source < len(pair.source.split(" ")) for source, _ in pair.alignment)


def test_no_sentence_leaves_neighbours_unjoined() -> None:
    for pair in generate(pair="en-fr", split="train", size=150, max_words=40, seed=3):
        target = pair.target.split(" ")
        assert all(joined(a, b) is None for a, b in pairwise(target))


def test_a_source_has_one_translation() -> None:
    # Few words and short sentences, so that equal sources from different trees do come up.
    stream = RandomStream(5)
    sampler = Sampler(lexicon(small=True), stream, french.LANGUAGE, small=False)
    translations: dict[str, str] = {}
    draws = 1500
    for _ in range(draws):
        tree = sampler.sentence(stream.between(3, 4))
        source = " ".join(token.text for token in english.realise(tree))
        target = text(tree)
        assert translations.setdefault(source, target) == target
    assert len(translations) < draws
