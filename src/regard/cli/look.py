"""`regard look`: what a model attends to, in the terminal, as a picture or as data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from regard.tasks.looking import View


def look(
    run: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Folder of a trained run.")
    ] = None,
    text: Annotated[
        str | None, typer.Argument(help="A sentence in the source language, or any text.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Picture (.png, .svg, .pdf; all heads also as .html) or its data (.csv, .json; of "
            "graphs .tsv, .npz).",
        ),
    ] = None,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show the model's own tokens, not whole words.")
    ] = False,
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            help="All heads of a Transformer: cross, encoder or decoder; or its experts.",
        ),
    ] = None,
    layer: Annotated[
        int | None, typer.Option("--layer", help="All heads of this layer, counted from 0.")
    ] = None,
    head: Annotated[
        int | None, typer.Option("--head", help="This head of the layer, counted from 0.")
    ] = None,
    word: Annotated[
        str | None,
        typer.Option("--word", help="What this word of the text looks at (it#2: the second)."),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option("--step", help="One step of a translation, counted from 1: what it reads."),
    ] = None,
    arcs: Annotated[
        bool, typer.Option("--arcs", help="Self-attention of the whole text as arcs.")
    ] = False,
    lens: Annotated[
        bool, typer.Option("--lens", help="What each layer would have said at each step.")
    ] = False,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="WORD:WORD",
            help="Training examples where the first word attends to the second.",
        ),
    ] = None,
    curves: Annotated[
        bool, typer.Option("--curves", help="The learning curves of the run.")
    ] = False,
    positions: Annotated[
        str | None,
        typer.Option(
            "--positions",
            metavar="KIND",
            help="Positional encoding: sinusoidal, rotary, alibi; of a run learned, relative, own.",
        ),
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", help="A node, by name or number (of a graph).")
    ] = None,
    embeddings: Annotated[
        str | None, typer.Option("--embeddings", help="Draw all nodes of a graph: pca or t-sne.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what a model attends to: heat maps, heads, arcs, neighbours; its positions and curves.

    Without further options: which source words each target word attends to, every head of a
    language model, the series of a forecaster, who a classifier takes for whom.

    Example: regard look runs/demo/attention "cats do not like dogs" --out cats.png

    Example: regard look runs/t "cats sleep because they are tired" --word they --out they.svg

    Example: regard look runs/t "cats like dogs" --part encoder --out heads.html

    Example: regard look runs/t --where Hunde:dogs --layer 1 --head 0

    Example: regard look --positions sinusoidal --out positions.pdf

    Example: regard look runs/cora --node 1358 --out n.svg
    """
    from regard.tasks import look_at
    from regard.tasks.looking import LookRequest

    asked = {
        "node": node,
        "embeddings": embeddings,
        "positions": positions,
        "curves": curves,
        "word": word,
        "arcs": arcs,
        "step": step is not None,
        "lens": lens,
        "where": where,
    }
    names = [name for name, value in asked.items() if value]
    if len(names) > 1:
        listed = " and ".join(f"--{name}" for name in names)
        raise SettingsError(f"{listed} are different pictures: ask for one of them.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if names == ["positions"]:
            view = _positions(positions or "", run, layer=layer)
        else:
            if run is None:
                raise SettingsError("Name a run to look at, as runs/demo/attention.")
            request = LookRequest(
                run=run,
                text=text,
                pieces=pieces,
                part=part,
                layer=layer,
                head=head,
                word=word,
                node=node,
                embeddings=embeddings,
                step=step,
                where=where,
            )
            view = _curves(run) if names == ["curves"] else look_at(request, *names)
        _show(view, out, as_json=json)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"Warning: {message}", err=True)


def _show(view: View, out: Path | None, *, as_json: bool) -> None:
    """Write the file that is wanted, then print JSON, or what a person reads."""
    if out is None and not as_json and view.shown is None:
        raise SettingsError(view.remedy)
    if out is not None:
        view.save(out)
    if as_json:
        print_json({**view.record, **({} if out is None else {"written": str(out)})})
    elif out is not None:
        typer.echo(f"{view.text}\nWrote {out}" if view.text else f"Wrote {out}")
    elif view.shown is not None:
        from rich.console import Console

        console = Console()
        shown = view.shown(console.width)
        if isinstance(shown, str):
            typer.echo(shown)
        else:
            console.print(shown, highlight=False, soft_wrap=True)


def _curves(run: Path) -> View:
    """Return how the training of a run went."""
    from functools import partial

    from regard.pictures.curves import draw_learning_curves
    from regard.runs.report import histories_of
    from regard.tasks.looking import View

    found = histories_of(run)
    return View(record=found, save=partial(draw_learning_curves, found))


def _positions(kind: str, run: Path | None, *, layer: int | None) -> View:
    """Return how positions are told to a model."""
    from regard.studies.positions import positions_of
    from regard.tasks.looking import View

    found = positions_of(kind, run, layer=layer)
    return View(record=found.to_dict(), save=found.save)
