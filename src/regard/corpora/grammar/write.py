"""Writes a corpus of the grammar to files: sentences, alignments and antecedents, line by line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from regard.base.errors import RunError
from regard.corpora.grammar.generate import SHORTEST, Split, Words, generate
from regard.corpora.grammar.languages import target_language
from regard.corpora.pharaoh import format_alignment


def write_corpus(
    folder: Path,
    *,
    pair: str,
    size: int,
    valid_size: int = 1000,
    test_size: int = 1000,
    min_words: int = SHORTEST,
    max_words: int = 60,
    words: Words = "full",
    seed: int = 1,
) -> None:
    """Write train, valid and test, each as two line files, `.align` and `.antecedents`."""
    target_language(pair)
    sides = pair.split("-")
    refuse_existing(folder, [*sides, "align", "antecedents"])
    sizes: dict[Split, int] = {"train": size, "valid": valid_size, "test": test_size}
    corpora = {
        split: generate(
            pair=pair,
            split=split,
            size=sizes[split],
            min_words=min_words,
            max_words=max_words,
            words=words,
            seed=seed,
        )
        for split in sizes
    }
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in corpora.items():
        write_lines(folder / f"{split}.{sides[0]}", (each.source for each in pairs))
        write_lines(folder / f"{split}.{sides[1]}", (each.target for each in pairs))
        write_lines(
            folder / f"{split}.align", (format_alignment(each.alignment or ()) for each in pairs)
        )
        write_lines(
            folder / f"{split}.antecedents",
            (format_alignment(each.antecedents) for each in pairs),
        )


def refuse_existing(folder: Path, suffixes: Iterable[str]) -> None:
    """Refuse a folder that holds a file which would be overwritten."""
    for split in get_args(Split):
        for suffix in suffixes:
            path = folder / f"{split}.{suffix}"
            if path.exists():
                raise RunError(f"{path} exists already. Choose another folder, or remove it first.")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines as UTF-8, each ended by "\\n" on every platform."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
