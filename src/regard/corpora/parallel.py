"""Readers of sentence pairs (two line files, TSV, documents), and warnings about them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regard.base.errors import DataError, RegardError, SettingsError
from regard.corpora.formats.registry import document_pairs, holds_pairs
from regard.corpora.lines import read_lines
from regard.scoring.alignment import GoldLinks, parse_gold

Links = tuple[tuple[int, int], ...]

LINK = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def format_alignment(links: Iterable[tuple[int, int]]) -> str:
    """Return links as one line, ordered by source word."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse_alignment(text: str, *, path: Path, line: int) -> Links:
    """Return the links of one line; errors name `path` and `line`."""
    links = []
    for item in text.split():
        found = LINK.fullmatch(item)
        if found is None:
            raise DataError(
                f"{item!r} is not an alignment link",
                path=path,
                line=line,
                remedy="A link is source word, hyphen, target word, counted from 0: 3-4.",
            )
        links.append((int(found[1]), int(found[2])))
    return tuple(links)


def check_links(
    links: Links, *, source_words: int, target_words: int, path: Path, line: int
) -> None:
    """Refuse links to words that the sentences do not have."""
    for source, target in links:
        for side, word, words in (
            ("source", source, source_words),
            ("target", target, target_words),
        ):
            if word >= words:
                raise DataError(
                    f"the link {source}-{target} points past the {words} words of the {side}",
                    path=path,
                    line=line,
                    remedy="Words are separated by whitespace and counted from 0.",
                )


def read_alignments(path: Path) -> list[Links]:
    """Return the links of each sentence pair, one line per pair; a line may be empty."""
    return [
        parse_alignment(text, path=path, line=number)
        for number, text in enumerate(read_lines(path), 1)
    ]


def read_gold(path: Path, *, first: int = 0) -> list[GoldLinks]:
    """Return gold links, one line per pair: `i-j` is sure, `ipj` possible; words from `first`."""
    gold = []
    for number, text in enumerate(read_lines(path), 1):
        try:
            gold.append(parse_gold(text, first=first))
        except RegardError as error:
            raise DataError(
                str(error).rstrip("."),
                path=path,
                line=number,
                remedy=f"Words are counted from {first}.",
            ) from error
    return gold


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A source sentence and its translation.

    `alignment` holds pairs (source word, target word), `antecedents` pairs (pronoun, noun) of the
    source. Words are separated by spaces and counted from 0.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...] | None = None
    antecedents: tuple[tuple[int, int], ...] = ()


MAX_WORDS = 5_000


