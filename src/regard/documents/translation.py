"""A run prepared to translate: short texts, lines of any number, documents of any format."""

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

from regard.base.errors import RegardError, SettingsError
from regard.base.files import write_file
from regard.corpora import lines
from regard.corpora.formats.document import ColumnReader, Languages
from regard.corpora.formats.json_lines import FieldReader
from regard.corpora.formats.registry import LINE_FORMATS, PACKAGES, format_of, read_document
from regard.documents import files, segments
from regard.documents.files import StandardOutput, Write
from regard.documents.segments import alignment_line, shown_lines
from regard.engines.choice import EngineName, PlannedSearch, choose_engine
from regard.exchange.ctranslate2 import Quantization
from regard.runs.display import Display, SilentDisplay, display_of
from regard.tasks.translation.constraints import TranslationConstraints
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.results import Translation
from regard.text.tokenizers import UnknownCount

STANDARD_INPUT = Path("standard input")
NO_LANGUAGES = Languages()
SplitMode = Literal["never", "long", "always"]
SHORT_FILE = 8_000  # bytes: a hundred sentences, as quick to translate as engines to measure


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How translations are searched for, and by what."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings of decoding that differ from the recipe's, as `{"beam": 8}`."""
    n_best: int = 1
    constraints: TranslationConstraints | None = None
    """What must and must not stand in translations, and terms with their translations."""
    engine: EngineName = "auto"
    quantization: Quantization | None = None
    threads: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """What is read, what is written, and how texts are found in it."""

    source: Path | None = None
    """None stands for standard input."""
    output: Path | None = None
    """None stands for standard output."""
    align: Path | None = None
    json: bool = False
    format_name: str | None = None
    column: str | None = None
    field: str | None = None
    split: SplitMode | None = None
    languages: Languages = NO_LANGUAGES
    window: int | None = None
    fuzzy: bool = True
    """Whether new translations of a PO file are marked for a person to check."""

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

    @property
    def short(self) -> bool:
        """Whether the input is a file that is translated sooner than engines are measured."""
        source = self.source
        return source is not None and source.is_file() and source.stat().st_size <= SHORT_FILE

    def splitting(self) -> segments.Splitting:
        """Return when texts are split; documents always are, lines only if they are long."""
        split = self.split or ("long" if self.kind in LINE_FORMATS else "always")
        beyond = {"never": None, "long": segments.LONG_LINE, "always": 0}[split]
        return segments.Splitting(beyond, self.languages.source)

    def check(self) -> None:
        """Refuse outputs that cannot be written, before any time is spent."""
        if self.output is None and self.kind in PACKAGES:
            raise SettingsError(f"A {self.kind} file is not printed: give --output FILE.")
        for path in (self.output, self.align):
            if path is None:
                continue
            if not path.parent.is_dir():
                raise SettingsError(f"Cannot write {path}: there is no folder {path.parent}.")
            if path.is_dir():
                raise SettingsError(f"Cannot write {path}: it is a folder.")
            source = self.source
            if source is not None and source.exists() and path.exists() and path.samefile(source):
                raise SettingsError(f"Cannot write {path}: it is the input. Choose another name.")


@dataclass(frozen=True)
class PreparedTranslator:
    """A loaded run with its engine and the options of its search."""

    run: Path
    translator: LoadedTranslator
    options: SearchOptions
    unknown: UnknownCount
    """What the vocabulary did not know of the sentences so far."""

    @property
    def n_best(self) -> int:
        """How many translations each sentence gets."""
        return self.options.n_best

    def stream(self, *, attention: bool, scores: bool = False) -> segments.Translate:
        """Return the function that translates sentences."""
        asked = self.options.constraints

        def translate(texts: Sequence[str]) -> Iterator[tuple[int, Translation]]:
            for found in self.translator.stream(
                texts,
                n_best=self.n_best,
                attention=attention,
                scores=scores or self.n_best > 1,
                constraints=[asked.for_sentence(text) for text in texts] if asked else None,
                **self.options.changes,
            ):
                self.unknown.add(found[1].unknown)
                yield found

        return translate

    def texts(self, given: Sequence[str], *, attention: bool, scores: bool) -> list[Translation]:
        """Translate texts that fit into memory."""
        results = dict(self.stream(attention=attention, scores=scores)(given))
        return [results[index] for index in range(len(given))]

    def terms(self) -> dict[str, Any]:
        """Return all that a translation depends on, apart from its source."""
        search = {
            **self.options.changes,
            "n_best": self.n_best,
            "quantization": self.options.quantization,
        }
        return {
            "version": version("regard"),
            "model": segments.run_fingerprint(self.run),
            "search": search,
            "constraints": asked.to_dict() if (asked := self.options.constraints) else None,
        }


