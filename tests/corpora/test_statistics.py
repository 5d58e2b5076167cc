from __future__ import annotations

from pathlib import Path

import pytest

from regard.corpora import blocks
from regard.corpora.statistics import corpus_statistics

ROWS = [
    ("a dog sleeps", "ein Hund schläft"),
    ("a dog sleeps", "ein Hund schläft"),
    ("a dog sleeps", "der Hund schläft"),
    ("yes", "yes"),
    ("да нет", "ja nein"),
]


@pytest.mark.parametrize("processes", [1, 2])
def test_counts(tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 2)
    (tmp_path / "all.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in ROWS), encoding="utf-8")
    found = corpus_statistics(tmp_path / "all.tsv", processes=processes)
    table = found.to_dict()
    assert {name: table[name] for name in list(table)[:4]} == {
        "pairs": 5,
        "duplicates": 1,
        "repeated_sources": 2,
        "identical": 1,
    }
    expected = {"words": 12, "types": 6, "mean_words": 2.4, "median_words": 3, "longest_words": 3}
    assert {name: table["source"][name] for name in expected} == expected
    assert list(table["source"]["scripts"]) == ["LATIN", "CYRILLIC"]
    assert table["source"]["characters"] == sum(len(a) for a, _ in ROWS)
    assert "5 pairs" in str(found)
    assert "1 (20.0 %) came before" in str(found)
