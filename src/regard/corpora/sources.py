"""Where data lies: files, shards, folders with parts, and folders of Hugging Face datasets.

A part of a corpus is one file, several shards of the same kind, or two files with a sentence a
line. A folder is replaced with the files of its parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from regard.base.errors import DataError, SettingsError
from regard.corpora.arrow import dataset_splits
from regard.corpora.lines import PACKED, unpacked_name

RecordKind = Literal["pairs", "texts", "labelled texts", "a series", "a graph"]

PARTS = ("train", "valid", "test")
# The names that files and folders of a part begin with.
NAMES = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}
TABLES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
DOCUMENTS = {".tmx": "tmx", ".po": "po", ".pot": "po", ".xlf": "xliff", ".xliff": "xliff"}
KINDS = {**TABLES, **DOCUMENTS}
KNOWN = "TSV, CSV, JSONL, Parquet, Arrow, TMX, PO or XLIFF"
# Endings of files whose language is not named, but whose side is.
SIDES = (("src", "tgt"), ("src", "trg"), ("source", "target"))
# Files that are often in a folder of data but hold none.
BESIDE = (".md", ".json", ".yaml", ".yml", ".toml", ".py", ".sh", ".html", ".zip", ".bib")
EXAMPLES = 3
SHARD = re.compile(r"[-_.]?\d+(-of-\d+)?(?=\.|$)")


@dataclass
class LeftOut:
    """Counts records that cannot be used, by reason; or refuses the first of them."""

    refuse: bool = True
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    """For each reason where the first of them are, as `file, line 3`."""

    def add(self, reason: str, error: DataError) -> None:
        """Count a record; raise the error where nothing may be left out."""
        if self.refuse:
            raise error
        self.counts[reason] += 1
        kept = self.examples.setdefault(reason, [])
        if len(kept) < EXAMPLES:
            kept.append(f"{error.path}, line {error.line}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"counts": dict(self.counts), "examples": self.examples}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LeftOut:
        """Return what `to_dict` described."""
        return cls(False, Counter(record["counts"]), dict(record["examples"]))

    def lines(self) -> list[str]:
        """Return a sentence for each reason."""
        return [
            f"{count:,} left out: {reason} (as in {self.examples[reason][0]})."
            for reason, count in self.counts.most_common()
        ]


def kind_of(path: str | Path) -> str:
    """Return the kind of a file by its ending, as "tsv"; empty for a file of lines."""
    return KINDS.get(_ending(path), "")


def _ending(path: str | Path) -> str:
    return Path(unpacked_name(path)).suffix.lower()


def no_data(records: RecordKind, *, built_in: str = "") -> SettingsError:
    """Return the error for a training that was given no data."""
    what, example = {
        "pairs": ("are no sentence pairs", "pairs.tsv (or two line files, or a folder)"),
        "texts": ("is no text", "book.txt (or several files, or a folder)"),
        "labelled texts": ("are no labelled texts", "reviews.tsv (or another file, or a folder)"),
        "a series": ("is no series", "prices.csv --columns close"),
        "a graph": ("is no graph", "graph.npz (or GraphML, or edges, features and labels)"),
    }[records]
    otherwise = f", or ask for {built_in} with --built-in" if built_in else ""
    return SettingsError(
        f"There {what} to learn from: give the data with --data {example}{otherwise}."
    )


def require_files(from_memory: bool, *, what: str) -> None:
    """Refuse to look for the files of data that was given in Python."""
    if from_memory:
        raise SettingsError(
            f"This run was trained on {what} given in Python, not in files. Give the same data "
            "again: regard.train(..., data=...)."
        )


def held_out_note(total: int, what: str, sizes: Mapping[str, int], *, seed: int) -> str:
    """Return one sentence about the parts that were held out."""
    purposes = {"valid": "for validation", "test": "to test on"}
    parts = " and ".join(f"{size:,} {purposes[part]}" for part, size in sizes.items())
    return f"Held out of {total:,} {what} by seed {seed}: {parts}."


def as_parts(data: Any, *, first: str = "train") -> dict[str, Any]:
    """Return data that is given in Python as a mapping of parts; `first` is that of a bare value.

    Of files, a part is a tuple of names.
    """
    table = dict(data) if isinstance(data, Mapping) else {first: data}
    return {
        part: (str(given),) if isinstance(given, str | Path) else given
        for part, given in table.items()
        if given is not None
    }


def named_files(parts: Mapping[str, Any], *, what: str) -> dict[str, tuple[str, ...]] | None:
    """Return the parts as names of files; None if they are records from memory instead."""
    files = {part: tuple(map(str, given)) for part, given in parts.items() if _are_names(given)}
    if files and len(files) != len(parts):
        raise SettingsError(
            f"The data has files ({', '.join(files)}) and {what} from memory: give one kind only."
        )
    return files or None


def _are_names(given: Any) -> bool:
    """Return whether these are names of files, rather than records."""
    if not isinstance(given, Sequence) or not given:
        return False
    return all(isinstance(one, str | Path) for one in given)


def locate(
    parts: Mapping[str, Sequence[str]], *, records: RecordKind, pair: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the files of each part, where a folder stands for the files in it.

    A folder that is named for training also brings the parts for validation and test, unless these
    are named.
    """
    given = {part: tuple(files) for part, files in parts.items()}
    found: dict[str, tuple[str, ...]] = {}
    for part, files in given.items():
        folders = [file for file in files if Path(file).is_dir()]
        if not folders:
            found[part] = files or found.get(part, ())
            continue
        if len(files) > 1:
            raise DataError(
                f"is a folder, but {len(files)} files or folders are named",
                path=folders[0],
                remedy="Name one folder, or files alone.",
            )
        inside = folder_parts(Path(files[0]), records=records, pair=pair)
        if part == "train":
            found = {**inside, **{name: own for name, own in given.items() if own}, **found}
            found["train"] = inside["train"]
        else:
            found[part] = inside.get(part, inside["train"])
    return found


