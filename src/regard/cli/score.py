"""`regard score`: translations against references, or word alignments against gold."""

from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, print_json


def score(
    system: Annotated[Path, typer.Option("--system", help="Translations, one a line.")],
    reference: Annotated[Path, typer.Option("--reference", help="References, one a line.")],
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences, for --by-length.")
    ] = None,
    by_length: Annotated[
        bool, typer.Option("--by-length", help="Also BLEU by the length of the source.")
    ] = False,
    tokenize: Annotated[str, typer.Option(help="sacreBLEU's tokenizer, as 13a or none.")] = "13a",
    align: Annotated[
        bool, typer.Option("--align", help="The files hold word alignments, as 0-0 1-2.")
    ] = False,
    reverse: Annotated[
        Path | None,
        typer.Option("--reverse", help="Alignments of the other direction, as target-source."),
    ] = None,
    symmetrise: Annotated[
        str, typer.Option(help="How two directions become one.")
    ] = "grow-diag-final-and",
    gold_first: Annotated[
        int, typer.Option(min=0, max=1, help="Number of the first word in the gold file.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Score translations with sacreBLEU, signature included.

    Example: regard score --system out.de --reference test.de --source test.en --by-length

    With --align, the alignment error rate of --system (from `translate --align`) against the gold
    links of --reference: 0-0 is sure, 0p1 possible.
    """
    from regard import api

    if reverse is not None and not align:
        raise SettingsError("--reverse is a file of alignments: it needs --align.")
    if not align:
        found = api.score(system, reference, source=source, by_length=by_length, tokenize=tokenize)
        print_json(found.to_dict()) if json else typer.echo(str(found))
        return
    if by_length or source is not None:
        raise SettingsError("--align compares alignments alone; leave out --source.")
    rate = api.score_alignments(
        system, reference, reverse=reverse, symmetrise=symmetrise, gold_first=gold_first
    )
    if gold_first == 0 and _counts_from_one(reference):
        typer.echo(
            f"Warning: no link of {reference} has a word 0; if its words count from 1, give "
            "--gold-first 1.",
            err=True,
        )
    print_json({"aer": rate.to_dict()}) if json else typer.echo(str(rate))


def _counts_from_one(gold: Path) -> bool:
    """Return whether no link of a gold file has a word 0."""
    from regard.corpora.alignments import read_gold

    marked = read_gold(gold, first=0)
    return bool(marked) and all(min(link) > 0 for line in marked for link in line.possible)
