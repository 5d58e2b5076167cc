"""`regard corpus`: writes the built-in corpus; fetches, cleans, mixes, splits and counts others."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, FilesCommand, Overrides, column_names, print_json

corpus = typer.Typer(
    no_args_is_help=True,
    help="Write the built-in corpus; fetch, clean, mix, split and count others.\n\n"
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
    words: Annotated[
        str, typer.Option(help='Vocabulary: "full", "small" or "agreements".')
    ] = "full",
    style: Annotated[
        str, typer.Option(help='"plain", "written" (with capital and full stop) or "mixed".')
    ] = "plain",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 1,
    json: AsJson = False,
) -> None:
    """Write the built-in corpus: sentence pairs with gold word alignments.

    Example: regard corpus grammar --pair en-de --size 20000 --max-words 60 --seed 1 --out data
    """
    from regard.data import corpus as tools

    found = tools(
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


Data = Annotated[
    list[Path], typer.Option("--data", help="A file of pairs, or source and target files.")
]
OutFile = Annotated[
    Path, typer.Option("--out", help="A .tsv file, or the name that two line files begin with.")
]
Pair = Annotated[str | None, typer.Option("--pair", help="The languages, as en-de.")]
Columns = Annotated[
    list[str] | None, typer.Option("--columns", help="Names or numbers of the two columns.")
]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Processes that share the work; default: one a core.")
]


@corpus.command()
def fetch(
    name: Annotated[
        str | None, typer.Argument(help="multi30k, tinyshakespeare or opus/NAME; none: list them.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the files.")] = None,
    pair: Pair = None,
    version: Annotated[str, typer.Option(help="Version of a corpus of OPUS.")] = "latest",
    json: AsJson = False,
) -> None:
    """Download a corpus, or check one that was downloaded before.

    What is pinned here has known checksums. Of corpora of OPUS, those of the first download are
    remembered. A download that was cut goes on when the command is run again.

    Example: regard corpus fetch multi30k --pair en-de --out data/multi30k

    Example: regard corpus fetch opus/Books --pair en-fr --out data/books
    """
    from regard.corpora.fetching import OPUS_API, pinned_corpora
    from regard.data import corpus as tools

    if name is None:
        for known, entry in pinned_corpora().items():
            typer.echo(f"{known:<16} {entry.about}")
        typer.echo(f"{'opus/NAME':<16} a corpus of OPUS, with --pair: {OPUS_API}")
        return
    with _counting("Downloading", "bytes") as count:
        found = tools.fetch(
            name,
            out=Path("data") / name.rpartition("/")[2] if out is None else out,
            pair=pair,
            version=version,
            progress=lambda done, total: count(done, total),
        )
    print_json(found.to_dict()) if json else typer.echo(str(found))


@corpus.command("filter", cls=FilesCommand)
def filter_pairs(
    data: Data,
    out: OutFile,
    pair: Pair = None,
    columns: Columns = None,
    overrides: Overrides = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Run of a translator that scores the pairs, in place of IBM model 1."),
    ] = None,
    processes: Processes = None,
    json: AsJson = False,
) -> None:
    """Keep the good pairs of a corpus, and say how many each filter dropped.

    Languages are identified if --pair names them. A filtering that was stopped goes on when the
    same command is run again.

    Example: regard corpus filter --data raw.tsv --pair en-de --out clean.tsv
    """
    from regard.data import corpus as tools

    with _counting("Filtering", "pairs") as count:
        account = tools.filter(
            data,
            out=out,
            pair=pair,
            columns=column_names(columns) or (),
            set=overrides or [],
            model=model,
            processes=processes,
            progress=count,
        )
    print_json(account.to_dict()) if json else typer.echo(str(account))


@corpus.command()
def mix(
    corpora: Annotated[
        list[str],
        typer.Argument(help="Tables or folders, or two line files with a comma between them."),
    ],
    out: OutFile,
    pair: Pair = None,
    weights: Annotated[
        str | None, typer.Option(help="A weight for each corpus, as 1,2.5 (default: all 1).")
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="T of the shares n^(1/T); more gives more to small corpora.")
    ] = 1.0,
    size: Annotated[int | None, typer.Option(min=1, help="Pairs of the mixture.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice.")] = 1,
    json: AsJson = False,
) -> None:
    """Mix corpora in shares; a small one may come several times.

    Example: regard corpus mix books.tsv subtitles.tsv --temperature 5 --out mixed.tsv
    """
    from regard.data import corpus as tools

    with _counting("Mixing", "pairs") as count:
        found = tools.mix(
            corpora,
            out=out,
            pair=pair,
            weights=_numbers(weights),
            temperature=temperature,
            size=size,
            seed=seed,
            progress=count,
        )
    print_json(found.to_dict()) if json else typer.echo(str(found))


@corpus.command(cls=FilesCommand)
def split(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for train, valid and test.")],
    valid: Annotated[int, typer.Option("--valid", min=0, help="Pairs to validate on.")] = 1_000,
    test: Annotated[int, typer.Option("--test", min=0, help="Pairs to test on.")] = 1_000,
    pair: Pair = None,
    columns: Columns = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the choice.")] = 1,
    processes: Processes = None,
    json: AsJson = False,
) -> None:
    """Split a corpus into train, valid and test; pairs with the same source stay together.

    Example: regard corpus split --data clean.tsv --valid 500 --test 500 --out data/mine
    """
    from regard.data import corpus as tools

    with _counting("Splitting", "pairs") as count:
        found = tools.split(
            data,
            out=out,
            valid=valid,
            test=test,
            pair=pair,
            columns=column_names(columns) or (),
            seed=seed,
            processes=processes,
            progress=count,
        )
    if json:
        print_json(found)
    else:
        sizes = ", ".join(f"{count:,} {part}" for part, count in found.items())
        typer.echo(f"Wrote {sizes} to {out}")


@corpus.command(cls=FilesCommand)
def stats(
    data: Data,
    pair: Pair = None,
    columns: Columns = None,
    processes: Processes = None,
    json: AsJson = False,
) -> None:
    """Count what a corpus holds: pairs, lengths, words, scripts and copies.

    Example: regard corpus stats --data train.en train.de
    """
    from regard.data import corpus as tools

    with _counting("Counting", "pairs") as count:
        found = tools.stats(
            data,
            pair=pair,
            columns=column_names(columns) or (),
            processes=processes,
            progress=count,
        )
    print_json(found.to_dict()) if json else typer.echo(str(found))


def _numbers(text: str | None) -> list[float]:
    """Return the numbers of a text with commas between them."""
    try:
        return [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise SettingsError(f"--weights {text}: give numbers, as 1,2.5.") from None


@contextmanager
def _counting(title: str, unit: str) -> Iterator[Callable[..., None]]:
    """Show how far a command is, on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total=None: None
        return
    with console.status(f"{title} ...") as status:

        def moved(done: int, total: int | None = None) -> None:
            of = f" of {total:,}" if total else ""
            status.update(f"{title}: {done:,}{of} {unit}")

        yield moved