def folder_parts(
    folder: Path, *, records: RecordKind, pair: str | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the files of each part that a folder holds; there is always a part to train on."""
    if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
        splits = dataset_splits(folder)
        parts = {p: [s for s in splits if s in names] for p, names in NAMES.items()}
        return _named({p: splits[found[0]] for p, found in parts.items() if found}, folder)
    files = sorted(path for path in folder.iterdir() if _may_be_data(path))
    inner = [path for path in files if path.is_dir()]
    files = [path for path in files if path.is_file()]
    if not files and [path.name for path in inner] == ["data"]:
        return folder_parts(inner[0], records=records, pair=pair)
    if not files and not inner:
        raise DataError("the folder is empty", path=folder, remedy=_expected(records))
    found: dict[str, list[Path]] = {}
    for part, names in NAMES.items():
        of_part = [path for path in files if _begins(path.name, names)]
        within = [path for path in inner if path.name in names]
        if of_part:
            found[part] = _of_part(of_part, folder, part, records=records, pair=pair)
        elif within:
            found[part] = _of_folder(within[0], records=records, pair=pair)
    if "train" not in found and not found:
        found["train"] = _only_data(files, folder, records)
    if records == "pairs":
        found = {part: chosen for part, chosen in found.items() if chosen}
    return _named(found, folder)


def _may_be_data(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and (
        path.is_dir()
        or (_ending(path) not in BESIDE and path.name.upper() not in ("README", "LICENSE"))
    )


def _begins(name: str, names: Iterable[str]) -> bool:
    return re.match(rf"({'|'.join(names)})(?![a-z])", name) is not None


def _named(parts: Mapping[str, Sequence[Path]], folder: Path) -> dict[str, tuple[str, ...]]:
    if not parts.get("train"):
        raise DataError(
            f"there is no part to train on, only {', '.join(parts)}",
            path=folder,
            remedy="Its file or folder is named train, as train.tsv.",
        )
    return {part: tuple(str(file) for file in files) for part, files in parts.items()}


def _expected(records: RecordKind) -> str:
    if records == "pairs":
        return "It should hold train.tsv (or another kind), or train.en and train.de."
    return "It should hold a file for each part, as train.txt or train.jsonl."


def _of_part(
    files: Sequence[Path], folder: Path, part: str, *, records: RecordKind, pair: str | None
) -> list[Path]:
    """Return the files of one part: line files in two languages, one file, or its shards."""
    if records == "pairs":
        lines = [path for path in files if not kind_of(path)]
        if lines and len(lines) == len(files):
            source, target = languages_of(pair) if pair else _languages_in(lines, folder, part)
            candidates = _candidates(folder, NAMES[part], source, target)
            chosen = _only(candidates, folder, part, NAMES[part], source)
            if chosen is None:
                raise _unpaired(folder, part, source, target, lines)
            return list(chosen)
        files = [path for path in files if kind_of(path)]
    return _shards(files, folder, part)


def _shards(files: Sequence[Path], folder: Path, part: str) -> list[Path]:
    """Return the only file, or files whose names differ in their numbers alone."""
    plain = [path for path in files if unpacked_name(path).count(".") == 1]
    exact = [path for path in plain if path.name.partition(".")[0] in NAMES.get(part, ())]
    if len(exact) == 1:
        return exact
    if len({SHARD.sub("", path.name) for path in files}) == 1:
        return list(files)
    raise DataError(
        f"several files may be the {part} part ({', '.join(path.name for path in files)})",
        path=folder,
        remedy=f"Keep one of them there, or name it with --{'data' if part == 'train' else part}.",
    )


def _of_folder(folder: Path, *, records: RecordKind, pair: str | None) -> list[Path]:
    """Return the files of a folder that is one part."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and _may_be_data(path))
    if records == "pairs" and files and not any(kind_of(path) for path in files):
        source, target = languages_of(pair) if pair else _languages_in(files, folder, folder.name)
        both = [
            path for ending in (source, target) for path in files if _ending(path) == f".{ending}"
        ]
        if len(both) == 2:
            return both
        raise _unpaired(folder, folder.name, source, target, files)
    if not files:
        raise DataError("the folder is empty", path=folder, remedy="It should hold files of data.")
    return _shards(files, folder, folder.name)


def _only_data(files: Sequence[Path], folder: Path, records: RecordKind) -> list[Path]:
    """Return the data of a folder without names of parts: its only file, its shards, its texts."""
    tables = [path for path in files if kind_of(path)]
    if records == "texts" and not tables:
        return list(files)
    if records != "pairs" and len(files) == 1:
        return list(files)
    if tables and len({SHARD.sub("", path.name) for path in tables}) == 1:
        return tables
    shown = ", ".join(path.name for path in files[:6]) + (", ..." if len(files) > 6 else "")
    raise DataError(
        f"no file is named as a part to train on (there are {shown or 'folders alone'})",
        path=folder,
        remedy=_expected(records) + " Or name the files themselves with --data.",
    )


def _languages_in(files: Sequence[Path], folder: Path, part: str) -> tuple[str, str]:
    """Return source and target if the endings tell them, as .src and .tgt."""
    endings = sorted({_ending(path).removeprefix(".") for path in files})
    for sides in SIDES:
        if sorted(sides) == endings:
            return sides
    if len(endings) == 1:
        raise DataError(
            f"{files[0].name} has no counterpart in another language",
            path=folder,
            remedy=f"Both languages are needed, as {part}.en and {part}.de, or one file with both "
            f"({KNOWN}).",
        )
    first, second = endings[:2]
    options = f"--pair {first}-{second} or --pair {second}-{first}"
    raise DataError(
        f"the direction is not clear: there are {', '.join(endings)}",
        path=folder,
        remedy=f"Say from which language to which, as {options}.",
    )


def _unpaired(
    folder: Path, part: str, source: str, target: str, files: Sequence[Path] = ()
) -> DataError:
    found = f" (found: {', '.join(path.name for path in files[:6])})" if files else ""
    return DataError(
        f"there are no {part}*.{source} and {part}*.{target} of the same name{found}",
        path=folder,
        remedy="Both languages are needed, one sentence a line, plain, .gz or .zst. Another "
        "language pair is named with --pair.",
    )


def languages_of(pair: str) -> tuple[str, str]:
    """Return source and target of a pair, as "en-de" or "zh-Hans:en"."""
    languages = pair.split(":" if ":" in pair else "-")
    if len(languages) != 2 or not all(languages) or languages[0] == languages[1]:
        raise SettingsError(f"--pair {pair!r} is not of the form source-target, as en-de.")
    return languages[0], languages[1]


def find_corpus(
    folder: Path, pair: str, *, needs_test: bool = True
) -> dict[str, tuple[Path, Path]]:
    """Return the two files of each part; validation may be missing, and the test if not needed.

    A name may go on after its part (`test_2016.en`) and end in .gz or .zst.
    """
    if not folder.is_dir():
        raise DataError(
            "there is no such folder", path=folder, remedy="Give a folder that holds a corpus."
        )
    source, target = languages_of(pair)
    found = {}
    for part, names in NAMES.items():
        files = _only(_candidates(folder, names, source, target), folder, part, names, source)
        if files is not None:
            found[part] = files
        elif part == "train" or (part == "test" and needs_test):
            raise _unpaired(folder, part, source, target)
    return found


def _candidates(
    folder: Path, names: tuple[str, ...], source: str, target: str
) -> list[tuple[Path, Path]]:
    """Return all source files of a part that have a target file next to them."""
    pattern = re.compile(rf"({'|'.join(names)})(?![a-z]).*\.{re.escape(source)}(\.gz|\.zst)?")
    pairs = []
    for file in sorted(folder.iterdir()):
        if pattern.fullmatch(file.name):
            stem = unpacked_name(file).removesuffix(source)
            others = [folder / f"{stem}{target}{ending}" for ending in ("", *PACKED)]
            pairs += [(file, other) for other in others if other.is_file()][:1]
    return pairs


def _only(
    candidates: list[tuple[Path, Path]],
    folder: Path,
    part: str,
    names: tuple[str, ...],
    source: str,
) -> tuple[Path, Path] | None:
    """Return the one that is meant: the shortest name if there are several, else the only one."""
    plain = [f"{name}.{source}{ending}" for name in names for ending in ("", *PACKED)]
    exact = [files for files in candidates if files[0].name in plain]
    chosen = exact or candidates
    if len(chosen) > 1:
        listed = ", ".join(files[0].name for files in chosen)
        raise DataError(
            f"several files may be the {part} part ({listed})",
            path=folder,
            remedy=f"Keep one of them there, or name it {part}.{source}."
            + (" A test set can also be given with --test." if part == "test" else ""),
        )
    return chosen[0] if chosen else None
