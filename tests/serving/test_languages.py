"""The language pair of a run."""

from __future__ import annotations

import pytest

from regard.base.errors import SettingsError
from regard.serving.languages import UNNAMED, Pair, language_name, pair_of, read_pair
from regard.tasks.translation.settings import DataSettings


@pytest.mark.parametrize(
    ("files", "pair"),
    {
        "the built-in corpus": ((), "en-de"),
        "endings": (("data/train.en", "data/train.fr"), "en-fr"),
        "packed": (("train.de.gz", "train.CS.xz"), "de-cs"),
        "three letters": (("a.ceb", "a.en"), "ceb-en"),
    }.values(),
)
def test_languages_are_seen_from_the_data(files: tuple[str, ...], pair: str) -> None:
    data = DataSettings(train=files, built_in=not files)
    assert str(pair_of(data)) == pair


@pytest.mark.parametrize("files", [("train.tsv",), ("a.src", "a.tgt"), ("a.en", "a.txt")])
def test_languages_that_the_data_do_not_name_stay_unnamed(files: tuple[str, ...]) -> None:
    assert pair_of(DataSettings(train=files)) == UNNAMED
    assert pair_of(DataSettings(from_memory=True)) == UNNAMED


def test_languages_are_seen_from_the_pair_and_the_columns() -> None:
    assert pair_of(DataSettings(train=("a.tsv",), pair="en-de")) == Pair("en", "de")
    assert pair_of(DataSettings(train=("a.tsv",), columns=("fr", "cs"))) == Pair("fr", "cs")
    assert pair_of(DataSettings(train=("a.tsv",), columns=("2", "1"))) == UNNAMED


@pytest.mark.parametrize(
    ("text", "pair"),
    [("en-de", Pair("en", "de")), ("zh-Hans:pt_BR", Pair("zh-Hans", "pt_BR"))],
)
def test_a_pair_can_be_written(text: str, pair: Pair) -> None:
    assert read_pair(text) == pair


@pytest.mark.parametrize("text", ["", "en", "english-german", "en-", "EN-DE", "en:d"])
def test_an_invalid_pair_is_refused(text: str) -> None:
    with pytest.raises(
        SettingsError, match="is not a pair of languages: write their codes as en-de"
    ):
        read_pair(text)


def test_languages_have_names() -> None:
    assert language_name("de") == "German"
    assert language_name("tlh") == "tlh"
    assert language_name(UNNAMED.source) == "source language"
