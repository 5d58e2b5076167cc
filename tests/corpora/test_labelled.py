from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError
from regard.corpora.labelled import (
    LabelledText,
    hold_out,
    labels_of,
    read_labelled,
    require_labels,
    single_example_warnings,
)

EXPECTED = [
    LabelledText("good", "a fine film"),
    LabelledText("bad", "no movement"),
    LabelledText("good", "it sings"),
]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "good a fine film\nbad no movement\n\ngood it sings\n"),
        ("a.tsv", "good\ta fine film\nbad\tno movement\ngood\tit sings\n"),
        ("b.tsv", "a fine film\tgood\nno movement\tbad\nit sings\tgood\n"),
        ("c.tsv", "sentence\tlabel\na fine film\tgood\nno movement\tbad\nit sings\tgood\n"),
        (
            "a.jsonl",
            '{"label": "good", "text": "a fine film"}\n{"text": "no movement", "label": "bad"}\n'
            '\n{"class": "good", "sentence": "it sings"}\n',
        ),
    ],
)
def test_every_way_to_write_labels(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert read_labelled(path) == EXPECTED


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "good a film\nbad\n", r"a\.txt, line 2: there is no text"),
        ("a.txt", "\n \n", "there is no labelled text"),
        ("a.tsv", "good\ta film\nbad film\n", "line 2: there are 1 columns instead of 2"),
        ("a.tsv", "good\ta film\n\tb\ngood\tc\n", "line 2: there is no label"),
        ("a.jsonl", '{"label": "a", "text": "b"}\n{"label"\n', "line 2: not valid JSON"),
        ("a.jsonl", "[1]\n", "line 1: the line is JSON, but not an object"),
        ("a.jsonl", '{"text": "b"}\n', "line 1: the line has no text and label .but text."),
        ("a.jsonl", '{"label": "b"}\n', "line 1: the line has no text and label .but label."),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_labelled(path)


def test_labels_that_do_not_do() -> None:
    path = Path("reviews.tsv")
    labels = [one.label for one in EXPECTED]
    assert labels_of(labels, path=path) == ["bad", "good"]
    with pytest.raises(DataError, match="every text has the label 'good'"):
        labels_of(labels[:1], path=path)
    with pytest.raises(
        DataError, match=r"no training text has the label 'goof'\. Did you mean 'good'"
    ):
        require_labels(["goof"], ["bad", "good"], path=path)
    assert single_example_warnings(Counter(labels)) == [
        "The class 'bad' has only one example: it is used for training and never validated."
    ]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_of_every_class_something_is_trained_on(labels: list[str], share: float) -> None:
    texts = [LabelledText(label, str(number)) for number, label in enumerate(labels)]
    train, valid = hold_out(texts, share=share, seed=1)
    assert sorted([*train, *valid]) == sorted(texts)
    counts, held = Counter(labels), Counter(one.label for one in valid)
    assert {one.label for one in train} == set(labels)
    for label, count in counts.items():
        assert held[label] == min(count - 1, max(1, round(share * count)))


@pytest.mark.parametrize("header", ["comment,mood", "mood,comment"])
def test_a_header_of_unknown_names_is_no_text(tmp_path: Path, header: str) -> None:
    rows = [f"a text of {n},{'good' if n % 2 else 'bad'}" for n in range(12)]
    if header.startswith("mood"):
        rows = [",".join(row.split(",")[::-1]) for row in rows]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    assert read_labelled(path)[0] == LabelledText("bad", "a text of 0")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert len(read_labelled(path)) == len(rows)
    path.write_text("\n".join([header, *rows[:4]]) + "\n", encoding="utf-8")
    assert len(read_labelled(path)) == 5  # too few to tell: it may be a class of one example
