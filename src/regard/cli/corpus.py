"""`regard corpus`: writes a built-in corpus to files."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, print_json


def corpus(
    name: Annotated[str, typer.Argument(help='Which corpus: "grammar".')],
    out: Annotated[Path, typer.Option("--out", help="Folder for train, valid and test files.")],
    pair: Annotated[str, typer.Option(help='"en-de" or "en-fr".')] = "en-de",
    size: Annotated[int, typer.Option(min=1, help="Training pairs.")] = 20_000,
    valid_size: Annotated[int, typer.Option(min=1, help="Validation pairs.")] = 1_000,
    test_size: Annotated[int, typer.Option(min=1, help="Test pairs.")] = 1_000,
    min_words: Annotated[int, typer.Option(min=3, help="Fewest source words.")] = 3,
    max_words: Annotated[int, typer.Option(min=3, help="Most source words.")] = 60,
    words: Annotated[str, typer.Option(help='Vocabulary: "full" or "small".')] = "full",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 1,
    json: AsJson = False,
) -> None:
    """Write a built-in corpus: sentence pairs with gold word alignments.

    Example: regard corpus grammar --pair en-de --size 20000 --max-words 60 --seed 1 --out data
    """
    from regard import api

    found = api.corpus(
        name,
        pair=pair,
        size=size,
        valid_size=valid_size,
        test_size=test_size,
        words=words,
        length=(min_words, max_words),
        seed=seed,
        out=out,
    ).to_dict()
    if json:
        print_json(found)
    else:
        typer.echo(f"Wrote {', '.join(found['files'])} to {out}")
