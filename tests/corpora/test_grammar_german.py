"""German by hand-written examples: a table of cases for each rule of the grammar."""

from typing import Any

import pytest

from regard.corpora.grammar import english, german
from regard.corpora.grammar.generate import align, antecedents
from regard.corpora.grammar.lexicon import Noun, Verb, clause_verbs, lexicon
from regard.corpora.grammar.tree import (
    Clause,
    Coordination,
    Description,
    NounPhrase,
    PrepositionalPhrase,
    Pronoun,
    RelativePronoun,
    SentenceTree,
    Subordinate,
)

WORDS = lexicon(small=False)
NOUNS = {word.english: word for word in WORDS.nouns}
VERBS = {word.english: word for word in reversed(WORDS.verbs)}
ADJECTIVES = {word.english: word for word in WORDS.adjectives}
ADVERBS = {word.english: word for word in WORDS.adverbs}
SAYING = {verb.english: verb for verb in clause_verbs()}
PLURALS = {word.english_plural: word for word in WORDS.nouns}


def phrase(text: str, **parts: Any) -> NounPhrase:
    """Read "the very old man" or "two dogs"; the last word is the noun."""
    *before, noun = text.split()
    plural = noun in PLURALS
    determiner = ""
    determiners = ("the", "a", "an", "this", "these", "every", "my", "his", "her", "our", "their",
                   "two", "three", "four")  # fmt: skip
    if before and before[0] in determiners:
        determiner = {"an": "a", "these": "this"}.get(before[0], before[0])
        before = before[1:]
    description = describe(" ".join(before)) if before else None
    found: Noun = PLURALS[noun] if plural else NOUNS[noun]
    return NounPhrase(found, plural, determiner, description, **parts)  # type: ignore[arg-type]


def describe(text: str) -> Description:
    *degree, adjective = text.split()
    return Description(ADJECTIVES[adjective], degree[0] if degree else "")  # type: ignore[arg-type]


def nominal(value: Any) -> Any:
    """Read a pronoun or noun phrase; what is not text is a node already."""
    if not isinstance(value, str):
        return value
    if value in ("I", "we", "he", "she", "it", "they"):
        return Pronoun(value)
    return phrase(value)


def clause(subject: Any, verb: str = "", thing: Any = None, **parts: Any) -> Clause:
    for name in ("fronted", "frequency", "manner", "place", "time"):
        if name in parts:
            parts[name] = ADVERBS[parts[name]]
    if "predicate" in parts:
        parts["predicate"] = describe(parts["predicate"])
    known: Verb | None = SAYING[verb] if "content" in parts else VERBS.get(verb)
    thing = nominal(thing) if thing is not None else None
    tense = parts.pop("tense", "present")
    return Clause(subject=nominal(subject), verb=known, object=thing, tense=tense, **parts)


def where(preposition: str, text: str) -> PrepositionalPhrase:
    return PrepositionalPhrase(preposition, phrase(text))  # type: ignore[arg-type]


def say(sentence: SentenceTree | Clause) -> tuple[str, str]:
    if isinstance(sentence, Clause):
        sentence = SentenceTree(clauses=(sentence,))
    realised = english.realise(sentence), german.realise(sentence)
    return tuple(" ".join(token.text for token in tokens) for tokens in realised)  # type: ignore[return-value]


def check(cases: list[tuple[SentenceTree | Clause, str, str]]) -> None:
    for sentence, source, target in cases:
        assert say(sentence) == (source, target)


def relative(noun: str, verb: str, *, subject: Any = None, thing: Any = None, **parts: Any) -> Any:
    """Return "the <noun> who ..." with the noun as subject, or as object if a subject is given."""
    head = phrase(noun)
    gap = RelativePronoun(head.noun, head.plural)
    if subject is None:
        inside = clause(gap, verb, thing, **parts)
    else:
        inside = clause(subject, verb, gap, **parts)
    return phrase(noun, relative=inside)


