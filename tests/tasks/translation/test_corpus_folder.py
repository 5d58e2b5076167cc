from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import DataError, SettingsError
from regard.corpora.sources import find_corpus, languages_of


def made(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("ja\n", encoding="utf-8")
    return folder


def found(folder: Path, pair: str = "en-de", **options: bool) -> dict[str, str]:
    """Return the names of the source files that were found, after a look at the target's."""
    parts = find_corpus(folder, pair, **options)
    for source, target in parts.values():
        assert source.parent == target.parent == folder
        assert target.is_file()
    return {part: files[0].name for part, files in parts.items()}


NAMED = {
    "plain names": (["train", "valid", "test"], ["train.en", "valid.en", "test.en"]),
    "val": (["train", "val", "test"], ["train.en", "val.en", "test.en"]),
    "dev": (["train", "dev", "test"], ["train.en", "dev.en", "test.en"]),
    "names go on": (
        ["train.tok", "val.tok", "test_2016"],
        ["train.tok.en", "val.tok.en", "test_2016.en"],
    ),
    "the plain name wins": (
        ["train", "train.small", "dev", "test", "test2017"],
        ["train.en", "dev.en", "test.en"],
    ),
    "other words": (["training", "train", "developers", "dev", "tests", "test"],
                    ["train.en", "dev.en", "test.en"]),
}  # fmt: skip


@pytest.mark.parametrize(("stems", "expected"), NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_files_are_found_by_their_names(tmp_path: Path, stems, expected, ending):
    made(tmp_path, *(f"{stem}.{side}{ending}" for stem in stems for side in ("en", "de", "fr")))
    assert list(found(tmp_path).values()) == [name + ending for name in expected]
    assert found(tmp_path, "fr-de")["train"].endswith(f".fr{ending}")


def test_one_side_may_be_compressed_and_the_other_not(tmp_path: Path):
    made(tmp_path, "train.en.gz", "train.de", "test.en", "test.de.gz")
    assert found(tmp_path) == {"train": "train.en.gz", "test": "test.en"}


def test_a_file_without_its_other_language_does_not_count(tmp_path: Path):
    made(tmp_path, "train.en", "train.de", "test_a.en", "test_b.en", "test_b.de")
    assert found(tmp_path)["test"] == "test_b.en"


def test_validation_may_be_missing_and_the_test_where_another_is_given(tmp_path: Path):
    made(tmp_path, "train.en", "train.de")
    assert found(tmp_path, needs_test=False) == {"train": "train.en"}
    with pytest.raises(DataError, match=r"no test\*.en and test\*.de of the same name.*--pair"):
        find_corpus(tmp_path, "en-de")


def test_a_folder_without_the_languages_is_told(tmp_path: Path):
    made(tmp_path, "train.en", "train.de", "test.en", "test.de")
    with pytest.raises(DataError, match=r"no train\*.en and train\*.fr"):
        find_corpus(tmp_path, "en-fr")
    with pytest.raises(DataError, match="there is no such folder"):
        find_corpus(tmp_path / "nothing", "en-de")


def test_two_that_may_be_meant_are_named(tmp_path: Path):
    made(tmp_path, *(f"{name}.{x}" for name in ("train", "test_a", "test_b") for x in ("en", "de")))
    with pytest.raises(DataError, match=r"may be the test part \(test_a.en, test_b.en\).*--test"):
        find_corpus(tmp_path, "en-de")
    made(tmp_path, "train.en.gz")
    with pytest.raises(DataError, match=r"may be the train part.*Keep one of them there, or name"):
        find_corpus(tmp_path, "en-de", needs_test=False)


def test_languages_of_a_pair():
    assert languages_of("en-de") == ("en", "de")
    for wrong in ("en", "en-de-fr", "en-", "de-de", ""):
        with pytest.raises(SettingsError, match="is not of the form source-target, as en-de"):
            languages_of(wrong)
