"""`regard illustrate`: what a lecture says of attention, with numbers that can be changed."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, print_json


def illustrate(
    name: Annotated[
        str | None, typer.Argument(help="The illustration, as extreme-case; none: list them.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Picture (.png, .svg, .pdf) or numbers (.csv, .json)."),
    ] = None,
    numbers: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a number, as strength=20."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show a fact about attention with small matrices: softmax, order, positions, heads.

    Example: regard illustrate extreme-case --set strength=20 --out extreme.png
    """
    from regard.lectures import illustrations

    if name is None:
        found = {
            each: illustrations.ILLUSTRATIONS[each].__doc__ for each in illustrations.ILLUSTRATIONS
        }
        first = {each: (text or "").strip().splitlines()[0] for each, text in found.items()}
        if json:
            print_json(
                {
                    each: {"title": first[each], "options": illustrations.options(each)}
                    for each in first
                }
            )
            return
        width = max(map(len, first))
        for each, line in first.items():
            settings = ", ".join(
                f"{key}={value}" for key, value in illustrations.options(each).items()
            )
            typer.echo(f"{each:<{width}}  {line} ({settings})")
        return
    shown = illustrations.illustrate(name, **illustrations.read_options(name, numbers or []))
    if out is not None:
        shown.save(out)
    if json:
        print_json(shown.to_dict())
        return
    typer.echo(f"{shown.title}\n  {shown.equation}\n  {shown.shows}")
    if out is not None:
        typer.echo(f"Wrote {out}")
