"""`regard translate`: text, files or standard input through a trained model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import DataError, RegardError, SettingsError
from regard.cli.options import AsJson, RunFolder, as_json, print_json

if TYPE_CHECKING:
    from regard.recipes.loaded import LoadedTranslator, Translation

STANDARD_INPUT = Path("standard input")


def translate(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="Text to translate; standard input if left out.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", help="File to translate, one sentence a line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="File for the translations.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Width of the search; 1 = greedy.")
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations of each sentence.")] = 1,
    align: Annotated[
        Path | None, typer.Option("--align", help="File for word alignments, as 0-0 1-2.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Translate with a trained run.

    Example: regard translate runs/demo/attention "cats do not like dogs"
    """
    from regard.recipes.loaded import SentenceTooLongError, load

    if text is not None and source is not None:
        raise SettingsError("Give either TEXT or --input, not both.")
    lines = _lines(text, source)
    for path in (output, align):
        if path is not None and not path.parent.is_dir():
            raise SettingsError(f"Cannot write {path}: there is no folder {path.parent}.")
        if path is not None and path.is_dir():
            raise SettingsError(f"Cannot write {path}: it is a folder.")
    model = load(run)
    if align is not None and not model.attends:
        raise RegardError(f"The model of {run} has no attention to align by.")
    try:
        found = _translate(
            model, lines, beam=beam, n_best=n_best, attention=align is not None or json
        )
    except SentenceTooLongError as error:
        if text is not None:
            raise
        raise DataError(
            f"the line {error.problem}",
            path=source or STANDARD_INPUT,
            line=error.index + 1,
            remedy="Split it, one sentence a line.",
        ) from error
    if align is not None:
        _write(align, [_alignment(translation) for translation in found])
    if json and output is None:
        print_json([translation.to_dict() for translation in found])
        return
    written = [line for translation in found for line in _output(translation, n_best)]
    if json:
        written = [as_json([translation.to_dict() for translation in found])]
    if output is not None:
        _write(output, written)
    else:
        for line in written:
            typer.echo(line)


def _lines(text: str | None, source: Path | None) -> list[str]:
    """Return what is to be translated."""
    from regard.corpora.lines import decode_lines, read_lines

    if text is not None:
        return text.splitlines() or [""]
    if source is not None:
        return list(read_lines(source))
    return list(decode_lines(sys.stdin.buffer.read(), path=STANDARD_INPUT))


def _translate(
    model: LoadedTranslator, lines: list[str], *, beam: int | None, n_best: int, attention: bool
) -> list[Translation]:
    """Translate, with a progress bar on a terminal when it takes long."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    beam = max(beam or model.recipe.decoding.beam, n_best) if n_best > 1 else beam
    stream = model.stream(lines, beam=beam, n_best=n_best, attention=attention)
    shown = track(
        stream,
        total=len(lines),
        description="Translating",
        console=console,
        disable=not console.is_terminal or len(lines) < 100,
        transient=True,
    )
    results = dict(shown)
    return [results[index] for index in range(len(lines))]


def _output(translation: Translation, n_best: int) -> list[str]:
    """Return the lines of one sentence; n-best lists carry score and rank, as `score ||| text`."""
    if n_best == 1:
        return [translation.text]
    return [f"{t.score:.4f} ||| {t.text}" for t in (translation, *translation.alternatives)]


def _alignment(translation: Translation) -> str:
    from regard.scoring.alignment import format_links

    return format_links(translation.attention.links()) if translation.attention else ""


def _write(path: Path, lines: list[str]) -> None:
    """Write lines to a temporary name first, so that a file is complete or not there."""
    temporary = path.with_name(f".{path.name}.writing")
    temporary.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    temporary.replace(path)