ENDINGS = [
    # determiner and adjective in all genders and cases: subject, direct object, dative object
    ("the old man", "der alte Mann", "den alten Mann", "dem alten Mann"),
    ("the old woman", "die alte Frau", "die alte Frau", "der alten Frau"),
    ("the old horse", "das alte Pferd", "das alte Pferd", "dem alten Pferd"),
    ("the old dogs", "die alten Hunde", "die alten Hunde", "den alten Hunden"),
    ("an old man", "ein alter Mann", "einen alten Mann", "einem alten Mann"),
    ("an old woman", "eine alte Frau", "eine alte Frau", "einer alten Frau"),
    ("an old horse", "ein altes Pferd", "ein altes Pferd", "einem alten Pferd"),
    ("old dogs", "alte Hunde", "alte Hunde", "alten Hunden"),
    ("this old man", "dieser alte Mann", "diesen alten Mann", "diesem alten Mann"),
    ("this old woman", "diese alte Frau", "diese alte Frau", "dieser alten Frau"),
    ("this old horse", "dieses alte Pferd", "dieses alte Pferd", "diesem alten Pferd"),
    ("these old dogs", "diese alten Hunde", "diese alten Hunde", "diesen alten Hunden"),
    ("every old man", "jeder alte Mann", "jeden alten Mann", "jedem alten Mann"),
    ("my old man", "mein alter Mann", "meinen alten Mann", "meinem alten Mann"),
    ("his old horse", "sein altes Pferd", "sein altes Pferd", "seinem alten Pferd"),
    ("her old woman", "ihre alte Frau", "ihre alte Frau", "ihrer alten Frau"),
    ("our old dogs", "unsere alten Hunde", "unsere alten Hunde", "unseren alten Hunden"),
    ("our old man", "unser alter Mann", "unseren alten Mann", "unserem alten Mann"),
    ("their old horse", "ihr altes Pferd", "ihr altes Pferd", "ihrem alten Pferd"),
    ("two old dogs", "zwei alte Hunde", "zwei alte Hunde", "zwei alten Hunden"),
    ("the boy", "der Junge", "den Jungen", "dem Jungen"),
    ("the student", "der Student", "den Studenten", "dem Studenten"),
    ("a boy", "ein Junge", "einen Jungen", "einem Jungen"),
    ("babies", "Babys", "Babys", "Babys"),
    ("women", "Frauen", "Frauen", "Frauen"),
    ("very old cats", "sehr alte Katzen", "sehr alte Katzen", "sehr alten Katzen"),
]


@pytest.mark.parametrize(("text", "nominative", "accusative", "dative"), ENDINGS)
def test_noun_phrases_take_case_gender_and_number(
    text: str, nominative: str, accusative: str, dative: str
) -> None:
    singular = text.split()[-1] not in PLURALS
    check(
        [
            (
                clause(text, "sleep"),
                f"{text} {'sleeps' if singular else 'sleep'}",
                f"{nominative} {'schläft' if singular else 'schlafen'}",
            ),
            (clause("he", "see", text), f"he sees {text}", f"er sieht {accusative}"),
            (clause("he", "help", text), f"he helps {text}", f"er hilft {dative}"),
        ]
    )


STEMS = [
    ("an expensive car", "ein teures Auto"),
    ("the tired cat", "die müde Katze"),
    ("a tired man", "einen müden Mann"),
    ("the high tower", "den hohen Turm"),
    ("a dark forest", "einen dunklen Wald"),
    ("a sour apple", "einen sauren Apfel"),
]


@pytest.mark.parametrize(("text", "german_object"), STEMS)
def test_adjectives_inflect_their_stem(text: str, german_object: str) -> None:
    assert say(clause("we", "see", text))[1] == f"wir sehen {german_object}"


KEIN = [
    ("dogs", "keine Hunde"),
    ("a dog", "keinen Hund"),
    ("a cat", "keine Katze"),
    ("a horse", "kein Pferd"),
    ("old dogs", "keine alten Hunde"),
    ("an old dog", "keinen alten Hund"),
    ("an old horse", "kein altes Pferd"),
]


