from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import RegardError
from regard.pictures.canvas import Records, write_records


def test_rows_come_as_csv_and_as_json(tmp_path: Path) -> None:
    records = Records(("word", "weight"), [('a,"b"', 0.25), ("猫", None)])
    write_records(records, tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text(encoding="utf-8") == 'word,weight\n"a,""b""",0.25\n猫,\n'
    write_records(records, tmp_path / "r.JSON")
    assert json.loads((tmp_path / "r.JSON").read_text(encoding="utf-8")) == records.to_dicts()
    with pytest.raises(RegardError, match=r"'\.txt'\. Choose one of: \.csv, \.json"):
        write_records(records, tmp_path / "r.txt")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.text(max_size=8), st.floats(allow_nan=False)), max_size=5))
def test_json_gives_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, float]]
) -> None:
    path = tmp_path_factory.mktemp("records") / "r.json"
    rows = [(word.encode("utf-8", "replace").decode(), number) for word, number in rows]
    write_records(Records(("word", "number"), rows), path)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [(row["word"], row["number"]) for row in found] == rows


def test_a_lone_surrogate_does_not_stop_the_file(tmp_path: Path) -> None:
    write_records(Records(("word",), [("\ud800",)]), tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["word"], ["?"]]