def read_pairs(paths: Sequence[Path], *, max_words: int = MAX_WORDS) -> list[SentencePair]:
    """Return the sentence pairs of two line files (source, target) or of one file with both.

    A single file is TMX, PO, XLIFF or JSON lines by its ending, otherwise TSV.
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
    """Return the pairs of two files whose lines are translations of each other.

    Lines are not changed. Empty lines at the end of a file are ignored. Elsewhere they are refused,
    because a translation may be missing or the files may be shifted. `alignment` is a file of word
    alignments in the Pharaoh format.
    """
    sources = _sentences(source, other=target, max_words=max_words)
    targets = _sentences(target, other=source, max_words=max_words)
    if len(sources) != len(targets):
        raise DataError(
            f"has {len(sources)} lines, but {target} has {len(targets)}",
            path=source,
            remedy="Each line must be the translation of the same line in the other file "
            "(empty lines at the end are ignored).",
        )
    pairs = [SentencePair(*sides) for sides in zip(sources, targets, strict=True)]
    return pairs if alignment is None else _aligned(pairs, alignment)


def read_tsv(
    path: Path, *, source_column: int = 0, target_column: int = 1, max_words: int = MAX_WORDS
) -> list[SentencePair]:
    """Return the pairs of a TSV file, one per line; columns are counted from 0."""
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
                "For two files with one sentence per line, name both.",
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
    """Return the translated units of a TMX, PO, XLIFF or JSONL file."""
    pairs = []
    for line, source, target in document_pairs(path):
        for text in (source, target):
            _check_length(text, path=path, line=line, max_words=max_words)
        pairs.append(SentencePair(source, target))
    return pairs


def _sentences(path: Path, *, other: Path, max_words: int) -> list[str]:
    """Return the lines of one side; refuse empty or too long ones."""
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
    """Return the lines without empty ones at the end; refuse a file of empty lines only."""
    end = len(lines)
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    if end == 0:
        raise DataError(
            "the file holds only empty lines",
            path=path,
            remedy="It should hold one sentence per line.",
        )
    return lines[:end]


def _check_length(text: str, *, path: Path, line: int, max_words: int) -> None:
    """Refuse a line with more than `max_words` words."""
    # A line of n words has at least 2n - 1 characters, so most lines need not be split.
    if len(text) >= 2 * max_words and (words := len(text.split())) > max_words:
        raise DataError(
            f"the line has {words} words, more than the {max_words} allowed",
            path=path,
            line=line,
            remedy="Is a line break missing? Split or remove the line.",
        )


def _aligned(pairs: list[SentencePair], path: Path) -> list[SentencePair]:
    """Return the pairs with the links of an alignment file."""
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


LOOKED_AT = 50_000
FEWEST_PAIRS = 50
LOWEST_CORRELATION = 0.3
MOST_IDENTICAL = 0.1
WORDS_PER_ENTRY = 10


def corpus_warnings(train: Sequence[SentencePair], valid: Sequence[SentencePair] = ()) -> list[str]:
    """Return a sentence about each problem that these pairs seem to have."""
    found = [_unrelated(train), _identical(train), _swapped(train, valid)]
    return [sentence for sentence in found if sentence]


def vocabulary_warning(pairs: Sequence[SentencePair], *, size: int, shared: bool) -> str:
    """Return a sentence if a vocabulary is too large for these pairs, else an empty string."""
    sides = [sum(len(p.source.split()) for p in pairs), sum(len(p.target.split()) for p in pairs)]
    words = sum(sides) if shared else min(sides)
    if size * WORDS_PER_ENTRY <= words:
        return ""
    return (
        f"A vocabulary of {size:,} entries is large for {words:,} words of text: most entries "
        f"will be too rare to be learned. Use at most {max(1, words // WORDS_PER_ENTRY):,}: lower "
        "tokenizer.size, or leave it out."
    )


def _unrelated(pairs: Sequence[SentencePair]) -> str:
    """Return a warning if the lengths of source and target do not correlate."""
    lengths = np.array([(len(p.source), len(p.target)) for p in pairs[:LOOKED_AT]], dtype=float)
    if len(lengths) < FEWEST_PAIRS or (lengths.std(axis=0) == 0).any():
        return ""
    correlation = float(np.corrcoef(lengths.T)[0, 1])
    if correlation >= LOWEST_CORRELATION:
        return ""
    return (
        f"The lengths of source and target lines hardly correlate ({correlation:.2f}; translations "
        "have 0.7 or more). Are the lines of the two files translations of each other, in the same "
        "order?"
    )


def _identical(pairs: Sequence[SentencePair]) -> str:
    same = sum(pair.source == pair.target for pair in pairs)
    if same <= MOST_IDENTICAL * len(pairs):
        return ""
    return (
        f"{same:,} of {len(pairs):,} lines are the same in source and target. Was one file named "
        "twice, or is a part of it untranslated?"
    )


def _swapped(train: Sequence[SentencePair], valid: Sequence[SentencePair]) -> str:
    """Return a warning if the source words of one part are the target words of the other."""
    if len(train) < FEWEST_PAIRS or not valid:
        return ""
    source, target = ({w for text in side for w in text.split()} for side in _sides(train))
    counts = [
        (sum(w in source for w in words), sum(w in target for w in words))
        for words in ([w for text in side for w in text.split()] for side in _sides(valid))
    ]
    (source_right, source_wrong), (target_wrong, target_right) = counts
    if source_wrong <= 2 * source_right or target_wrong <= 2 * target_right:
        return ""
    return (
        "Source and target seem to be swapped between data.train and data.valid: the source "
        "words of one are the target words of the other. Check the order of the files."
    )


def _sides(pairs: Sequence[SentencePair]) -> tuple[list[str], list[str]]:
    seen = pairs[:LOOKED_AT]
    return [pair.source for pair in seen], [pair.target for pair in seen]
