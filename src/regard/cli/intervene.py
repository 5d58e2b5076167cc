"""`regard intervene`: change what a model attends to, and see what becomes of the output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder, print_json

if TYPE_CHECKING:
    pass

Many = list[str] | None


def intervene(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="A sentence, a text to go on with, or a node.")
    ] = None,
    off: Annotated[
        Many, typer.Option("--off", metavar="PLACE", help="Heads off: 1.3, encoder.0.2, encoder.0.")
    ] = None,
    mean: Annotated[
        Many,
        typer.Option("--mean", metavar="PLACE", help="Heads replaced by their mean output."),
    ] = None,
    skip: Annotated[
        Many, typer.Option("--skip", metavar="LAYER", help="A whole layer off: encoder.0.")
    ] = None,
    force: Annotated[
        Many,
        typer.Option(
            "--force", metavar="STEP=WORD", help="All weight of a step on a word, or 2=cats:1,...."
        ),
    ] = None,
    move: Annotated[
        Many,
        typer.Option("--move", metavar="STEP=WORD:WORD", help="Weight moved to another word."),
    ] = None,
    hide: Annotated[
        Many, typer.Option("--hide", metavar="WORD", help="A word hidden: dogs, dogs@1, dogs@1.3.")
    ] = None,
    swap: Annotated[
        Many, typer.Option("--swap", metavar="WORD=WORD", help="The values of two words exchanged.")
    ] = None,
    patch: Annotated[
        Many,
        typer.Option("--patch", metavar="WORD=WORD", help="A state taken from the text of --from."),
    ] = None,
    other: Annotated[
        str | None, typer.Option("--from", metavar="TEXT", help="The text to take states from.")
    ] = None,
    importance: Annotated[
        bool, typer.Option("--importance", help="BLEU lost without each head, on the test set.")
    ] = False,
    sentences: Annotated[
        int, typer.Option("--sentences", min=2, help="Test sentences for --importance.")
    ] = 200,
    out: Annotated[
        Path | None, typer.Option("--out", help="Picture of --importance, or of both maps.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Switch heads off, move attention, hide or swap words; see both outputs side by side.

    PLACE is [PART.]LAYER[.HEAD], counted from 0; words take @PLACE, and STEP is a number from 0 or
    a word of the output. All options may be given often.

    Example: regard intervene runs/demo/attention "cats do not like dogs" --swap cats=dogs

    Example: regard intervene runs/demo/transformer "cats like dogs" --off 1.0 --hide cats@0

    Example: regard intervene runs/demo/transformer --importance --out heads.png
    """
    if importance:
        _importance(run, sentences=sentences, out=out, as_json=json)
        return
    if text is None:
        raise SettingsError("Give a text to intervene in, or ask for --importance.")
    from regard.api import intervene

    found = intervene(
        run,
        text,
        off=off or (),
        mean=mean or (),
        skip=skip or (),
        force=force or (),
        move=move or (),
        hide=hide or (),
        swap=swap or (),
        patch=patch or (),
        other=other,
    )
    if out is not None:
        found.save(out)
    if json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found) if out is None else f"{found}\nWrote {out}")


def _importance(run: Path, *, sentences: int, out: Path | None, as_json: bool) -> None:
    """Print, and draw, what each head is worth."""
    from regard.studies.interventions import head_importance

    found = head_importance(run, sentences=sentences)
    if out is not None:
        found.save(out)
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found) if out is None else f"{found}\nWrote {out}")
