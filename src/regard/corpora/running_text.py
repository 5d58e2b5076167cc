"""Plain text as a stream of chunks, so that memory does not grow with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import DataError
from regard.corpora.lines import stream_lines

CHUNK = 1 << 20  # characters
EXPECTED = "plain text"


@dataclass(frozen=True)
class TextMeasure:
    """How long a text is, and a digest that tells it from another."""

    characters: int
    digest: str


def text_chunks(paths: Sequence[Path], *, size: int = CHUNK) -> Iterator[str]:
    """Yield the text of these files, one after the other, in chunks of whole lines.

    Every line ends in a newline, also the last. A chunk ends where the next line begins with a
    character that is not white, if one comes soon: no tokenizer joins what stands around there, so
    the chunks give the same symbols as the whole.
    """
    lines: list[str] = []
    length = 0
    for path in paths:
        empty = True
        for line in stream_lines(path, expected=EXPECTED):
            empty = False
            if length >= size and (line[:1].strip() or length >= 2 * size):
                yield "".join(lines)
                lines, length = [], 0
            lines.append(line + "\n")
            length += len(line) + 1
        if empty:
            raise DataError("the file is empty", path=path, remedy=f"It should hold {EXPECTED}.")
    yield "".join(lines)


def measure(chunks: Iterable[str]) -> TextMeasure:
    """Return the length and the digest of a text."""
    digest = hashlib.blake2b(digest_size=16)
    characters = 0
    for chunk in chunks:
        characters += len(chunk)
        digest.update(chunk.encode())
    return TextMeasure(characters, digest.hexdigest())


def between(chunks: Iterable[str], first: int, last: int) -> Iterator[str]:
    """Yield what stands between two places of a text, counted in characters."""
    place = 0
    for chunk in chunks:
        part = chunk[max(0, first - place) : max(0, last - place)]
        place += len(chunk)
        if part:
            yield part


def thinned(chunks: Iterable[str], *, total: int, wanted: int) -> Iterator[str]:
    """Yield the beginning of every chunk, so that of `total` characters about `wanted` remain."""
    for chunk in chunks:
        kept = max(1, len(chunk) * wanted // max(1, total)) if wanted < total else len(chunk)
        yield chunk[:kept]
