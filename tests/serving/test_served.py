"""Runs made ready to be served."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import SettingsError
from regard.serving.languages import Pair
from regard.serving.served import example_sentences, load_models
from regard.settings.translation import DataSettings, GrammarSettings


def test_runs_get_names_and_languages(random_transformer_run: Path) -> None:
    run = random_transformer_run
    said: list[str] = []
    first, second = load_models(
        [run, run], pairs=["en-de", "de-en"], engine="torch", report=said.append
    )
    assert (first.name, second.name) == ("transformer", "transformer-2")
    assert (first.pair, second.pair) == (Pair("en", "de"), Pair("de", "en"))
    assert said == ["Engine: torch.", "Engine: torch."]
    assert 1 <= len(first.examples) <= 6
    assert all(5 <= len(text.split()) <= 14 for text in first.examples)


def test_one_pair_may_be_for_all_and_examples_may_be_left_out(random_transformer_run: Path) -> None:
    models = load_models(
        [random_transformer_run] * 2, pairs=["cs-sk"], engine="torch", examples=False
    )
    assert [str(model.pair) for model in models] == ["cs-sk", "cs-sk"]
    assert models[0].examples == ()


def test_pairs_that_do_not_fit_are_refused(random_transformer_run: Path) -> None:
    with pytest.raises(SettingsError, match="2 times --pair cannot be shared out over 3 runs"):
        load_models([random_transformer_run] * 3, pairs=["en-de", "de-en"])


def test_languages_that_nobody_knows_are_asked_for(random_transformer_run: Path) -> None:
    with pytest.raises(SettingsError, match=r"names of its files \(train.src, train.tgt\)"):
        load_models([random_transformer_run])


def test_examples_come_from_the_grammar() -> None:
    data = DataSettings(grammar=GrammarSettings(words="small", max_words=24))
    found = example_sentences(data)
    assert len(set(found)) == 6
    assert all(5 <= len(text.split()) <= 14 for text in found)


@pytest.mark.parametrize(
    "data",
    [
        DataSettings(train=("a.tsv",), test=("a.tsv",)),
        DataSettings(train=("a.en", "a.de"), test=("/nowhere/a.en", "/nowhere/a.de")),
        DataSettings(train=("a.en", "a.de")),
    ],
    ids=["one file", "files that are elsewhere", "no test part"],
)
def test_without_readable_sentences_there_are_no_examples(data: DataSettings) -> None:
    assert example_sentences(data) == ()
