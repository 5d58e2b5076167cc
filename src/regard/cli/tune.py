"""`regard tune`: the length penalty that suits a trained translator."""

from pathlib import Path
from typing import Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder, print_json


def tune(
    run: RunFolder,
    source: Annotated[
        Path | None, typer.Option("--source", help="Source sentences, one a line.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Their references, one a line.")
    ] = None,
    penalties: Annotated[
        list[float] | None,
        typer.Option("--length-penalty", min=0.0, help="One to try. May be given often."),
    ] = None,
    tokenize: Annotated[str, typer.Option(help="sacreBLEU's tokenizer, as 13a or none.")] = "13a",
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Write the best into the run's recipe.")
    ] = True,
    json: AsJson = False,
) -> None:
    """Find the length penalty with the best BLEU, and keep it in the run if the gain is sure.

    The sentences are those that the training validated on, or --source and --reference. Do not
    give the sentences of your test: its result would be too good.

    Example: regard tune runs/mine
    """
    from regard.tasks.translation import tuning

    if (source is None) != (reference is None):
        raise SettingsError("Give both --source and --reference, or neither of them.")
    found = tuning.tune(
        run,
        files=None if source is None or reference is None else (source, reference),
        penalties=penalties or tuning.LENGTH_PENALTIES,
        tokenize=tokenize,
        keep=keep,
        watch=lambda tried: None if json else typer.echo(str(tried)),
    )
    if json:
        print_json(found.to_dict())
        return
    present, chosen = found.present.length_penalty, found.chosen.length_penalty
    if found.p_value is not None:
        typer.echo(
            f"{found.best.length_penalty:g} is {found.gain:.2f} BLEU better than the run's "
            f"{present:g}; p = {found.p_value:.3f} that it is chance."
        )
    if chosen == present:
        typer.echo(f"{run} stays at decoding.length_penalty = {present:g}: no sure gain.")
    elif keep:
        typer.echo(f"{run} has decoding.length_penalty = {chosen:g} from now on.")
    else:
        typer.echo(f"{run} stays as it is; decoding.length_penalty = {chosen:g} would be better.")
