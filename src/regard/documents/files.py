"""Output files that grow under hidden names, with a journal by which an interrupted work goes on.

`.out.txt.part` holds what is done and `.out.txt.part.json` how far that is. The journal is written
after the lines that it speaks of are on the disk, under a temporary name that then takes its place,
so at any moment, also of a crash, it is true. What the part has beyond it is cut off on return.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeAlias, runtime_checkable

from regard.base.errors import RunError
from regard.base.files import write_json
from regard.corpora.formats.document import Document, Segment
from regard.corpora.lines import Line, LinePosition, LineStream
from regard.documents import segments as segmenting
from regard.runs.display import Watcher

VERSION = 1


class PartFiles:
    """The outputs of one work; `terms` is all that the result depends on, apart from the input."""

    def __init__(self, paths: Sequence[Path], *, terms: Mapping[str, Any]):
        self._paths = list(paths)
        self._terms = json.loads(json.dumps(terms))
        self._files: list[BinaryIO] = []

    def __enter__(self) -> PartFiles:
        try:
            for part in self.parts:
                self._files.append(part.open("r+b" if part.exists() else "w+b"))
                self._lock(part)
        except OSError as error:
            self._close()
            raise RunError(f"Cannot write {error.filename}: {error.strerror}.") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.begun:  # there is nothing to go on from
            for part in self.parts:
                part.unlink(missing_ok=True)
        self._close()

    @property
    def parts(self) -> list[Path]:
        """The unfinished files."""
        return [path.with_name(f".{path.name}.part") for path in self._paths]

    @property
    def journal(self) -> Path:
        """The file that says how far the work is."""
        part = self.parts[0]
        return part.with_name(f"{part.name}.json")

    def resume(self) -> LinePosition | None:
        """Return how far an earlier work with the same terms came; None if there is none."""
        record = self._record()
        if record is None or record["terms"] != self._terms:
            return None
        for file, size in zip(self._files, record["sizes"], strict=True):
            if file.seek(0, os.SEEK_END) < size:
                return None
            file.truncate(size)
            file.seek(size)
        return LinePosition(**record["position"])

    @property
    def begun(self) -> bool:
        """Whether an earlier work has left something."""
        return self.journal.exists()

    def restart(self) -> None:
        """Forget what an earlier work has done."""
        self.journal.unlink(missing_ok=True)
        for file in self._files:
            file.seek(0)
            file.truncate()

    def write(self, texts: Sequence[str]) -> None:
        """Write a text to each output."""
        for file, text in zip(self._files, texts, strict=True):
            file.write(text.encode("utf-8"))

    def commit(self, position: LinePosition) -> None:
        """Put on record that everything up to this position of the input is done."""
        for file in self._files:
            file.flush()
            os.fsync(file.fileno())
        record = {
            "version": VERSION,
            "terms": self._terms,
            "position": asdict(position),
            "sizes": [file.tell() for file in self._files],
        }
        write_json(self.journal, record)

    def finish(self) -> None:
        """Give the outputs their names; they are complete."""
        for file, part, path in zip(self._files, self.parts, self._paths, strict=True):
            file.flush()
            os.fsync(file.fileno())
            part.replace(path)
        self.journal.unlink(missing_ok=True)

    def _record(self) -> dict[str, Any] | None:
        try:
            record = json.loads(self.journal.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        known = isinstance(record, dict) and record.get("version") == VERSION
        return record if known and len(record["sizes"]) == len(self._paths) else None

    def _lock(self, part: Path) -> None:
        """Keep a second process from writing into the same part."""
        try:
            import fcntl
        except ImportError:  # not on Windows
            return
        try:
            fcntl.flock(self._files[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            raise RunError(
                f"Another process is writing {part}: wait for it, or choose another output."
            ) from None

    def _close(self) -> None:
        for file in self._files:
            file.close()
        self._files = []


WINDOW = 2_000
PARAGRAPHS = segmenting.Splitting()

LineReader: TypeAlias = Callable[[str, int], Document]


@runtime_checkable
class Sink(Protocol):
    """Where the outputs go, window by window."""

    def write(self, texts: Sequence[str]) -> None:
        """Take the lines of a window, one text for each output."""
        ...

    def commit(self, position: LinePosition) -> None:
        """Hear that everything up to this position of the input has been written."""
        ...


@runtime_checkable
class WindowTranslator(Protocol):
    """Turns a window of lines into the texts of each output."""

    def __call__(self, lines: Sequence[Line], *, done: Callable[[float], None]) -> list[str]:
        """Return a text for each output; `done` hears which share of the lines is ready."""
        ...


def plain_line(line: str, number: int) -> Document:
    """Return a line of plain text: all of it is translated, and outer white space is dropped."""
    return Document((Segment(line.strip(), line=number),))


@dataclass(frozen=True)
class WholeLines:
    """Translates each line as one sentence; each output has its own view of the result."""

    sentences: segmenting.SentenceCache[tuple[str, ...]]
    path: Path
    outputs: int = 1

    def __call__(self, lines: Sequence[Line], *, done: Callable[[float], None]) -> list[str]:
        """Return the texts of the outputs."""
        try:
            found = self.sentences([line.text for line in lines], done=done)
        except segmenting.SENTENCE_ERRORS as error:
            number = lines[error.index].number
            raise segmenting.located(error, path=self.path, line=number, what="the line") from error
        return ["".join(f"{views[i]}\n" for views in found) for i in range(self.outputs)]


@dataclass(frozen=True)
class SplitLines:
    """Translates the part of each line that its reader names, long ones sentence by sentence."""

    sentences: segmenting.SentenceCache[segmenting.LinkedText]
    path: Path
    read: LineReader = plain_line
    splitting: segmenting.Splitting = PARAGRAPHS
    keep_ends: bool = False

    def __call__(self, lines: Sequence[Line], *, done: Callable[[float], None]) -> list[str]:
        """Return the one output."""
        documents = [self.read(line.text, line.number) for line in lines]
        segments = [segment for document in documents for segment in document.segments]
        try:
            written = iter(
                segmenting.translate_segments(segments, self.sentences, self.splitting, done=done)
            )
        except segmenting.SENTENCE_ERRORS as error:
            number = segments[error.index].line
            raise segmenting.located(error, path=self.path, line=number, what="the line") from error
        texts = []
        for line, document in zip(lines, documents, strict=True):
            text = document.filled([next(written) for _ in document.segments])
            texts.append(text + (line.end if self.keep_ends else "\n"))
        return ["".join(texts)]


def translate_stream(
    stream: LineStream,
    sink: Sink,
    translate: WindowTranslator,
    *,
    window: int = WINDOW,
    watcher: Watcher | None = None,
) -> int:
    """Translate all lines that are left and return how many lines the input has."""
    while True:
        start = Mark(stream.position.lines, stream.share)
        lines = stream.window(window)
        if not lines:
            return start.lines
        end = Mark(stream.position.lines, stream.share)
        sink.write(translate(lines, done=_reporter(watcher, start, end)))
        sink.commit(stream.position)


def translate_file(
    stream: LineStream,
    parts: PartFiles,
    translate: WindowTranslator,
    *,
    window: int = WINDOW,
    watcher: Watcher | None = None,
    notice: Callable[[str], None] = lambda sentence: None,
) -> int:
    """Translate a file into others, going on where an earlier work with the same terms stopped."""
    position = parts.resume() if stream.rereadable else None
    if position is not None:
        # The first line may name columns, which the reader of lines has to know.
        translate(stream.window(1), done=lambda share: None)
        if not stream.skip(position):
            position = None
            stream.rewind()
    if position is not None:
        notice(f"Going on after line {position.lines:,}, where an earlier run stopped.")
    else:
        if parts.begun and stream.rereadable:
            notice("The input, the model or the options have changed: beginning anew.")
        parts.restart()
    count = translate_stream(stream, parts, translate, window=window, watcher=watcher)
    parts.finish()
    return count


class Mark(NamedTuple):
    """A place in the input: lines before it, and the share of the whole if that is known."""

    lines: int
    share: float | None


def _reporter(watcher: Watcher | None, start: Mark, end: Mark) -> Callable[[float], None]:
    """Return what tells a watcher which share of a window is done."""

    def done(part: float) -> None:
        if watcher is not None:
            share = None
            if start.share is not None and end.share is not None:
                share = start.share + part * (end.share - start.share)
            watcher.moved(start.lines + int(part * (end.lines - start.lines)), share)

    return done


Write = Callable[[str], None]


class StandardOutput:
    """Prints translations as they come; alignments go into a file that grows with them."""

    def __init__(self, write: Write, others: Sequence[Path]):
        self._write = write
        self._files = PartFiles(others, terms={}) if others else None

    def __enter__(self) -> StandardOutput:
        if self._files is not None:
            self._files.__enter__()
            self._files.restart()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._files is not None:
            if kind is None:
                self._files.finish()
            self._files.__exit__(kind, error, traceback)

    def write(self, texts: Sequence[str]) -> None:
        """Print the first text, and write the others."""
        self._write(texts[0])
        if self._files is not None:
            self._files.write(texts[1:])

    def commit(self, position: LinePosition) -> None:
        """Do nothing: what was printed cannot be taken back."""
