"""Where data lies: folders with parts, shards, and datasets of Hugging Face."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import DataError
from regard.corpora.sources import folder_parts, locate


def fill(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n", encoding="utf-8")
    return folder


def parts(folder: Path, records: Any = "pairs", pair: str | None = None) -> dict[str, list[str]]:
    found = folder_parts(folder, records=records, pair=pair)
    return {
        part: [str(Path(f).relative_to(folder)) for f in files] for part, files in found.items()
    }


# The names of files, what is wanted, the pair, and the parts that are found.
FOLDERS: dict[str, tuple[tuple[str, ...], str, str | None, dict[str, list[str]]]] = {
    "tables": (
        ("train.tsv", "valid.tsv", "test.tsv", "README.md", ".hidden"),
        "pairs",
        None,
        {"train": ["train.tsv"], "valid": ["valid.tsv"], "test": ["test.tsv"]},
    ),
    "other names of parts": (
        ("train.jsonl.gz", "dev.jsonl"),
        "pairs",
        None,
        {"train": ["train.jsonl.gz"], "valid": ["dev.jsonl"]},
    ),
    "sides": (("train.tgt", "train.src"), "pairs", None, {"train": ["train.src", "train.tgt"]}),
    "languages": (
        ("train.de.gz", "train.en.gz", "val.en", "val.de", "test_2016.de", "test_2016.en"),
        "pairs",
        "en-de",
        {
            "train": ["train.en.gz", "train.de.gz"],
            "valid": ["val.en", "val.de"],
            "test": ["test_2016.en", "test_2016.de"],
        },
    ),
    "shards": (
        ("train-00000-of-00002.parquet", "train-00001-of-00002.parquet", "test-00000.parquet"),
        "pairs",
        None,
        {
            "train": ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"],
            "test": ["test-00000.parquet"],
        },
    ),
    "a folder a part": (
        ("train/0000.parquet", "train/0001.parquet", "validation/0000.parquet"),
        "texts",
        None,
        {
            "train": ["train/0000.parquet", "train/0001.parquet"],
            "valid": ["validation/0000.parquet"],
        },
    ),
    "a folder called data": (
        ("data/train-0.parquet", "README.md"),
        "labelled texts",
        None,
        {"train": ["data/train-0.parquet"]},
    ),
    "one file without a part": (("pairs.tmx",), "pairs", None, {"train": ["pairs.tmx"]}),
    "texts": (("b.txt", "a.txt"), "texts", None, {"train": ["a.txt", "b.txt"]}),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_the_parts_of_a_folder(tmp_path: Path, case: str) -> None:
    names, records, pair, expected = FOLDERS[case]
    assert parts(fill(tmp_path, *names), records, pair) == expected


# The names of files, the pair, and what the message says.
UNCLEAR: dict[str, tuple[tuple[str, ...], str | None, str]] = {
    "empty": ((), None, "the folder is empty. It should hold train.tsv"),
    "unpaired": (("train.en",), None, "train.en has no counterpart in another language. Both"),
    "which direction": (("train.en", "train.de"), None, "direction is not clear.*--pair de-en or"),
    "another pair": (("train.en", "train.de"), "en-fr", r"no train\*\.en and train\*\.fr .*found:"),
    "no part": (
        ("a.tsv", "b.csv"),
        None,
        "no file is named as a part to train on .there are a.tsv",
    ),
    "only a test": (("test.tsv",), None, "there is no part to train on, only test"),
    "two of a part": (("train.a.tsv", "train.b.tsv"), None, "several files may be the train part"),
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_folders_that_are_not_clear(tmp_path: Path, case: str) -> None:
    names, pair, message = UNCLEAR[case]
    with pytest.raises(DataError, match=message) as caught:
        parts(fill(tmp_path, *names), "pairs", pair)
    assert str(tmp_path) in str(caught.value)


def test_named_parts_take_the_place_of_those_of_a_folder(tmp_path: Path) -> None:
    fill(tmp_path, "train.tsv", "valid.tsv", "other.tsv")
    given = {"train": [str(tmp_path)], "valid": (), "test": [str(tmp_path / "other.tsv")]}
    found = locate(given, records="pairs")
    assert [Path(*files).name for files in found.values()] == [
        "train.tsv",
        "valid.tsv",
        "other.tsv",
    ]
    with pytest.raises(DataError, match="is a folder, but 2 files or folders are named"):
        locate({"train": [str(tmp_path), "b.tsv"]}, records="pairs")


def dataset(folder: Path, rows: list[dict[str, Any]], files: int = 2) -> Path:
    """Write what `Dataset.save_to_disk` writes, as far as it is read."""
    pyarrow = pytest.importorskip("pyarrow")
    folder.mkdir(parents=True)
    names = [f"data-{number:05}-of-{files:05}.arrow" for number in range(files)]
    for number, name in enumerate(names):
        table = pyarrow.Table.from_pylist(rows[number::files])
        with pyarrow.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table)
    state = {"_data_files": [{"filename": name} for name in names]}
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    return folder


ROWS = [{"translation": {"en": f"s{n}", "de": f"t{n}"}} for n in range(6)]


def test_a_saved_dataset(tmp_path: Path) -> None:
    from regard.corpora.parallel import read_pairs

    for split in ("train", "validation"):
        dataset(tmp_path / split, ROWS)
    listing = {"splits": ["train", "validation", "extra"][:2]}
    (tmp_path / "dataset_dict.json").write_text(json.dumps(listing), encoding="utf-8")
    found = folder_parts(tmp_path, records="pairs")
    assert {part: len(files) for part, files in found.items()} == {"train": 2, "valid": 2}
    pairs = read_pairs([Path(file) for file in found["train"]], pair="de-en")
    assert [(p.source, p.target) for p in pairs[:2]] == [("t0", "s0"), ("t2", "s2")]
    one = folder_parts(tmp_path / "train", records="pairs")
    assert [*one] == ["train"]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"_data_files": [{"filename": "../../secret"}]}, "missing or damaged"),
        ({"_data_files": []}, "missing or damaged"),
        ({"_data_files": "x"}, "missing or damaged"),
        ([1], "missing or damaged"),
        ({"_data_files": [{"filename": "a"}], "_indices_data_files": [1]}, "flatten_indices"),
    ],
)
def test_damaged_datasets(tmp_path: Path, state: Any, message: str) -> None:
    (tmp_path / "state.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        folder_parts(tmp_path, records="pairs")
