"""Sentence pairs from two line files, from one file with tabs, or from a document with both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.base.errors import DataError, SettingsError
from regard.corpora.documents.pairs import document_pairs, holds_pairs
from regard.corpora.lines import read_lines
from regard.corpora.pair import SentencePair
from regard.corpora.pharaoh import check_links, read_alignments

MAX_WORDS = 5_000


def read_pairs(paths: Sequence[Path], *, max_words: int = MAX_WORDS) -> list[SentencePair]:
    """Read sentence pairs from two line files (source, target) or from one file with both.

    One file is TSV, or by its ending TMX, PO, XLIFF or JSON lines.
    """
    if len(paths) == 1 and holds_pairs(paths[0]):
        return read_units(paths[0], max_words=max_words)
    if len(paths) == 1:
        return read_tsv(paths[0], max_words=max_words)
    if len(paths) == 2:
        return read_parallel(paths[0], paths[1], max_words=max_words)
    raise SettingsError(
        "sentence pairs come from one file (TSV, TMX, PO, XLIFF or JSONL) or from two line files, "
        f"source and target; {len(paths)} files were named"
    )


def read_parallel(
    source: Path, target: Path, *, alignment: Path | None = None, max_words: int = MAX_WORDS
) -> list[SentencePair]:
    """Read two files whose lines are translations of each other, and their word alignment.

    Lines stay as they are. Empty lines at the end of a file do not count; anywhere else they are
    refused, since nobody can tell whether a translation is missing or the files are shifted.
    """
    sources = _sentences(source, other=target, max_words=max_words)
    targets = _sentences(target, other=source, max_words=max_words)
    if len(sources) != len(targets):
        raise DataError(
            f"has {len(sources)} lines, but {target} has {len(targets)}",
            path=source,
            remedy="Line for line they must be translations of each other "
            "(empty lines at the end are not counted).",
        )
    pairs = [SentencePair(*sides) for sides in zip(sources, targets, strict=True)]
    return pairs if alignment is None else _aligned(pairs, alignment)


def read_tsv(
    path: Path, *, source_column: int = 0, target_column: int = 1, max_words: int = MAX_WORDS
) -> list[SentencePair]:
    """Read one pair a line, in columns that are separated by tabs and counted from 0."""
    needed = max(source_column, target_column) + 1
    pairs = []
    for number, line in enumerate(_without_blank_end(read_lines(path), path), 1):
        columns = line.split("\t")
        if len(columns) < needed:
            raise DataError(
                f"{len(columns)} column{'s' * (len(columns) != 1)} where {needed} are needed",
                path=path,
                line=number,
                remedy="Source and target are separated by a tab. "
                "For two files with a sentence a line, name both.",
            )
        sides = columns[source_column], columns[target_column]
        for column, text in zip((source_column, target_column), sides, strict=True):
            if not text.strip():
                raise DataError(
                    f"column {column + 1} is empty",
                    path=path,
                    line=number,
                    remedy="Fill it in or remove the line.",
                )
            _check_length(text, path=path, line=number, max_words=max_words)
        pairs.append(SentencePair(*sides))
    return pairs


def read_units(path: Path, *, max_words: int = MAX_WORDS) -> list[SentencePair]:
    """Read the translated units of a TMX, PO, XLIFF or JSONL file."""
    pairs = []
    for line, source, target in document_pairs(path):
        for text in (source, target):
            _check_length(text, path=path, line=line, max_words=max_words)
        pairs.append(SentencePair(source, target))
    return pairs


def _sentences(path: Path, *, other: Path, max_words: int) -> list[str]:
    """Return the lines of one side, none of them empty or too long."""
    lines = _without_blank_end(read_lines(path), path)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise DataError(
                "the line is empty",
                path=path,
                line=number,
                remedy=f"Fill it in, or remove this line here and in {other}.",
            )
        _check_length(line, path=path, line=number, max_words=max_words)
    return lines


def _without_blank_end(lines: list[str], path: Path) -> list[str]:
    """Leave out empty lines at the end; a file of nothing else counts as empty."""
    end = len(lines)
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    if end == 0:
        raise DataError(
            "the file holds only empty lines",
            path=path,
            remedy="It should hold one sentence a line.",
        )
    return lines[:end]


def _check_length(text: str, *, path: Path, line: int, max_words: int) -> None:
    """Refuse a line with so many words that it can hardly be a sentence."""
    # A line of n words has at least 2n - 1 characters: most lines need not be split to be counted.
    if len(text) >= 2 * max_words and (words := len(text.split())) > max_words:
        raise DataError(
            f"the line has {words} words, more than the {max_words} allowed",
            path=path,
            line=line,
            remedy="Is a line break missing? Split or remove the line.",
        )


def _aligned(pairs: list[SentencePair], path: Path) -> list[SentencePair]:
    """Return the pairs with the links that an alignment file gives them."""
    alignments = read_alignments(path)
    while len(alignments) > len(pairs) and not alignments[-1]:
        alignments.pop()
    if len(alignments) != len(pairs):
        raise DataError(
            f"has {len(alignments)} lines for {len(pairs)} sentence pairs",
            path=path,
            remedy="It must hold one line of links for each pair.",
        )
    aligned = []
    for number, (pair, links) in enumerate(zip(pairs, alignments, strict=True), 1):
        source_words, target_words = len(pair.source.split()), len(pair.target.split())
        check_links(
            links, source_words=source_words, target_words=target_words, path=path, line=number
        )
        aligned.append(SentencePair(pair.source, pair.target, alignment=links))
    return aligned
