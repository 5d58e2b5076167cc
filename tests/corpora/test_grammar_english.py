"""English by hand-written examples; the German tests read both sides of many more."""

from dataclasses import replace

import pytest

from regard.corpora.grammar import english
from regard.corpora.grammar.lexicon import lexicon
from regard.corpora.grammar.tree import (
    Clause,
    Description,
    NounPhrase,
    Pronoun,
    SentenceTree,
    Tense,
)

WORDS = lexicon(small=False)
NOUNS = {word.english: word for word in WORDS.nouns}
VERBS = {word.english: word for word in reversed(WORDS.verbs)}
ADJECTIVES = {word.english: word for word in WORDS.adjectives}

ARTICLES = [
    ("apple", "an"),
    ("house", "a"),
    ("hour", "an"),
    ("honest", "an"),
    ("uniform", "a"),
    ("useful", "a"),
    ("umbrella", "an"),
    ("European", "a"),
    ("one", "a"),
    ("ugly", "an"),
]


@pytest.mark.parametrize(("following", "article"), ARTICLES)
def test_the_indefinite_article_follows_the_sound(following: str, article: str) -> None:
    assert english.indefinite_article(following.lower()) == article


def say(clause: Clause) -> str:
    return " ".join(token.text for token in english.realise(SentenceTree(clauses=(clause,))))


AGREEMENT: list[tuple[str, Tense, bool, str]] = [
    ("I", "present", False, "I see the old apple"),
    ("he", "present", False, "he sees the old apple"),
    ("they", "present", False, "they see the old apple"),
    ("she", "past", False, "she saw the old apple"),
    ("it", "present", True, "it does not see the old apple"),
    ("we", "present", True, "we do not see the old apple"),
    ("he", "past", True, "he did not see the old apple"),
]


@pytest.mark.parametrize(("pronoun", "tense", "negated", "expected"), AGREEMENT)
def test_verbs_agree(pronoun: str, tense: Tense, negated: bool, expected: str) -> None:
    thing = NounPhrase(NOUNS["apple"], description=Description(ADJECTIVES["old"]))
    subject = Pronoun(pronoun)  # type: ignore[arg-type]
    clause = Clause(subject=subject, verb=VERBS["see"], object=thing, tense=tense, negated=negated)
    assert say(clause) == expected


def test_the_article_looks_at_the_word_that_follows_it() -> None:
    old = Description(ADJECTIVES["old"])
    very_old = Description(ADJECTIVES["old"], "very")
    for description, expected in ((None, "a man"), (old, "an old"), (very_old, "a very old")):
        phrase = NounPhrase(NOUNS["man"], determiner="a", description=description)
        assert say(Clause(subject=phrase, verb=VERBS["sleep"], tense="present")).startswith(
            expected
        )


def test_words_of_several_parts_are_several_words_with_one_cause() -> None:
    verb = replace(VERBS["sleep"], english="take off", english_third="takes off")
    clause = Clause(subject=Pronoun("he"), verb=verb, tense="present")
    tokens = english.realise(SentenceTree(clauses=(clause,)))
    assert [token.text for token in tokens] == ["he", "takes", "off"]
    assert tokens[1].causes == tokens[2].causes
