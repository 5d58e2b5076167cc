"""`regard corpus`: writes a built-in corpus, and cleans one's own."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, FilesCommand, Overrides, column_names, print_json

corpus = typer.Typer(
    no_args_is_help=True,
    help="Write the built-in corpus, or clean a corpus of your own.\n\n"
    "Example: regard corpus filter --data raw.tsv --pair en-de --out clean.tsv",
)


@corpus.command()
def grammar(
    out: Annotated[Path, typer.Option("--out", help="Folder for train, valid and test files.")],
    pair: Annotated[str, typer.Option(help='"en-de" or "en-fr".')] = "en-de",
    size: Annotated[int, typer.Option(min=1, help="Training pairs.")] = 20_000,
    valid_size: Annotated[int, typer.Option(min=1, help="Validation pairs.")] = 1_000,
    test_size: Annotated[int, typer.Option(min=1, help="Test pairs.")] = 1_000,
    min_words: Annotated[int, typer.Option(min=3, help="Fewest source words.")] = 3,
    max_words: Annotated[int, typer.Option(min=3, help="Most source words.")] = 60,
    words: Annotated[str, typer.Option(help='Vocabulary: "full" or "small".')] = "full",
    style: Annotated[
        str, typer.Option(help='"plain", "written" (with capital and full stop) or "mixed".')
    ] = "plain",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 1,
    json: AsJson = False,
) -> None:
    """Write the built-in corpus: sentence pairs with gold word alignments.

    Example: regard corpus grammar --pair en-de --size 20000 --max-words 60 --seed 1 --out data
    """
    from regard import api

    found = api.corpus(
        "grammar",
        pair=pair,
        size=size,
        valid_size=valid_size,
        test_size=test_size,
        words=words,
        style=style,
        length=(min_words, max_words),
        seed=seed,
        out=out,
    ).to_dict()
    if json:
        print_json(found)
    else:
        typer.echo(f"Wrote {', '.join(found['files'])} to {out}")


@corpus.command("filter", cls=FilesCommand)
def filter_pairs(
    data: Annotated[
        list[Path], typer.Option("--data", help="A file of pairs, or source and target files.")
    ],
    out: Annotated[
        Path, typer.Option("--out", help="A .tsv file, or the name that two line files begin with.")
    ],
    pair: Annotated[
        str | None, typer.Option("--pair", help="The languages, as en-de, to identify them.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", help="Names or numbers of the two columns.")
    ] = None,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Keep the good pairs of a corpus, and say how many each filter dropped.

    Example: regard corpus filter --data raw.tsv --pair en-de --out clean.tsv
    """
    from regard.corpora.cleaning import filter_corpus

    account = filter_corpus(
        data, out=out, pair=pair, columns=column_names(columns) or (), set=overrides or []
    )
    if json:
        print_json(account.to_dict())
    else:
        typer.echo(str(account))
