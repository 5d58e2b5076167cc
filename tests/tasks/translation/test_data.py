from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from regard.base.errors import DataError
from regard.tasks.translation.data import read_splits, read_valid
from regard.tasks.translation.settings import DataSettings, GrammarSettings


def write_tsv(path: Path, pairs: int) -> str:
    path.write_text("".join(f"s{i}\tt{i}\n" for i in range(pairs)), encoding="utf-8")
    return str(path)


def test_all_parts_are_read_as_named(tmp_path: Path) -> None:
    files = {n: (write_tsv(tmp_path / n, size),) for n, size in
             {"train": 5, "valid": 3, "test": 2}.items()}  # fmt: skip
    splits = read_splits(DataSettings(**files))
    assert [len(splits.train), len(splits.valid), len(splits.test)] == [5, 3, 2]


@pytest.mark.parametrize(("pairs", "hold_out", "held"), [(50, 500, 5), (50, 2, 2), (10, 500, 1)])
def test_without_a_valid_part_some_pairs_are_held_out(
    tmp_path: Path, pairs: int, hold_out: int, held: int
) -> None:
    train = (write_tsv(tmp_path / "a.tsv", pairs),)
    splits = read_splits(DataSettings(train=train, hold_out=hold_out, hold_out_test=0))
    assert (len(splits.train), len(splits.valid), splits.test) == (pairs - held, held, [])
    assert not set(splits.train) & set(splits.valid)
    assert splits.notes == (f"Held out of {pairs} pairs by seed 1: {held} for validation.",)


def test_validation_pairs_are_read_without_the_others(tmp_path: Path) -> None:
    valid = (write_tsv(tmp_path / "valid", 3),)
    elsewhere = (str(tmp_path / "moved away"),)
    assert len(read_valid(DataSettings(train=elsewhere, valid=valid))) == 3


def test_validation_pairs_of_all_kinds_of_data(tmp_path: Path) -> None:
    held_out = DataSettings(train=(write_tsv(tmp_path / "a.tsv", 50),), hold_out=4)
    built_in = DataSettings(grammar=GrammarSettings(size=20, valid_size=5, test_size=5))
    for settings in (held_out, built_in):
        assert read_valid(settings) == read_splits(settings).valid


def test_no_recipe_asks_for_more_sentences_than_a_machine_can_make() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 10000000"):
        GrammarSettings(size=99_999_999_999)


def test_too_few_pairs_to_hold_any_out(tmp_path: Path) -> None:
    train = (write_tsv(tmp_path / "a.tsv", 9),)
    with pytest.raises(DataError, match=r"a\.tsv: 9 pairs are too few.*Give --valid"):
        read_splits(DataSettings(train=train))


def test_a_line_longer_than_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a\tb\n" * 9 + "w " * 100_000 + "\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.tsv, line 10: the line has 100000 words"):
        read_splits(DataSettings(train=(str(tmp_path / "a.tsv"),)))


def test_the_fingerprint_tells_corpora_apart(tmp_path: Path) -> None:
    def fingerprint(text: str) -> str:
        (tmp_path / "a.tsv").write_text(text * 10, encoding="utf-8")
        return read_splits(DataSettings(train=(str(tmp_path / "a.tsv"),))).fingerprint()

    assert fingerprint("a\tb\n") == fingerprint("a\tb\n")
    assert fingerprint("a\tb\n") != fingerprint("a\tc\n")


def test_without_files_the_grammar_is_used() -> None:
    grammar = GrammarSettings(size=20, valid_size=5, test_size=6, max_words=8, words="small")
    splits = read_splits(DataSettings(grammar=grammar))
    assert [len(splits.train), len(splits.valid), len(splits.test)] == [20, 5, 6]
    assert all(pair.alignment for pair in splits.test)
