"""Language detection among the served languages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.serving.languages import Detector

THREE = Detector(["en", "de", "fr"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The house is on the hill and the weather is fine.", "en"),
        ("Das Haus steht auf dem Hügel und das Wetter ist schön.", "de"),
        ("La maison est sur la colline et il fait beau.", "fr"),
    ],
)
def test_a_sentence_shows_its_language(text: str, language: str) -> None:
    assert THREE.best(text).language == language
    assert THREE.best(text).confidence > 50


def test_a_single_language_is_always_detected() -> None:
    alone = Detector(["de", "de"])
    assert alone.guesses("whatever this is") == [("de", 100.0)]
    assert alone.guesses(" ") == [("de", 0.0)]


def test_languages_that_cannot_be_told_apart_come_last() -> None:
    assert [guess.language for guess in Detector(["xx", "en", "de"]).guesses("das ist gut")] == [
        "de",
        "en",
        "xx",
    ]
    assert Detector(["en", "xx"]).guesses("hello there") == [("en", 0.0), ("xx", 0.0)]


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=40))
def test_every_text_has_guesses(text: str) -> None:
    guesses = THREE.guesses(text)
    assert {guess.language for guess in guesses} == {"en", "de", "fr"}
    assert all(0 <= guess.confidence <= 100 for guess in guesses)
    assert sorted(guesses, key=lambda guess: -guess.confidence) == guesses
