"""Readers of sentence pairs (line files, tables, documents), and warnings about them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import DataError, SettingsError
from regard.base.files import fingerprint
from regard.corpora.alignments import check_links, read_alignments
from regard.corpora.formats.document import Languages
from regard.corpora.formats.registry import document_pairs
from regard.corpora.lines import SENTENCES, empty_file, stream_lines, unpacked_name
from regard.corpora.sources import DOCUMENTS, KNOWN, LeftOut, kind_of, languages_of
from regard.corpora.store import StoredSequence
from regard.corpora.tables import SKIP, Columns, pair_columns, read_rows


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


def read_pairs(
    paths: Sequence[Path],
    *,
    columns: Sequence[str] = (),
    pair: str | None = None,
    max_words: int = MAX_WORDS,
    left_out: LeftOut | None = None,
) -> list[SentencePair]:
    """Return the sentence pairs of files, as `iterate_pairs` yields them."""
    return list(
        iterate_pairs(paths, columns=columns, pair=pair, max_words=max_words, left_out=left_out)
    )


def iterate_pairs(
    paths: Sequence[Path],
    *,
    columns: Sequence[str] = (),
    pair: str | None = None,
    max_words: int = MAX_WORDS,
    left_out: LeftOut | None = None,
) -> Iterator[SentencePair]:
    """Yield the pairs of two line files (source, target), or of files that hold both languages.

    A file with both is a table (TSV, CSV, JSONL, Parquet, Arrow) with two `columns`, or a TMX, PO
    or XLIFF document. Of line files there may be several in each language. `pair`, as "en-de", says
    which languages are meant. Bad lines are refused, unless `left_out` counts them.
    """
    left_out = LeftOut() if left_out is None else left_out
    if len(paths) == 1 or (paths and all(kind_of(path) for path in paths)):
        for path in paths:
            if kind_of(path) in DOCUMENTS.values():
                yield from _document_pairs(path, pair, max_words, left_out)
            else:
                wanted = pair_columns(pair).named(columns=columns, path=path)
                yield from _table_pairs(path, wanted, max_words, left_out)
        return
    if columns:
        raise DataError(
            "a file with one sentence per line has no columns",
            path=paths[0],
            remedy="Leave out --columns, or name one table.",
        )
    for source, target in _line_files(paths, pair):
        yield from _line_pairs(source, target, max_words, left_out)


def _line_files(paths: Sequence[Path], pair: str | None) -> list[tuple[Path, Path]]:
    """Return source and target files, told apart by their order or by their endings."""
    endings = [Path(unpacked_name(path)).suffix for path in paths]
    sides = list(dict.fromkeys(endings))
    if pair is not None and sorted(sides) == sorted(f".{code}" for code in languages_of(pair)):
        sides = [f".{code}" for code in languages_of(pair)]
    if len(sides) == 2:
        source, target = (
            [path for path, ending in zip(paths, endings, strict=True) if ending == side]
            for side in sides
        )
        if len(source) == len(target):
            return list(zip(source, target, strict=True))
    if len(paths) == 2:
        return [(paths[0], paths[1])]
    raise SettingsError(
        f"sentence pairs come from one file ({KNOWN}), from several of them, or from two line "
        f"files, source and target; {len(paths)} files were named"
    )


def _line_pairs(
    source: Path, target: Path, max_words: int, left_out: LeftOut
) -> Iterator[SentencePair]:
    """Yield the pairs of two line files.

    An empty line counts only if a pair follows, and is refused, because a translation may be
    missing or the files may be shifted.
    """
    files, ends = (source, target), [0, 0]
    empty: list[tuple[int, int]] = []
    number = 0
    streams = (stream_lines(path, expected=SENTENCES) for path in files)
    for number, sides in enumerate(zip_longest(*streams, fillvalue=""), 1):
        there = [bool(text.strip()) for text in sides]
        ends = [number if full else end for full, end in zip(there, ends, strict=True)]
        if not all(there):
            empty.append((number, there.index(False)))
            continue
        for line, side in empty:
            remedy = f"Fill it in, or remove this line here and in {files[1 - side]}, {SKIP}."
            left_out.add(
                "empty", DataError("the line is empty", path=files[side], line=line, remedy=remedy)
            )
        empty = []
        if all(
            _short(text, path, number, max_words, left_out)
            for text, path in zip(sides, files, strict=True)
        ):
            yield SentencePair(sides[0], sides[1])
    for path, end in zip(files, ends, strict=True):
        if end == 0:
            raise _without_text(path)
    if ends[0] != ends[1]:
        raise DataError(
            f"has {ends[0]} lines, but {target} has {ends[1]}",
            path=source,
            remedy="Each line must be the translation of the same line in the other file "
            "(empty lines at the end are ignored).",
        )


def _without_text(path: Path) -> DataError:
    """Return the error for a file without any sentence."""
    if not path.stat().st_size or not any(True for _ in stream_lines(path, expected=SENTENCES)):
        return empty_file(path, expected=SENTENCES)
    return DataError(
        "the file holds only empty lines", path=path, remedy=f"It should hold {SENTENCES}."
    )


def _table_pairs(
    path: Path, columns: Columns, max_words: int, left_out: LeftOut
) -> Iterator[SentencePair]:
    """Yield the pairs of a table."""
    kind = kind_of(path)
    for line, cells in read_rows(path, columns, left_out):
        sides = [cell if kind in ("", "tsv") else _one_line(cell) for cell in cells]
        bad = [place for place, side in enumerate(sides) if not side.strip()]
        if bad:
            error = DataError(
                f"{columns.label(bad[0], kind)} is empty",
                path=path,
                line=line,
                remedy=f"Fill it in or remove the line, {SKIP}.",
            )
            left_out.add("empty", error)
        elif all(_short(side, path, line, max_words, left_out) for side in sides):
            yield SentencePair(sides[0], sides[1])


def _one_line(value: Any) -> str:
    """Return a text without line breaks; what is no text is empty."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _document_pairs(
    path: Path, pair: str | None, max_words: int, left_out: LeftOut
) -> Iterator[SentencePair]:
    """Yield the translated units of a TMX, PO or XLIFF file."""
    languages = Languages(*languages_of(pair)) if pair else Languages()
    for line, source, target in document_pairs(path, languages=languages):
        if all(_short(text, path, line, max_words, left_out) for text in (source, target)):
            yield SentencePair(source, target)


