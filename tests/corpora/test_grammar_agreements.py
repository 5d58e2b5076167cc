"""The sentences of the famous figure: their French order, agreement and alignment."""

from __future__ import annotations

import pytest

from regard.base.errors import SettingsError
from regard.corpora.grammar import generate
from regard.corpora.grammar.agreements import (
    LENGTHS,
    PARTICIPLES,
    AgreementSampler,
    Event,
    Thing,
    english_words,
    french_words,
)
from regard.corpora.grammar.choices import RandomStream
from regard.corpora.grammar.lexicon import agreement_words

NOUNS = {each.english: each for each in agreement_words()[0]}
ADJECTIVES = {each.english: each for each in agreement_words()[1]}
DONE = {each.english: each for each in PARTICIPLES}


def thing(noun: str, *adjectives: str, **options: object) -> Thing:
    return Thing(NOUNS[noun], tuple(ADJECTIVES[each] for each in adjectives), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("event", "english", "french"),
    [
        (
            Event(
                thing("agreement", about=thing("area", "European", "economic")),
                DONE["signed"], "August", 1992,
            ),
            "the agreement on the European economic area was signed in August 1992",
            "l'accord sur la zone économique européenne a été signé en août 1992",
        ),
        (
            Event(thing("house", "small", "red"), DONE["sold"], "May", 1987),
            "the small red house was sold in May 1987",
            "la petite maison rouge a été vendue en mai 1987",
        ),
        (
            Event(thing("ship", "old", determiner="a"), DONE["painted"], "June", 1960),
            "an old ship was painted in June 1960",
            "un vieux navire a été peint en juin 1960",
        ),
        (
            Event(thing("law", "new", "social", plural=True), DONE["rejected"], "March", 1951),
            "the new social laws were rejected in March 1951",
            "les nouvelles lois sociales ont été rejetées en mars 1951",
        ),
        (
            Event(thing("agreement", "new"), DONE["approved"], "July", 1970),
            "the new agreement was approved in July 1970",
            "le nouvel accord a été approuvé en juillet 1970",
        ),
    ],
)  # fmt: skip
def test_french_has_its_own_order_and_agreement(event: Event, english: str, french: str) -> None:
    assert " ".join(each.text for each in english_words(event)) == english
    assert " ".join(each.text for each in french_words(event)) == french


def test_european_economic_area_crosses_in_the_alignment() -> None:
    drawn = generate(pair="en-fr", split="train", size=2_000, words="agreements")
    pair = next(pair for pair in drawn if " the European economic area" in pair.source)
    source, target = pair.source.split(), pair.target.split()
    assert pair.alignment is not None
    first = source.index("area") - 2
    places = [next(j for i, j in pair.alignment if i == first + word) for word in range(3)]
    assert [target[place] for place in places] == ["européenne", "économique", "zone"]
    assert places == sorted(places, reverse=True)


def test_every_length_can_be_drawn_and_nothing_is_left_unaligned() -> None:
    sampler = AgreementSampler(RandomStream(1))
    for words in range(LENGTHS[0], LENGTHS[1] + 1):
        for _ in range(50):
            assert len(english_words(sampler.event(words))) == words
    for pair in generate(pair="en-fr", split="test", size=100, words="agreements"):
        assert pair.alignment is not None
        assert {i for i, _ in pair.alignment} == set(range(len(pair.source.split())))
        assert {j for _, j in pair.alignment} == set(range(len(pair.target.split())))


def test_what_these_words_cannot_do_is_said() -> None:
    with pytest.raises(SettingsError, match="have French alone, not en-de"):
        generate(pair="en-de", split="train", size=1, words="agreements")
    with pytest.raises(SettingsError, match="have 7 to 14 words; 20 to 30 were asked for"):
        generate(
            pair="en-fr", split="train", size=1, words="agreements", min_words=20, max_words=30
        )