@pytest.mark.parametrize(("text", "denied"), KEIN)
def test_a_new_object_is_denied_with_kein(text: str, denied: str) -> None:
    check(
        [
            (
                clause("cats", "like", text, negated=True),
                f"cats do not like {text}",
                f"Katzen mögen {denied}",
            )
        ]
    )


def test_kein_takes_the_dative() -> None:
    dogs = clause("he", "help", "old dogs", negated=True, tense="past")
    child = clause("he", "help", "a child", negated=True, tense="past")
    assert say(dogs)[1] == "er half keinen alten Hunden"
    assert say(child)[1] == "er half keinem Kind"


def test_nicht_stands_after_what_is_known_and_before_the_rest() -> None:
    garden = (where("in", "the garden"),)
    check(
        [
            (
                clause("the man", "sleep", negated=True),
                "the man does not sleep",
                "der Mann schläft nicht",
            ),
            (
                clause("the man", "see", "the dog", negated=True),
                "the man does not see the dog",
                "der Mann sieht den Hund nicht",
            ),
            (
                clause("the man", "see", "they", negated=True),
                "the man does not see them",
                "der Mann sieht sie nicht",
            ),
            (
                clause("the man", "see", "the dog", negated=True, phrases=garden, tense="past"),
                "the man did not see the dog in the garden",
                "der Mann sah den Hund nicht im Garten",
            ),
            (
                clause("the man", "call", "my mother", negated=True),
                "the man does not call my mother",
                "der Mann ruft meine Mutter nicht an",
            ),
            (
                clause("the man", "see", "the dog", negated=True, modal="can"),
                "the man can not see the dog",
                "der Mann kann den Hund nicht sehen",
            ),
            (
                clause("the street", predicate="wide", negated=True),
                "the street is not wide",
                "die Straße ist nicht breit",
            ),
            (
                clause("the man", "see", "the dog", negated=True, tense="past", time="yesterday"),
                "the man did not see the dog yesterday",
                "der Mann sah den Hund gestern nicht",
            ),
            (
                clause("the man", "see", "the dog", negated=True, place="here"),
                "the man does not see the dog here",
                "der Mann sieht den Hund nicht hier",
            ),
            (
                clause("the man", "see", "a dog", negated=True, tense="past", time="yesterday"),
                "the man did not see a dog yesterday",
                "der Mann sah gestern keinen Hund",
            ),
        ]
    )


def test_tenses_agree_with_the_subject() -> None:
    check(
        [
            (clause("I", "call", "he"), "I call him", "ich rufe ihn an"),
            (clause("she", "help", "I"), "she helps me", "sie hilft mir"),
            (clause("they", "thank", "we"), "they thank us", "sie danken uns"),
            (clause("we", "help", "they"), "we help them", "wir helfen ihnen"),
            (clause("he", "help", "he", tense="past"), "he helped him", "er half ihm"),
            (clause("I", "see", "they", tense="past"), "I saw them", "ich sah sie"),
            (clause("I", predicate="tired"), "I am tired", "ich bin müde"),
            (clause("we", predicate="tired"), "we are tired", "wir sind müde"),
            (clause("she", predicate="too tired"), "she is too tired", "sie ist zu müde"),
            (clause("I", predicate="ill", tense="past"), "I was ill", "ich war krank"),
            (
                clause("dogs", predicate="very ill", tense="past"),
                "dogs were very ill",
                "Hunde waren sehr krank",
            ),
            (
                clause("houses", predicate="expensive"),
                "houses are expensive",
                "Häuser sind teuer",
            ),
            (
                clause(Coordination(phrase("the cat"), phrase("the dog")), "sleep"),
                "the cat and the dog sleep",
                "die Katze und der Hund schlafen",
            ),
            (
                clause("he", "help", Coordination(phrase("the cat"), phrase("the dog"))),
                "he helps the cat and the dog",
                "er hilft der Katze und dem Hund",
            ),
        ]
    )


