"""`regard look`: what a model attends to, in the terminal, as a picture or as data."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson


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
        bool, typer.Option("--pieces", help="Show the model's own symbols, not whole words.")
    ] = False,
    part: Annotated[
        str | None,
        typer.Option("--part", help="All heads of a Transformer: across, encoder or decoder."),
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
    arcs: Annotated[
        bool, typer.Option("--arcs", help="Self-attention of the whole text as arcs.")
    ] = False,
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

    Example: regard look runs/t "cats sleep when they are tired" --word they --out they.svg

    Example: regard look runs/t "cats like dogs" --part encoder --out heads.html

    Example: regard look --positions sinusoidal --out positions.pdf

    Example: regard look runs/cora --node 1358 --out n.svg
    """
    from regard.cli.look_views import Question, view_of

    question = Question(
        run=run,
        text=text,
        out=out,
        pieces=pieces,
        part=part,
        layer=layer,
        head=head,
        word=word,
        arcs=arcs,
        curves=curves,
        positions=positions,
        node=node,
        embeddings=embeddings,
        json=json,
    )
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always")
        view_of(question)(question)
    for doubt in dict.fromkeys(str(warning.message) for warning in doubts):
        typer.echo(f"Warning: {doubt}", err=True)
