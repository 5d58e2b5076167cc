from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError
from regard.corpora.alignments import (
    check_links,
    format_alignment,
    parse_alignment,
    read_alignments,
    read_gold,
)

NUMBERS = st.integers(min_value=0, max_value=10**6)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_links_come_back_sorted(links: list[tuple[int, int]]) -> None:
    text = format_alignment(links)
    assert parse_alignment(text, path=Path("x"), line=1) == tuple(sorted(links))


def test_format() -> None:
    assert format_alignment([(1, 0), (0, 2)]) == "0-2 1-0"
    assert format_alignment([]) == ""


@pytest.mark.parametrize("item", ["3", "a-b", "1-2-3", "-1-2", "1:2", "1-", "¹-1", "1" * 99 + "-0"])
def test_what_is_not_a_link(item: str) -> None:
    message = rf"train\.align, line 7: '{item}' is not an alignment link\. A link is"
    with pytest.raises(DataError, match=message):
        parse_alignment(f"0-0 {item}", path=Path("train.align"), line=7)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ((3, 0), r"line 4: the link 3-0 points past the 3 words of the source"),
        ((0, 2), r"line 4: the link 0-2 points past the 2 words of the target"),
    ],
)
def test_links_past_the_end(link: tuple[int, int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_links(((0, 0), link), source_words=3, target_words=2, path=Path("a"), line=4)


def test_links_within_the_sentences() -> None:
    check_links(((2, 1),), source_words=3, target_words=2, path=Path("a"), line=4)


def test_file_of_alignments(tmp_path: Path) -> None:
    path = tmp_path / "train.align"
    path.write_text("0-0 1-2\n\n3-1\n")
    assert read_alignments(path) == [((0, 0), (1, 2)), (), ((3, 1),)]
    path.write_text("0-0\n0=0\n")
    with pytest.raises(DataError, match="line 2"):
        read_alignments(path)


def test_gold_tells_sure_from_possible_and_says_where_it_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "gold"
    path.write_text("1-1 2p3\n\n0-1\n")
    with pytest.raises(DataError, match=r"gold, line 3: .*before the first word, 1\. Words are"):
        read_gold(path, first=1)
    path.write_text("1-1 2p3\n\n")
    first, second = read_gold(path, first=1)
    assert (first.sure, first.possible) == ({(0, 0)}, {(0, 0), (1, 2)})
    assert not second.possible
    assert read_gold(path)[0].sure == {(1, 1)}
