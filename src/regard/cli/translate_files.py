"""Files and standard input through a model: lines in windows, documents as a whole."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import Console

from regard.base.errors import SettingsError
from regard.base.files import write_file
from regard.cli.display import BulkDisplay
from regard.cli.translate_model import ReadyModel, alignment, shown, translate_text
from regard.cli.translate_options import Split
from regard.corpora.formats.document import ColumnReader, Languages
from regard.corpora.formats.json_lines import FieldReader
from regard.corpora.formats.registry import LINE_FORMATS, format_of, read_document
from regard.corpora.lines import (
    SENTENCES,
    LineStream,
    Position,
    decode_lines,
    open_stream,
    open_text,
    read_lines,
    reading,
)
from regard.documents.files import (
    WINDOW,
    LineReader,
    PartFiles,
    SplitLines,
    WholeLines,
    WindowTranslator,
    plain_line,
    translate_file,
    translate_stream,
)
from regard.documents.segments import (
    LONG_LINE,
    SENTENCE_ERRORS,
    SentenceCache,
    Splitting,
    linked,
    located,
    needs_alignment,
    translate_document,
)
from regard.tasks.translation.results import Translation

STANDARD_INPUT = Path("standard input")


@dataclass(frozen=True)
class FileOptions:
    """What is read, what is written, and how texts are found in it."""

    source: Path | None
    output: Path | None
    align: Path | None
    json: bool
    format_name: str | None
    column: str | None
    field: str | None
    split: Split | None
    languages: Languages
    window: int | None

    @property
    def path(self) -> Path:
        """What errors call the input."""
        return self.source or STANDARD_INPUT

    @property
    def kind(self) -> str:
        """The format of the input."""
        named = self.format_name
        if named is None and self.column is not None:
            named = "tsv"
        elif named is None and self.field is not None:
            named = "jsonl"
        return format_of(self.source, named=named)

    def splitting(self) -> Splitting:
        """Return when texts are split; documents always are, lines only if they are long."""
        split = self.split or (Split.long if self.kind in LINE_FORMATS else Split.always)
        beyond = {Split.never: None, Split.long: LONG_LINE, Split.always: 0}[split]
        return Splitting(beyond, self.languages.source)


def translate_input(model: ReadyModel, options: FileOptions) -> None:
    """Translate a file or standard input, as its format asks for."""
    whole = options.json or options.align is not None or model.n_best > 1
    if whole and options.kind != "lines":
        raise SettingsError(
            f"--json, --align and --n-best go with lines of text, not with {options.kind}; "
            "--format lines reads any file as such."
        )
    if options.json:
        _translate_json(model, options)
    elif options.kind in LINE_FORMATS:
        _translate_lines(model, options)
    else:
        _translate_document(model, options)


def _translate_json(model: ReadyModel, options: FileOptions) -> None:
    """Translate all lines at once: a JSON list is one value."""
    if options.source is not None:
        lines = read_lines(options.source)
    else:
        lines = decode_lines(sys.stdin.buffer.read(), path=STANDARD_INPUT)
    try:
        translate_text(model, lines, output=options.output, align=options.align, json=True)
    except SENTENCE_ERRORS as error:
        line = error.index + 1
        raise located(error, path=options.path, line=line, what="the line") from error


def _translate_lines(model: ReadyModel, options: FileOptions) -> None:
    console = Console(stderr=True)
    translate = _window_translator(model, options)
    window = options.window or WINDOW
    with ExitStack() as stack:
        if options.source is not None:
            stream = stack.enter_context(open_stream(options.source))
        else:
            stream = LineStream(cast(io.BufferedIOBase, sys.stdin.buffer), path=STANDARD_INPUT)
        outputs = [path for path in (options.output, options.align) if path is not None]
        if options.output is None:
            if options.align is not None:
                outputs = [options.align]
            sink = stack.enter_context(StandardOutput(outputs))
            translate_stream(stream, sink, translate, window=window)
            return
        parts = stack.enter_context(PartFiles(outputs, terms=_terms(model, options)))
        display = stack.enter_context(BulkDisplay(console))
        try:
            translate_file(
                stream,
                parts,
                translate,
                window=window,
                watcher=display,
                notice=lambda sentence: typer.echo(sentence, err=True),
            )
        except KeyboardInterrupt:
            if parts.begun and stream.rereadable:
                typer.echo(
                    f"What is done is kept in {parts.parts[0]}: the same command goes on from "
                    "there.",
                    err=True,
                )
            raise


class StandardOutput:
    """Prints translations as they come; alignments go into a file that grows beside them."""

    def __init__(self, others: Sequence[Path]):
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
        typer.echo(texts[0], nl=False)
        sys.stdout.flush()
        if self._files is not None:
            self._files.write(texts[1:])

    def commit(self, position: Position) -> None:
        """Do nothing: what was printed cannot be taken back."""


def _window_translator(model: ReadyModel, options: FileOptions) -> WindowTranslator:
    """Return what turns lines into outputs; views of whole sentences exclude splitting them."""
    if options.align is not None or model.n_best > 1:

        def views(translation: Translation) -> tuple[str, ...]:
            links = (alignment(translation),) if options.align is not None else ()
            return (shown(translation, model.n_best), *links)

        return WholeLines(
            SentenceCache(model.stream(attention=options.align is not None), views),
            options.path,
            outputs=1 + (options.align is not None),
        )
    read, keep_ends = _line_reader(options)
    return SplitLines(
        SentenceCache(model.stream(attention=False), linked),
        options.path,
        read=read,
        splitting=options.splitting(),
        keep_ends=keep_ends,
    )


def _line_reader(options: FileOptions) -> tuple[LineReader, bool]:
    """Return what finds the text in a line, and whether line ends are kept."""
    if options.kind == "tsv":
        return ColumnReader(options.column or "1", path=options.path), True
    if options.kind == "jsonl":
        if options.field is None:
            raise SettingsError("JSON lines have many fields: name one with --field, as text.")
        return FieldReader(options.field, path=options.path), True
    return plain_line, False


def _terms(model: ReadyModel, options: FileOptions) -> dict[str, Any]:
    """Return all that the output depends on, beside the input."""
    splitting = options.splitting()
    reading_as = {
        "format": options.kind,
        "column": options.column,
        "field": options.field,
        "split": splitting.beyond,
        "language": splitting.language,
        "align": options.align is not None,
    }
    return {**model.terms(), "reading": reading_as}


def _translate_document(model: ReadyModel, options: FileOptions) -> None:
    if options.source is not None:
        with reading(options.source, expected=SENTENCES), open_text(options.source) as file:
            content = file.read()
    else:
        content = sys.stdin.buffer.read()
    document = read_document(
        content, path=options.path, kind=options.kind, languages=options.languages
    )
    with BulkDisplay(Console(stderr=True)) as display:
        segments = len(document.segments)
        written = translate_document(
            document,
            model.stream(attention=needs_alignment(document, model.translator)),
            path=options.path,
            splitting=options.splitting(),
            done=lambda share: display.moved(int(share * segments), share),
        )
    if options.output is not None:
        write_file(options.output, written)
    else:
        typer.echo(written, nl=False)
