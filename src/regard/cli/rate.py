"""`regard rate`: how probable a model finds translations that others have made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.tasks.translation.model import LoadedTranslator
    from regard.tasks.translation.results import ScoredPair


def rate(
    run: RunFolder,
    source: Annotated[str | None, typer.Argument(help="Source sentence.")] = None,
    target: Annotated[str | None, typer.Argument(help="Its translation.")] = None,
    source_file: Annotated[
        Path | None, typer.Option("--source", help="Source sentences, one a line.")
    ] = None,
    target_file: Annotated[
        Path | None, typer.Option("--target", help="Their translations, one a line.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Rate given translations: forced decoding, without a search.

    Two texts are shown token by token. Of two files each line gives its score (comparable with
    those of `translate --json`), its log-probability and the target, with tabs between them.

    Example: regard rate runs/demo/transformer "cats like dogs" "Katzen mögen Hunde"

    Example: regard rate runs/demo/transformer --source test.en --target test.de
    """
    from regard.corpora.lines import read_lines
    from regard.tasks.translation.model import load

    if source is not None and target is not None and source_file is None and target_file is None:
        model = load(run)
        pairs = model.score_pairs([source], [target])
        print_json(pairs[0].to_dict()) if json else _show(pairs[0])
        _tell_unknown(model, pairs)
        return
    if source_file is None or target_file is None or source is not None:
        raise SettingsError("Give SOURCE and TARGET as texts, or both --source and --target files.")
    model = load(run)
    pairs = model.score_pairs(list(read_lines(source_file)), list(read_lines(target_file)))
    if json:
        print_json([pair.to_dict() for pair in pairs])
    else:
        for pair in pairs:
            typer.echo(f"{pair.score:.4f}\t{pair.log_probability:.4f}\t{pair.target}")
        typer.echo(_summary(pairs), err=True)
    _tell_unknown(model, pairs)


def _tell_unknown(model: LoadedTranslator, pairs: Sequence[ScoredPair]) -> None:
    """Name the words that the model does not know, which it finds improbable."""
    count = model.unknown_count()
    for pair in pairs:
        count.add(pair.unknown)
    if count.parts:
        typer.echo(str(count), err=True)


def _show(pair: ScoredPair) -> None:
    for piece, value in zip(pair.pieces, pair.log_probabilities, strict=True):
        typer.echo(f"{math.exp(value):8.4f}  {piece}")
    typer.echo(_summary([pair]))


def _summary(pairs: Sequence[ScoredPair]) -> str:
    tokens = sum(len(pair.pieces) for pair in pairs)
    total = sum(pair.log_probability for pair in pairs)
    if not tokens:
        return "Nothing to rate."
    return (
        f"log-probability {total:.2f}, {total / tokens:.3f} per token, "
        f"perplexity {math.exp(-total / tokens):.2f} ({tokens} tokens)"
    )