MODALS = [
    ("can", "present", "the man can see the dog", "der Mann kann den Hund sehen"),
    ("must", "present", "the man must see the dog", "der Mann muss den Hund sehen"),
    ("should", "present", "the man should see the dog", "der Mann sollte den Hund sehen"),
    ("want", "present", "the man wants to see the dog", "der Mann will den Hund sehen"),
    ("want", "past", "the man wanted to see the dog", "der Mann wollte den Hund sehen"),
]


@pytest.mark.parametrize(("modal", "tense", "source", "target"), MODALS)
def test_modal_verbs_send_the_infinitive_to_the_end(
    modal: str, tense: str, source: str, target: str
) -> None:
    check([(clause("the man", "see", "the dog", modal=modal, tense=tense), source, target)])


def test_modal_verbs_agree_and_can_be_denied() -> None:
    check(
        [
            (
                clause("men", "call", "he", modal="want", negated=True),
                "men do not want to call him",
                "Männer wollen ihn nicht anrufen",
            ),
            (
                clause("I", "see", "dogs", modal="want", negated=True, tense="past"),
                "I did not want to see dogs",
                "ich wollte keine Hunde sehen",
            ),
            (
                clause("we", "call", "a doctor", modal="must"),
                "we must call a doctor",
                "wir müssen einen Arzt anrufen",
            ),
            (
                clause("children", predicate="brave", modal="should"),
                "children should be brave",
                "Kinder sollten mutig sein",
            ),
        ]
    )


def because(inner: Clause, conjunction: Any = "because") -> SentenceTree:
    return SentenceTree(
        clauses=(clause("I", "laugh"),), subordinates=(Subordinate(conjunction, inner),)
    )


SUBORDINATES = [
    (clause("he", "call", "the man"), "he calls the man", "er den Mann anruft"),
    (clause("he", "call", "I", modal="want"), "he wants to call me", "er mich anrufen will"),
    (clause("he", predicate="too tired"), "he is too tired", "er zu müde ist"),
    (clause("he", "see", "dogs", negated=True), "he does not see dogs", "er keine Hunde sieht"),
    (
        clause("he", "see", "the dog", negated=True),
        "he does not see the dog",
        "er den Hund nicht sieht",
    ),
    (
        clause("he", "sleep", phrases=(where("under", "a tree"),)),
        "he sleeps under a tree",
        "er unter einem Baum schläft",
    ),
]


@pytest.mark.parametrize(("inner", "source", "target"), SUBORDINATES)
def test_subordinate_clauses_end_in_their_verb(inner: Clause, source: str, target: str) -> None:
    check([(because(inner), f"I laugh because {source}", f"ich lache , weil {target}")])


CONJUNCTIONS = [
    ("because", "weil"),
    ("although", "obwohl"),
    ("if", "wenn"),
    ("before", "bevor"),
    ("while", "während"),
]


@pytest.mark.parametrize(("word", "translated"), CONJUNCTIONS)
def test_conjunctions(word: str, translated: str) -> None:
    inner = clause("dogs", "sleep")
    check([(because(inner, word), f"I laugh {word} dogs sleep",
            f"ich lache , {translated} Hunde schlafen")])  # fmt: skip
    fronted = SentenceTree(
        fronted=Subordinate(word, clause("dogs", "sleep")),  # type: ignore[arg-type]
        clauses=(clause("he", "call", "the man"),),
    )
    check([(fronted, f"{word} dogs sleep , he calls the man",
            f"{translated} Hunde schlafen , ruft er den Mann an")])  # fmt: skip


RELATIVES = [
    # who or that sees, and whom or that someone sees or helps
    ("the man", "who", "whom", "der", "den", "dem"),
    ("the woman", "who", "whom", "die", "die", "der"),
    ("the horse", "that", "that", "das", "das", "dem"),
    ("the cats", "that", "that", "die", "die", "denen"),
]


