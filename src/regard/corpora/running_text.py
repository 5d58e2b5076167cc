"""Running text: chunks of text files, and a memory-mapped file of token ids."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Int

from regard.base.errors import DataError, RunError
from regard.base.files import Fingerprint, read_json, states_of, whole_file, write_json
from regard.corpora import blocks
from regard.corpora.lines import stream_lines
from regard.corpora.sources import kind_of
from regard.corpora.tables import RECORDS, TEXT, read_rows

CHUNK = 1 << 20  # characters
EXPECTED = "plain text"
REMEDY = "delete the folder it is in, and the text is read again"


@dataclass(frozen=True)
class TextMeasure:
    """The length and the digest of a text."""

    characters: int
    digest: str


def text_chunks(
    paths: Sequence[Path], *, columns: Sequence[str] = (), size: int = CHUNK
) -> Iterator[str]:
    """Yield the text of these files, one after the other, in chunks of whole lines.

    Of JSON lines, Parquet and Arrow files it is a column; of other tables only with `columns`.
    """

    def lines() -> Iterator[str]:
        for path in paths:
            empty = True
            for line in _text_lines(path, columns):
                empty = False
                yield line
            if empty:
                raise DataError(
                    "the file is empty", path=path, remedy=f"It should hold {EXPECTED}."
                )

    return line_chunks(lines(), size=size)


def _text_lines(path: Path, columns: Sequence[str]) -> Iterator[str]:
    kind = kind_of(path)
    if kind not in RECORDS and not columns:
        yield from stream_lines(path, expected=EXPECTED)
        return
    for _, (text,) in read_rows(path, TEXT.named(columns=columns, path=path)):
        if isinstance(text, str) and text:
            yield from text.removesuffix("\n").split("\n")


def line_chunks(lines: Iterable[str], *, size: int = CHUNK) -> Iterator[str]:
    """Yield lines, given without their ends, in chunks.

    Every line ends in a newline, also the last. If possible, the line after a chunk begins with a
    character that is not white space: no tokenizer merges across such a place, so the chunks give
    the same tokens as the whole text.
    """
    chunk: list[str] = []
    length = 0
    for line in lines:
        if length >= size and (line[:1].strip() or length >= 2 * size):
            yield "".join(chunk)
            chunk, length = [], 0
        chunk.append(line + "\n")
        length += len(line) + 1
    yield "".join(chunk)


def measure(chunks: Iterable[str]) -> TextMeasure:
    """Return the length and the digest of a text."""
    digest = Fingerprint()
    characters = 0
    for chunk in chunks:
        characters += len(chunk)
        digest.add(chunk)
    return TextMeasure(characters, digest.value)


def measured(
    chunks: Callable[[], Iterable[str]], files: Sequence[Path], record: Path | None
) -> TextMeasure:
    """Return the measure of a text; a file remembers it for as long as the text's files stay."""
    if record is None:
        return measure(chunks())
    states = states_of(files)
    if states and record.is_file():
        with suppress(RunError, KeyError, TypeError, AttributeError):
            known = read_json(record, owner="text")
            if known["files"] == states:
                return TextMeasure(**known["measure"])
    found = measure(chunks())
    if states:
        record.parent.mkdir(parents=True, exist_ok=True)
        write_json(record, {"files": states, "measure": asdict(found)}, indent=None)
    return found


def between(chunks: Iterable[str], first: int, last: int) -> Iterator[str]:
    """Yield the text between two positions, counted in characters."""
    place = 0
    for chunk in chunks:
        part = chunk[max(0, first - place) : max(0, last - place)]
        place += len(chunk)
        if part:
            yield part


def thinned(chunks: Iterable[str], *, total: int, wanted: int) -> Iterator[str]:
    """Yield the beginning of every chunk, about `wanted` of `total` characters altogether."""
    for chunk in chunks:
        kept = max(1, len(chunk) * wanted // max(1, total)) if wanted < total else len(chunk)
        yield chunk[:kept]


@dataclass(frozen=True)
class TokenFile:
    """Token ids in `path`, as little-endian numbers of two or four bytes; see `path`.json."""

    path: Path
    tokens: int
    characters: int
    bytes: int
    width: int
    """Bytes per id."""
    digest: str
    """The digest of the text."""
    vocab: int = 0
    """The entries of the vocabulary, beyond which no id may be; 0: it is not known."""

    def __len__(self) -> int:
        return self.tokens

    def rows(
        self, starts: Int[np.ndarray, "rows"], *, length: int
    ) -> Int[np.ndarray, "rows {length}"]:
        """Return the ids of windows of one length.

        The file is mapped anew each time; otherwise all pages ever read would stay in memory.
        """
        size = (self.tokens,)
        try:
            mapped = np.memmap(self.path, dtype=_type_of(self.width), mode="r", shape=size)
        except (OSError, ValueError):
            raise RunError(f"{self.path} was cut short while it was read: {REMEDY}.") from None
        rows = np.stack([mapped[start : start + length] for start in starts]).astype(np.int64)
        if self.vocab and rows.size and int(rows.max()) >= self.vocab:
            raise RunError(
                f"{self.path} has the token {int(rows.max())}, but the vocabulary ends at "
                f"{self.vocab - 1}: {REMEDY}."
            )
        return rows


def write_tokens(
    path: Path,
    texts: Iterable[str],
    *,
    encode: Callable[[str], Sequence[int]],
    vocab: int,
    digest: str,
    watch: Callable[[int], None] = lambda characters: None,
) -> TokenFile:
    """Write the ids of a text given in parts, several of which are cut into tokens at once.

    The description is written last.
    """
    width = 2 if vocab <= 1 << 16 else 4
    tokens = characters = size = 0
    path.parent.mkdir(parents=True, exist_ok=True)

    def ids_of(part: list[str]) -> bytes:
        return b"".join(np.array(encode(text), dtype=_type_of(width)).tobytes() for text in part)

    with whole_file(path) as file:
        for (text,), ids in blocks.mapped(ids_of, ([text] for text in texts)):
            file.write(ids)
            tokens += len(ids) // width
            characters += len(text)
            size += len(text.encode())
            watch(characters)
    found = TokenFile(path, tokens, characters, size, width, digest, vocab)
    record = {name: value for name, value in asdict(found).items() if name != "path"}
    write_json(_record_of(path), record, indent=None)
    return found


def has_tokens(path: Path) -> bool:
    """Return whether a token file is complete."""
    return _record_of(path).is_file()


def open_tokens(path: Path, *, vocab: int = 0) -> TokenFile:
    """Return the token file that `write_tokens` wrote, of a vocabulary of so many entries."""
    try:
        found = TokenFile(path, **json.loads(_record_of(path).read_text(encoding="utf-8")))
        size = path.stat().st_size
    except (OSError, ValueError, TypeError):
        raise RunError(f"{path} or its description is missing or damaged: {REMEDY}.") from None
    if size != found.tokens * found.width:
        raise RunError(
            f"{path} has {size} bytes instead of {found.tokens * found.width}: {REMEDY}."
        )
    return replace(found, vocab=vocab or found.vocab)


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _type_of(width: int) -> np.dtype[np.unsignedinteger]:
    return np.dtype(f"<u{width}")
