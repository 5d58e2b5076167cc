"""`regard score`: translations against references, or word alignments against gold."""

from __future__ import annotations

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
    if reverse is not None and not align:
        raise SettingsError("--reverse is a file of alignments: it needs --align.")
    if align:
        if by_length or source is not None:
            raise SettingsError("--align compares alignments alone; leave out --source.")
        _score_alignment(system, reverse, reference, symmetrise, gold_first, json)
        return
    from regard.corpora.lines import read_lines
    from regard.scoring.bleu import bleu_by_length, corpus_bleu, corpus_chrf

    if by_length and source is None:
        raise SettingsError("--by-length needs the source sentences: give --source FILE.")
    outputs, references = list(read_lines(system)), list(read_lines(reference))
    scores = [corpus_bleu(outputs, references, tokenize=tokenize), corpus_chrf(outputs, references)]
    bands = []
    if by_length and source is not None:
        bands = bleu_by_length(outputs, references, list(read_lines(source)), tokenize=tokenize)
    if json:
        result = {each.name.lower(): each.to_dict() for each in scores}
        if bands:
            result["by_length"] = [band.to_dict() for band in bands]  # type: ignore[assignment]
        print_json(result)
        return
    for each in scores:
        typer.echo(str(each))
    if bands:
        typer.echo("\nwords   sentences    BLEU")
        for band in bands:
            value = f"{band.score.value:7.2f}" if band.score else "      -"
            typer.echo(f"{band.label:<8}{band.sentences:>9} {value}")


def _score_alignment(
    system: Path, reverse: Path | None, gold: Path, method: str, first: int, json: bool
) -> None:
    """Print the alignment error rate, of one direction or of two made into one."""
    from regard.corpora.pharaoh import read_alignments, read_gold
    from regard.scoring.alignment import alignment_error_rate, symmetrise_all

    found = [frozenset(links) for links in read_alignments(system)]
    if reverse is not None:
        turned = [{(s, t) for t, s in links} for links in read_alignments(reverse)]
        found = symmetrise_all(found, turned, method=method)
    marked = read_gold(gold, first=first)
    if first == 0 and marked and all(min(link) > 0 for line in marked for link in line.possible):
        typer.echo(
            f"Warning: no link of {gold} has a word 0; if its words count from 1, give "
            "--gold-first 1.",
            err=True,
        )
    score = alignment_error_rate(
        found, [line.sure for line in marked], [line.possible for line in marked]
    )
    if json:
        print_json({"aer": score.to_dict()})
    else:
        typer.echo(str(score))