@pytest.mark.parametrize(("noun", "who", "whom", "subject", "accusative", "dative"), RELATIVES)
def test_relative_pronouns_take_gender_number_and_case(
    noun: str, who: str, whom: str, subject: str, accusative: str, dative: str
) -> None:
    article, word = say(clause("he", "love", noun))[1].split()[2:]
    sees, saw = ("see", "sehen") if noun == "the cats" else ("sees", "sieht")
    check(
        [
            (
                clause("we", "love", relative(noun, "see", thing="the dog")),
                f"we love {noun} {who} {sees} the dog",
                f"wir lieben {article} {word} , {subject} den Hund {saw}",
            ),
            (
                clause("we", "love", relative(noun, "see", subject="the dog")),
                f"we love {noun} {whom} the dog sees",
                f"wir lieben {article} {word} , {accusative} der Hund sieht",
            ),
            (
                clause("we", "love", relative(noun, "help", subject="he")),
                f"we love {noun} {whom} he helps",
                f"wir lieben {article} {word} , {dative} er hilft",
            ),
        ]
    )


def test_relative_clauses_stand_between_commas() -> None:
    sleeping = {"subject": None, "tense": "present"}
    check(
        [
            (
                clause(relative("the man", "call", thing="the child"), "laugh"),
                "the man who calls the child laughs",
                "der Mann , der das Kind anruft , lacht",
            ),
            (
                clause("he", "call", relative("the man", "sleep", **sleeping)),
                "he calls the man who sleeps",
                "er ruft den Mann , der schläft , an",
            ),
            (
                SentenceTree(
                    clauses=(
                        clause("I", "see", relative("the man", "sleep")),
                        clause("he", "laugh"),
                        clause("I", "see", relative("the man", "sleep")),
                        clause("he", "laugh"),
                    ),
                    joints=("and", "and", "but"),
                ),
                "I see the man who sleeps and he laughs and I see the man who sleeps but he laughs",
                "ich sehe den Mann , der schläft , und er lacht und ich sehe den Mann , "
                "der schläft , aber er lacht",
            ),
            (
                because(clause(relative("the horse", "", predicate="old"), "sleep")),
                "I laugh because the horse that is old sleeps",
                "ich lache , weil das Pferd , das alt ist , schläft",
            ),
            (
                SentenceTree(
                    clauses=(clause("I", "see", relative("the man", "sleep")),),
                    subordinates=(Subordinate("because", clause("he", "laugh")),),
                ),
                "I see the man who sleeps because he laughs",
                "ich sehe den Mann , der schläft , weil er lacht",
            ),
            (
                SentenceTree(
                    fronted=Subordinate(
                        "if", clause("I", "see", relative("the man", "sleep", negated=True))
                    ),
                    clauses=(clause("he", "laugh"),),
                ),
                "if I see the man who does not sleep , he laughs",
                "wenn ich den Mann , der nicht schläft , sehe , lacht er",
            ),
            (
                clause("he", "see", relative("the man", "sleep"), frequency="often"),
                "he often sees the man who sleeps",
                "er sieht oft den Mann , der schläft",
            ),
        ]
    )


def test_that_clauses_and_coordination() -> None:
    content = clause("the dog", "like", "cats", negated=True)
    check(
        [
            (
                clause("he", "think", content=content),
                "he thinks that the dog does not like cats",
                "er denkt , dass der Hund keine Katzen mag",
            ),
            (
                because(clause("he", "know", content=clause("I", "call", "they"))),
                "I laugh because he knows that I call them",
                "ich lache , weil er weiß , dass ich sie anrufe",
            ),
            (
                SentenceTree(
                    fronted=Subordinate("because", clause("he", "sleep", tense="past")),
                    clauses=(
                        clause("I", "laugh", tense="past"),
                        clause("she", "sleep", tense="past"),
                        clause("he", "say", content=clause("I", "arrive", tense="past"),
                               tense="past"),
                    ),
                    joints=("and", "but"),
                ),
                "because he slept , I laughed and she slept but he said that I arrived",
                "weil er schlief , lachte ich und sie schlief , aber er sagte , dass ich ankam",
            ),
        ]
    )  # fmt: skip


