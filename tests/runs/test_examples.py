from __future__ import annotations

from pathlib import Path

from regard.runs.report import EXAMPLES_FILE, keep_examples, kept_examples

FIT = [f"sentence number {n} of some length" for n in range(8)]


def test_the_first_that_are_neither_short_nor_long_are_kept_once(tmp_path: Path) -> None:
    keep_examples(tmp_path, ["too short", FIT[0], FIT[0], "so very long " * 9, *FIT])
    assert kept_examples(tmp_path) == tuple(FIT[:6])


def test_where_none_is_fit_there_is_no_file(tmp_path: Path) -> None:
    keep_examples(tmp_path, ["too short"])
    assert not (tmp_path / EXAMPLES_FILE).exists()
    assert kept_examples(tmp_path) == ()


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.write_text(FIT[0] + "\n")
    (run / EXAMPLES_FILE).symlink_to(elsewhere)
    assert kept_examples(run) == ()


def test_a_file_that_is_no_text_or_has_no_end_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / EXAMPLES_FILE).write_bytes(b"\xff\x00" * 100_000)
    assert kept_examples(tmp_path) == ()
    (tmp_path / EXAMPLES_FILE).write_text("\n".join(FIT * 10_000))
    assert kept_examples(tmp_path) == tuple(FIT[:6])