def prepare_translator(
    run: Path,
    options: SearchOptions,
    *,
    measure: bool = True,
    report: Write | None = None,
) -> PreparedTranslator:
    """Load a run and choose its engine; without `measure`, say for a short text, by rule alone."""
    model = load(run)
    changes = dict(options.changes)
    if options.n_best > 1:
        width = changes.get("beam") or model.recipe.decoding.beam
        changes["beam"] = max(width, options.n_best)
    settings = model.decoding(n_best=options.n_best, **changes)
    model.engine = choose_engine(
        model,
        PlannedSearch(settings, constrained=bool(options.constraints), short=not measure),
        folder=run,
        engine=options.engine,
        threads=options.threads,
        quantization=options.quantization,
        report=report,
    )
    return PreparedTranslator(run, model, replace(options, changes=changes), model.unknown_count())


def translate_input(
    model: PreparedTranslator,
    options: FileOptions,
    *,
    write: Write,
    display: Display | None = None,
) -> None:
    """Translate a file or standard input, as its format asks for.

    `write` gets what goes to standard output.
    """
    require_alignable(model, options)
    display = SilentDisplay() if display is None else display
    whole = options.json or options.align is not None or model.n_best > 1
    if whole and options.kind != "lines":
        raise SettingsError(
            f"--json, --align and --n-best go with lines of text, not with {options.kind}; "
            "--format lines reads any file as such."
        )
    if options.json:
        _translate_json(model, options, write)
    elif options.kind in LINE_FORMATS:
        _translate_lines(model, options, write, display)
    else:
        _translate_document(model, options, write, display)
    if model.unknown.parts:
        display.note(str(model.unknown))


def translate_text(
    model: PreparedTranslator, given: Sequence[str], options: FileOptions, *, write: Write
) -> None:
    """Translate lines that fit into memory, and write them.

    A line is translated sentence by sentence, for a model that has seen single sentences drops
    those after the first. Where sentences are shown one by one, or where something is demanded of
    them, a line is one sentence.
    """
    require_alignable(model, options)
    if options.align is None and not options.json and model.n_best == 1:
        splitting = options.splitting()
        if options.split is None and not model.options.constraints:
            splitting = segments.Splitting(0, splitting.language)
        found = segments.translate_lines(given, model.stream(attention=False), splitting)
        _put("".join(f"{line}\n" for line in found), options, write)
        return
    each = model.texts(
        given, attention=options.align is not None or options.json, scores=options.json
    )
    if options.align is not None:
        write_file(options.align, "".join(f"{alignment_line(one)}\n" for one in each))
    if options.json:
        records = [one.to_dict() for one in each]
        written = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    else:
        written = "".join(f"{shown_lines(one, model.n_best)}\n" for one in each)
    _put(written, options, write)


def _put(written: str | bytes, options: FileOptions, write: Write) -> None:
    """Write what was translated to the output file, or a text to standard output."""
    if options.output is not None:
        write_file(options.output, written)
    elif isinstance(written, str):
        write(written)


def require_alignable(model: PreparedTranslator, options: FileOptions) -> None:
    """Refuse alignments of a model that has no attention."""
    if options.align is not None and not model.translator.attends:
        raise RegardError(f"The model of {model.run} has no attention to align by.")


def _translate_json(model: PreparedTranslator, options: FileOptions, write: Write) -> None:
    """Translate all lines at once: a JSON list is one value."""
    if options.source is not None:
        given = lines.read_lines(options.source)
    else:
        given = lines.decode_lines(sys.stdin.buffer.read(), path=STANDARD_INPUT)
    try:
        translate_text(model, given, options, write=write)
    except segments.SENTENCE_ERRORS as error:
        line = error.index + 1
        raise segments.located(error, path=options.path, line=line, what="the line") from error


