"""Files of any size, line by line: windows of lines are sorted, translated and written in order.

Memory depends on the window, not on the file. What is done is on record after every window, so
that the same command goes on where it was stopped, and ends with the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from regard.corpora.formats.document import Document, Segment
from regard.corpora.lines import Line, LineStream, Position
from regard.recipes.part_files import PartFiles
from regard.recipes.segments import LinkedText, Splitting, translate_segments
from regard.recipes.sentence_cache import SENTENCE_ERRORS, SentenceCache, located

WINDOW = 2_000
PARAGRAPHS = Splitting()

LineReader: TypeAlias = Callable[[str, int], Document]


@runtime_checkable
class Sink(Protocol):
    """Where the outputs go, window by window."""

    def write(self, texts: Sequence[str]) -> None:
        """Take the lines of a window, one text for each output."""
        ...

    def commit(self, position: Position) -> None:
        """Hear that everything up to this position of the input has been written."""
        ...


@runtime_checkable
class Watcher(Protocol):
    """Somebody who wants to see how far the work is."""

    def moved(self, lines: int, share: float | None) -> None:
        """Hear how many lines are done, and what share of the input if that is known."""
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

    sentences: SentenceCache[tuple[str, ...]]
    path: Path
    outputs: int = 1

    def __call__(self, lines: Sequence[Line], *, done: Callable[[float], None]) -> list[str]:
        """Return the texts of the outputs."""
        try:
            found = self.sentences([line.text for line in lines], done=done)
        except SENTENCE_ERRORS as error:
            number = lines[error.index].number
            raise located(error, path=self.path, line=number, what="the line") from error
        return ["".join(f"{views[i]}\n" for views in found) for i in range(self.outputs)]


@dataclass(frozen=True)
class SplitLines:
    """Translates the part of each line that its reader names, long ones sentence by sentence."""

    sentences: SentenceCache[LinkedText]
    path: Path
    read: LineReader = plain_line
    splitting: Splitting = PARAGRAPHS
    keep_ends: bool = False

    def __call__(self, lines: Sequence[Line], *, done: Callable[[float], None]) -> list[str]:
        """Return the one output."""
        documents = [self.read(line.text, line.number) for line in lines]
        segments = [segment for document in documents for segment in document.segments]
        try:
            written = iter(translate_segments(segments, self.sentences, self.splitting, done=done))
        except SENTENCE_ERRORS as error:
            number = segments[error.index].line
            raise located(error, path=self.path, line=number, what="the line") from error
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
