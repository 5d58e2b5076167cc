"""`regard classify`: the labels of texts, by a trained classifier."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder, print_json


def classify(
    run: RunFolder,
    text: Annotated[
        str | None, typer.Argument(help="Text to classify; standard input if left out.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", help="File to classify, one text a line.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Classify texts with a trained run: label, probability and text, with tabs between them.

    Example: regard classify runs/reviews --input new-reviews.txt
    """
    from regard.corpora.lines import decode_lines, read_lines
    from regard.tasks.text_classification.model import load

    if text is not None and source is not None:
        raise SettingsError("Give either TEXT or --input, not both.")
    model = load(run)
    if text is not None:
        lines = [text]
    elif source is not None:
        lines = read_lines(source, expected="one text a line")
    else:
        lines = decode_lines(sys.stdin.buffer.read(), path=Path("standard input"))
    found = model.classify(lines)
    if json:
        print_json([one.to_dict() for one in found])
    else:
        for one in found:
            typer.echo(f"{one.label}\t{one.probability:.4f}\t{one.text}")
    count = model.unknown_count()
    for one in found:
        count.add(one.unknown)
    if count.parts:
        typer.echo(str(count), err=True)