PHRASES = [
    ("in", "the garden", "im Garten"),
    ("in", "the school", "in der Schule"),
    ("in", "the gardens", "in den Gärten"),
    ("in", "an old house", "in einem alten Haus"),
    ("in", "the old house", "im alten Haus"),
    ("on", "the street", "auf der Straße"),
    ("with", "the boy", "mit dem Jungen"),
    ("without", "the boy", "ohne den Jungen"),
    ("near", "the house", "beim Haus"),
    ("near", "the trees", "bei den Bäumen"),
    ("behind", "my house", "hinter meinem Haus"),
    ("beside", "these trees", "neben diesen Bäumen"),
    ("under", "the tree", "unter dem Baum"),
    ("for", "a child", "für ein Kind"),
    ("for", "her father", "für ihren Vater"),
    ("to", "the doctor", "zum Arzt"),
    ("to", "the school", "zur Schule"),
    ("to", "my school", "zu meiner Schule"),
    ("from", "the doctor", "vom Arzt"),
    ("from", "the school", "von der Schule"),
]


@pytest.mark.parametrize(("preposition", "text", "target"), PHRASES)
def test_prepositions_take_their_case_and_contract(
    preposition: str, text: str, target: str
) -> None:
    sentence = clause("he", "sleep", phrases=(where(preposition, text),))
    check([(sentence, f"he sleeps {preposition} {text}", f"er schläft {target}")])


ORDER = [
    (
        clause("the man", "sleep", fronted="yesterday", tense="past"),
        "yesterday the man slept",
        "gestern schlief der Mann",
    ),
    (
        clause("the man", "call", "the child", fronted="today"),
        "today the man calls the child",
        "heute ruft der Mann das Kind an",
    ),
    (
        clause("he", "see", "the dog", frequency="often"),
        "he often sees the dog",
        "er sieht den Hund oft",
    ),
    (clause("he", "see", "dogs", frequency="often"), "he often sees dogs", "er sieht oft Hunde"),
    (
        clause("he", "see", "two dogs", frequency="often"),
        "he often sees two dogs",
        "er sieht oft zwei Hunde",
    ),
    (
        clause("he", "buy", "a hat", manner="quickly"),
        "he buys a hat quickly",
        "er kauft schnell einen Hut",
    ),
    (
        clause("he", "buy", "the hat", manner="quickly", phrases=(where("in", "the house"),)),
        "he buys the hat quickly in the house",
        "er kauft den Hut schnell im Haus",
    ),
    (clause("he", "buy", "hats", place="here"), "he buys hats here", "er kauft hier Hüte"),
    (
        clause("he", "eat", "the apple", tense="past", time="yesterday",
               phrases=(where("with", "a friend"), where("in", "the garden"))),
        "he ate the apple with a friend in the garden yesterday",
        "er aß den Apfel gestern mit einem Freund im Garten",
    ),
    (
        clause(phrase("the man", place=where("in", "the garden")), "see", "a dog"),
        "the man in the garden sees a dog",
        "der Mann im Garten sieht einen Hund",
    ),
    (
        clause("he", predicate="tired", frequency="often"),
        "he is often tired",
        "er ist oft müde",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "source", "target"), ORDER, ids=[each[1] for each in ORDER])
def test_order_of_the_middle_field(sentence: Clause, source: str, target: str) -> None:
    check([(sentence, source, target)])


ANTECEDENTS = [
    ("the animal", "the street", 0, "tired", "das Tier", "die Straße", "es zu müde"),
    ("the animal", "the street", 1, "wide", "das Tier", "die Straße", "sie zu breit"),
    ("the dog", "the street", 0, "tired", "der Hund", "die Straße", "er zu müde"),
    ("the cat", "the park", 0, "tired", "die Katze", "den Park", "sie zu müde"),
    ("the cat", "the park", 1, "muddy", "die Katze", "den Park", "er zu schlammig"),
]


