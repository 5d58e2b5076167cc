"""`regard look`: the attention behind a translation, in the terminal or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import RegardError
from regard.cli.options import AsJson, RunFolder, print_json


def look(
    run: RunFolder,
    text: Annotated[str, typer.Argument(help="A sentence in the source language.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Picture (.png, .svg, .pdf) or its data (.csv, .json)."),
    ] = None,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show the model's own symbols, not whole words.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Show which source words each target word attends to.

    Example: regard look runs/demo/attention "cats do not like dogs" --out cats.png
    """
    from regard.recipes.loaded import load

    model = load(run)
    if not model.attends:
        raise RegardError(f"The model of {run} has no attention to look at.")
    translation = model.translate(text)
    if translation.attention is None:
        raise RegardError("There is nothing to translate: the text is empty.")
    seen = translation.attention if pieces else translation.by_word()
    if out is not None:
        from regard.pictures.heat_map import write_map

        write_map(seen.weights, source=seen.source, target=seen.target, path=out)
    if json:
        print_json({**translation.to_dict(), "attention": seen.to_dict()})
    elif out is not None:
        typer.echo(f"{translation.text}\nWrote {out}")
    else:
        from rich.console import Console

        from regard.pictures.terminal import terminal_heat_map

        console = Console()
        console.print(
            terminal_heat_map(
                seen.weights, source=seen.source, target=seen.target, console_width=console.width
            )
        )
        typer.echo(translation.text)
