"""A folder with a corpus in the usual names: train.en, valid.en, test.en and the same in .de."""

from __future__ import annotations

import re
from pathlib import Path

from regard.base.errors import DataError, SettingsError

NAMES = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}


def languages_of(pair: str) -> tuple[str, str]:
    """Return source and target of a pair, as "en-de"."""
    languages = pair.split("-")
    if len(languages) != 2 or not all(languages) or languages[0] == languages[1]:
        raise SettingsError(f"--pair {pair!r} is not of the form source-target, as en-de.")
    return languages[0], languages[1]


def find_corpus(
    folder: Path, pair: str, *, needs_test: bool = True
) -> dict[str, tuple[Path, Path]]:
    """Return the two files of each part; validation may be missing, and the test if not needed.

    A name may go on after its part (`test_2016.en`) and end in .gz.
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
            raise DataError(
                f"there are no {part}*.{source} and {part}*.{target} of the same name",
                path=folder,
                remedy="Both languages are needed, one sentence a line, plain or .gz. Another "
                "language pair is named with --pair.",
            )
    return found


def _candidates(
    folder: Path, names: tuple[str, ...], source: str, target: str
) -> list[tuple[Path, Path]]:
    """Return all source files of a part that have a target file beside them."""
    pattern = re.compile(rf"({'|'.join(names)})(?![a-z]).*\.{re.escape(source)}(\.gz)?")
    pairs = []
    for file in sorted(folder.iterdir()):
        if pattern.fullmatch(file.name):
            stem = file.name.removesuffix(".gz").removesuffix(source)
            others = [folder / f"{stem}{target}{ending}" for ending in ("", ".gz")]
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
    plain = [f"{name}.{source}{ending}" for name in names for ending in ("", ".gz")]
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
