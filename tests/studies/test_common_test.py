from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import RegardError, RunError, SettingsError
from regard.studies.common_test import (
    common_test,
    direction,
    require_like,
    require_one_direction,
    text_form,
)
from regard.tasks.translation.settings import DataSettings, GrammarSettings, TranslationRecipe

RAW = ["Ein Hund.", "Zwei Katzen schlafen!", "Was ist das?", "Ein Ball.", "Das Haus ist alt."]
TOKENISED = [text[:-1] + " " + text[-1] for text in RAW]


def files(tmp_path: Path, name: str, lines: list[str]) -> tuple[str, str]:
    """Write two files with the same lines; return their names."""
    both = (f"{tmp_path / name}.en", f"{tmp_path / name}.de")
    for file in both:
        Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return both


def recipe(**data: object) -> TranslationRecipe:
    return TranslationRecipe(data=DataSettings(**data))


def small(**changes: object) -> TranslationRecipe:
    """A recipe of the built-in corpus with a few test sentences."""
    settings = {"words": "small", "max_words": 8, "test_size": 6, **changes}
    return recipe(grammar=GrammarSettings(**settings))


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (("a/train.en", "a/train.fr"), "en-fr"),
        (("a/train.tok.en.gz", "a/train.tok.de.gz"), "en-de"),
        (("a.pt_BR", "a.eng"), "pt_BR-eng"),
        (("train.src", "train.tgt"), None),
        (("english.txt", "german.txt"), None),
        (("a/pairs.tsv",), None),
        (("here.en", "there.en"), None),
        (("train", "target"), None),
    ],
)
def test_the_direction_is_read_from_the_names_of_files(train, expected):
    assert direction(DataSettings(train=train)) == expected
    assert direction(DataSettings(built_in=True)) == "en-de"
    assert direction(DataSettings(train=train, pair="de-en")) == "de-en"


def test_the_direction_of_data_from_memory_is_unknown():
    assert direction(DataSettings(from_memory=True)) is None


def test_runs_of_other_languages_are_refused_and_unknown_ones_pass():
    data = {
        "unknown": DataSettings(train=("a.src", "a.tgt")),
        "german": DataSettings(train=("a.en", "a.de")),
        "french": DataSettings(train=("a.en", "a.fr")),
    }
    require_one_direction({name: data[name] for name in ("unknown", "german")})
    require_one_direction({"unknown": data["unknown"]})
    with pytest.raises(RunError, match="german translates en-de and french translates en-fr"):
        require_one_direction(data)


def test_the_built_in_corpus_is_the_same_for_runs_that_differ_in_training_alone():
    pairs = common_test({"a": small(), "b": small(size=50, valid_size=7)})
    assert len(pairs) == 6
    assert all(pair.alignment for pair in pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_size": 5}, r"a \(6 pairs\) and b \(5 pairs\) differ. Give one test set for all"),
        ({"seed": 9}, "test parts of a and b differ. Give one test set for all with --test"),
        ({"pair": "en-fr"}, "a translates en-de and b translates en-fr"),
    ],
)
def test_runs_that_were_tested_on_other_sentences_are_refused(change, message):
    with pytest.raises(RunError, match=message):
        common_test({"a": small(), "b": small(**change)})


def test_tokenised_and_raw_files_of_the_same_sentences_are_refused(tmp_path: Path):
    train = files(tmp_path, "train", RAW)
    runs = {
        "raw": recipe(train=train, test=files(tmp_path, "test", RAW)),
        "tok": recipe(train=train, test=files(tmp_path, "test.tok", TOKENISED)),
    }
    with pytest.raises(RunError, match="the same sentences in different spellings: is one of"):
        common_test(runs)


def test_given_files_are_taken_whatever_the_runs_were_tested_on(tmp_path: Path):
    source, target = files(tmp_path, "new", RAW)
    pairs = common_test({"a": small(), "b": small(seed=2)}, (Path(source), Path(target)))
    assert [pair.source for pair in pairs] == RAW


def test_a_test_part_that_is_not_there_is_told_with_what_to_do(tmp_path: Path):
    train = files(tmp_path, "train", RAW)
    with pytest.raises(RunError, match=r"mine has no test part\. Give one test set for all with"):
        common_test({"mine": recipe(train=train, hold_out_test=0)})
    with pytest.raises(RunError, match=r"mine has no test part\. Give one test set for all with"):
        common_test({"mine": recipe(from_memory=True)})  # its pairs were given in Python
    gone = (str(tmp_path / "gone.en"), str(tmp_path / "gone.de"))
    with pytest.raises(RunError, match=r"test part of mine cannot be read: .*gone.en.*--test"):
        common_test({"mine": recipe(train=train, test=gone)})


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (RAW, "raw"),
        (TOKENISED, "tokenised"),
        ([*TOKENISED, "Ein Ball."], "tokenised"),
        ([text[:-1] for text in RAW], None),
        (RAW[:4], None),
        ([*RAW, *["ohne Punkt"] * 60], None),
        ([], None),
        (["Ende . "] * 5, "tokenised"),
    ],
)
def test_tokenised_text_is_known_by_its_sentence_ends(texts, expected):
    assert text_form(texts) == expected


def test_outputs_unlike_the_references_are_refused():
    require_like("mine", RAW, RAW)
    require_like("mine", ["nichts"] * 9, TOKENISED)
    with pytest.raises(SettingsError, match="mine writes tokenised text, but the references are"):
        require_like("mine", TOKENISED, RAW)
    with pytest.raises(RegardError, match="mine writes raw text, but the references are tokenised"):
        require_like("mine", RAW, TOKENISED)
