"""`regard look`: the attention behind a translation or a node, in the terminal or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import RegardError, SettingsError
from regard.cli.options import AsJson, RunFolder, print_json

CLASSIFY_NODES, LANGUAGE_MODEL = "classify-nodes", "language-model"


def look(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="A sentence in the source language, or any text.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Picture (.png, .svg, .pdf; all heads of a language model also as .html) or its "
            "data (.csv, .json; of graphs .tsv, .npz).",
        ),
    ] = None,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show the model's own symbols, not whole words.")
    ] = False,
    node: Annotated[
        str | None, typer.Option("--node", help="A node, by name or number (of a graph).")
    ] = None,
    layer: Annotated[
        int, typer.Option("--layer", help="Layer of a graph or language model, from 0.")
    ] = 0,
    head: Annotated[
        int | None,
        typer.Option("--head", help="One head; else their mean (graph), or all of them (text)."),
    ] = None,
    embeddings: Annotated[
        str | None, typer.Option("--embeddings", help="Draw all nodes of a graph: pca or t-sne.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show which source words each target word attends to, or which neighbours a node does.

    Example: regard look runs/demo/attention "cats do not like dogs" --out cats.png

    Example: regard look runs/cora --node 1358 --out n.svg

    Example: regard look runs/book "my kingdom for a" --out heads.html
    """
    from regard.recipes.run import Run

    if Run.open(run).task == CLASSIFY_NODES:
        from regard.cli.node_classification import look as look_at_graph
        from regard.cli.node_classification import print_look

        found = look_at_graph(
            run, node=node, layer=layer, head=head, embeddings=embeddings, out=out
        )
        (print_json if json else print_look)(found)
        return
    if node is not None or embeddings is not None:
        raise SettingsError(f"The run at {run} has no graph: --node and --embeddings need one.")
    if text is None:
        raise SettingsError("Give a sentence to look at.")
    if Run.open(run).task == LANGUAGE_MODEL:
        _look_at_text(run, text, out=out, layer=layer, head=head, json=json)
        return
    _look_at_sentence(run, text, out=out, pieces=pieces, json=json)


def _look_at_sentence(run: Path, text: str, *, out: Path | None, pieces: bool, json: bool) -> None:
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


def _look_at_text(
    run: Path, text: str, *, out: Path | None, layer: int, head: int | None, json: bool
) -> None:
    """Show which earlier symbols each symbol of a text attended to."""
    from regard.recipes.loaded_language_model import load_language_model

    view = load_language_model(run).heads(text)
    if out is not None:
        from regard.recipes.language_model_pictures import draw_view

        draw_view(view, out, layer=layer, head=head)
    if json:
        print_json({"pieces": list(view.pieces), "weights": view.weights.tolist()})
    elif out is not None:
        typer.echo(f"Wrote {out}")
    else:
        raise SettingsError("Name a picture to write with --out, or ask for --json.")