def _short(text: str, path: Path, line: int, max_words: int, left_out: LeftOut) -> bool:
    """Return whether a sentence has at most `max_words` words; refuse or count it otherwise."""
    # A line of n words has at least 2n - 1 characters, so most lines need not be split.
    if len(text) < 2 * max_words or (words := len(text.split())) <= max_words:
        return True
    error = DataError(
        f"the line has {words} words, more than the {max_words} allowed",
        path=path,
        line=line,
        remedy=f"Is a line break missing? Split or remove the line, {SKIP}.",
    )
    left_out.add(f"more than {max_words:,} words", error)
    return False


def read_parallel(
    source: Path, target: Path, *, alignment: Path | None = None, max_words: int = MAX_WORDS
) -> list[SentencePair]:
    """Return the pairs of two files whose lines are translations of each other.

    Lines are not changed. Empty lines at the end of a file are ignored. `alignment` is a file of
    word alignments in the Pharaoh format.
    """
    pairs = list(_line_pairs(source, target, max_words, LeftOut()))
    return pairs if alignment is None else _aligned(pairs, alignment)


def hold_out(
    pairs: Sequence[SentencePair], *, sizes: Sequence[int], seed: int
) -> list[list[SentencePair]]:
    """Return the pairs that remain, and a part of each size, in the order of the pairs.

    The choice is a function of seed and source sentence. Pairs with the same source stay together,
    so that no part translates a sentence that another has learned from.
    """
    texts = [f"{seed}\t{pair.source}".encode("utf-8", "surrogatepass") for pair in pairs]
    keys = [blake2b(text, digest_size=8).digest() for text in texts]
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    part_of: dict[int, int] = {}
    waiting = sorted(groups)
    for part, size in enumerate(sizes, 1):
        chosen: list[int] = []
        rest = []
        for place, key in enumerate(waiting):
            if len(chosen) == size:
                rest += waiting[place:]
                break
            fits = len(chosen) + len(groups[key]) <= size
            (chosen.extend(groups[key]) if fits else rest.append(key))
        if size and not chosen:  # each sentence occurs more often than that
            chosen = [row for row in groups[rest[0]] if row not in part_of][:size]
        part_of |= dict.fromkeys(chosen, part)
        waiting = rest
    return [
        [pair for row, pair in enumerate(pairs) if part_of.get(row, 0) == part]
        for part in range(len(sizes) + 1)
    ]


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


def fingerprint_of(pairs: Iterable[SentencePair]) -> str:
    """Return a short digest of all pairs, which tells one corpus from another."""
    return fingerprint(f"{pair.source}\t{pair.target}\n" for pair in pairs)


def even_rows(count: int, most: int, *, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return `most` of `count` row numbers in ascending order: a random one of each stretch."""
    # The bits of PCG64 are the same in all versions of NumPy.
    shares = np.random.PCG64(seed).random_raw(most) / 2.0**64
    bounds = np.arange(most + 1) * count // most
    places = bounds[:-1] + np.floor(shares * np.diff(bounds)).astype(np.int64)
    rows: NDArray[np.int64] = np.minimum(places, bounds[1:] - 1)
    return rows


def drawn_evenly(pairs: Sequence[SentencePair], most: int, *, seed: int) -> Sequence[SentencePair]:
    """Return the pairs, or so many of them if there are more: one of each stretch, by the seed."""
    if len(pairs) <= most:
        return pairs
    rows = even_rows(len(pairs), most, seed=[seed, len(pairs)])
    if isinstance(pairs, StoredSequence):
        return pairs.take(rows)
    return [pairs[row] for row in rows.tolist()]


LOOKED_AT = 50_000
FEWEST_PAIRS = 50
LOWEST_CORRELATION = 0.3
MOST_IDENTICAL = 0.1
WORDS_PER_ENTRY = 10


def corpus_warnings(train: Sequence[SentencePair], valid: Sequence[SentencePair] = ()) -> list[str]:
    """Return a sentence about each problem that these pairs seem to have."""
    found = [_unrelated(train), _identical(train), _swapped(train, valid)]
    return [sentence for sentence in found if sentence]


def vocabulary_warning(
    pairs: Sequence[SentencePair], *, size: int, shared: bool, share: float = 1.0
) -> str:
    """Return a sentence if a vocabulary is too large for a corpus, else an empty string.

    `pairs` are this share of it.
    """
    sides = [sum(len(p.source.split()) for p in pairs), sum(len(p.target.split()) for p in pairs)]
    words = round((sum(sides) if shared else min(sides)) / share)
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