def _translate_lines(
    model: PreparedTranslator, options: FileOptions, write: Write, display: Display
) -> None:
    translate = _window_translator(model, options)
    window = options.window or files.WINDOW
    with ExitStack() as stack:
        if options.source is not None:
            stream = stack.enter_context(lines.open_stream(options.source))
        else:
            standard_input = cast(io.BufferedIOBase, sys.stdin.buffer)
            stream = lines.LineStream(standard_input, path=STANDARD_INPUT)
        if options.output is None:
            others = [] if options.align is None else [options.align]
            sink = stack.enter_context(StandardOutput(write, others))
            files.translate_stream(stream, sink, translate, window=window)
            return
        outputs = [path for path in (options.output, options.align) if path is not None]
        parts = stack.enter_context(files.PartFiles(outputs, terms=_terms(model, options)))
        watcher = stack.enter_context(display.translating())
        try:
            files.translate_file(
                stream, parts, translate, window=window, watcher=watcher, notice=display.note
            )
        except KeyboardInterrupt:
            if parts.begun and stream.rereadable:
                display.note(
                    f"What is done is kept in {parts.parts[0]}: the same command goes on from "
                    "there."
                )
            raise


def _window_translator(model: PreparedTranslator, options: FileOptions) -> files.WindowTranslator:
    """Return what turns lines into outputs; views of whole sentences exclude splitting them."""
    if options.align is not None or model.n_best > 1:

        def views(translation: Translation) -> tuple[str, ...]:
            links = (alignment_line(translation),) if options.align is not None else ()
            return (shown_lines(translation, model.n_best), *links)

        return files.WholeLines(
            segments.SentenceCache(model.stream(attention=options.align is not None), views),
            options.path,
            outputs=1 + (options.align is not None),
        )
    read, keep_ends = _line_reader(options)
    return files.SplitLines(
        segments.SentenceCache(model.stream(attention=False), segments.linked),
        options.path,
        read=read,
        splitting=options.splitting(),
        keep_ends=keep_ends,
    )


def _line_reader(options: FileOptions) -> tuple[files.LineReader, bool]:
    """Return what finds the text in a line, and whether line ends are kept."""
    if options.kind == "tsv":
        return ColumnReader(options.column or "1", path=options.path), True
    if options.kind == "jsonl":
        if options.field is None:
            raise SettingsError("JSON lines have many fields: name one with --field, as text.")
        return FieldReader(options.field, path=options.path), True
    return files.plain_line, False


def _terms(model: PreparedTranslator, options: FileOptions) -> dict[str, Any]:
    """Return all that the output depends on, apart from the input."""
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


def _translate_document(
    model: PreparedTranslator, options: FileOptions, write: Write, display: Display
) -> None:
    if options.source is not None:
        content = lines.read_whole(options.source, expected=lines.SENTENCES)
    else:
        content = sys.stdin.buffer.read()
    facts: dict[str, Any] = {"kind": options.kind, "languages": options.languages}
    document: segments.AnyDocument = read_document(
        content, path=options.path, fuzzy=options.fuzzy, **facts
    )
    with display.translating() as watcher:
        count = len(document.segments)
        written = segments.translate_document(
            document,
            model.stream(attention=segments.needs_alignment(document, model.translator)),
            path=options.path,
            splitting=options.splitting(),
            done=lambda share: watcher.moved(int(share * count), share),
        )
    _put(written, options, write)


def translate_file(
    run: str | Path,
    source: str | Path,
    output: str | Path,
    *,
    search: SearchOptions | None = None,
    progress: bool | Display = True,
    **options: Any,
) -> Path:
    """Translate a file of any size and format; stopped, the same call goes on where it was.

    The options are the fields of `FileOptions`, as `column="2"`; `search` is how to search.
    """
    files_options = FileOptions(source=Path(source), output=Path(output), **options)
    files_options.check()
    model = prepare_translator(
        Path(run), search or SearchOptions(), measure=not files_options.short
    )
    translate_input(model, files_options, write=lambda text: None, display=display_of(progress))
    return Path(output)
