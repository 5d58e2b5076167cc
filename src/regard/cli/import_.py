"""`regard import`: a run of a model that another program trained; `regard export` goes back."""

from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import SettingsError

GUESSES = "guess hidden tokens"
TRY = {
    GUESSES: 'regard look {run} "..."',
    "translate": 'regard translate {run} "..."',
    "language-model": 'regard generate {run} "In a shocking finding,"',
    "classify-nodes": "regard look {run} --node 0",
    "classify-text": 'regard classify {run} "..."',
}


def import_(
    path: Annotated[Path, typer.Argument(help="Folder of the model, or its file of weights.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run, new or empty.")],
    weights: Annotated[
        Path | None, typer.Option("--weights", help="Which file of weights, if there are several.")
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option("--languages", help="Source and target of a model of many, as en-fr."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="The graph that a node classifier is for.")
    ] = None,
) -> None:
    """Make a run of a model that another program trained.

    Example: regard import models/en-pt --out runs/en-pt

    Example: regard import models/en-pt --weights model.npz --out runs/en-pt
    """
    from regard.tasks.exchange import import_model

    pair = None
    if languages is not None:
        source, dash, target = languages.partition("-")
        if not (source and dash and target):
            raise SettingsError(f"--languages {languages!r} is not of the form source-target.")
        pair = (source, target)
    found = import_model(path, out=out, weights=weights, languages=pair, data=data)
    typer.echo(f"{found.format}: {found.weights.name}, {found.parameters:,} parameters", err=True)
    for note in found.notes:
        typer.echo(note, err=True)
    task = GUESSES if found.reads_both_ways else found.task
    hint = TRY.get(task, "regard summary {run}").format(run=out)
    typer.echo(f"Run: {out}   try: {hint}", err=True)
