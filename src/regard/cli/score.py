"""`regard score`: BLEU and chrF of translations against references."""

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
    json: AsJson = False,
) -> None:
    """Score translations with sacreBLEU, signature included.

    Example: regard score --system out.de --reference test.de --source test.en --by-length
    """
    from regard.corpora.lines import read_lines
    from regard.scoring.bleu import corpus_bleu, corpus_chrf
    from regard.scoring.by_length import bleu_by_length

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