@pytest.mark.parametrize(
    ("subject", "thing", "chosen", "adjective", "german_subject", "german_object", "ending"),
    ANTECEDENTS,
)
def test_it_takes_the_gender_of_its_noun(
    subject: str,
    thing: str,
    chosen: int,
    adjective: str,
    german_subject: str,
    german_object: str,
    ending: str,
) -> None:
    heads = phrase(subject), phrase(thing)
    host = clause(heads[0], "cross", heads[1], negated=True, tense="past")
    described = clause(Pronoun("it", heads[chosen]), predicate=f"too {adjective}", tense="past")
    sentence = SentenceTree(clauses=(host,), subordinates=(Subordinate("because", described),))
    check(
        [
            (
                sentence,
                f"{subject} did not cross {thing} because it was too {adjective}",
                f"{german_subject} überquerte {german_object} nicht , weil {ending} war",
            )
        ]
    )
    assert antecedents(english.realise(sentence)) == ((8, (1, 6)[chosen]),)


def test_they_points_to_its_noun_and_a_free_pronoun_to_none() -> None:
    dogs = phrase("the dogs")
    sentence = SentenceTree(
        clauses=(clause("he", "see", dogs), clause(Pronoun("they", dogs), predicate="ill")),
        joints=("but",),
    )
    check([(sentence, "he sees the dogs but they are ill",
            "er sieht die Hunde , aber sie sind krank")])  # fmt: skip
    assert antecedents(english.realise(sentence)) == ((5, 3),)
    assert antecedents(english.realise(SentenceTree(clauses=(clause("they", "sleep"),)))) == ()


ALIGNED = [
    (
        clause("cats", "like", "dogs", negated=True),
        "Katzen=cats mögen=do+like keine=not Hunde=dogs",
    ),
    (
        clause("he", "help", "a child", negated=True),
        "er=he hilft=does+help keinem=not+a Kind=child",
    ),
    (clause("he", "call", "the man"), "er=he ruft=calls den=the Mann=man an=calls"),
    (
        clause("he", "call", "the man", negated=True),
        "er=he ruft=does+call den=the Mann=man nicht=not an=call",
    ),
    (
        clause("he", "call", "they", modal="want", negated=True),
        "er=he will=does+want sie=them nicht=not anrufen=call",
    ),
    (
        clause("he", "call", "they", modal="can", negated=True),
        "er=he kann=can sie=them nicht=not anrufen=call",
    ),
    (
        clause("he", "sleep", phrases=(where("in", "the garden"),), manner="quickly"),
        "er=he schläft=sleeps schnell=quickly im=in+the Garten=garden",
    ),
    (
        clause(relative("the old man", "sleep"), predicate="very tired"),
        "der=the alte=old Mann=man ,=who der=who schläft=sleeps ,=who ist=is sehr=very müde=tired",
    ),
    (
        because(clause("he", "think", content=clause("I", "call", "they", negated=True))),
        "ich=I lache=laugh ,=because weil=because er=he denkt=thinks ,=that dass=that ich=I "
        "sie=them nicht=not anrufe=do+call",
    ),
    (
        SentenceTree(
            fronted=Subordinate("if", clause("I", "see", relative("the man", "sleep"))),
            clauses=(clause("he", "laugh"), clause("she", "laugh")),
            joints=("but",),
        ),
        "wenn=if ich=I den=the Mann=man ,=who der=who schläft=sleeps ,=who sehe=see ,=, "
        "lacht=laughs er=he ,=but aber=but sie=she lacht=laughs",
    ),
    (
        clause(Coordination(phrase("the cat"), phrase("two dogs")), "sleep", fronted="today"),
        "heute=today schlafen=sleep die=the Katze=cat und=and zwei=two Hunde=dogs",
    ),
]


@pytest.mark.parametrize(("sentence", "expected"), ALIGNED, ids=[each[1] for each in ALIGNED])
def test_alignment(sentence: SentenceTree | Clause, expected: str) -> None:
    if isinstance(sentence, Clause):
        sentence = SentenceTree(clauses=(sentence,))
    source, target = english.realise(sentence), german.realise(sentence)
    links = align(source, target)
    found = [
        f"{token.text}={'+'.join(source[i].text for i, j in links if j == index)}"
        for index, token in enumerate(target)
    ]
    assert " ".join(found) == expected
