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
    from regard.corpora.parallel import read_pairs
    from regard.engines.choice import PlannedSearch, choose_engine
    from regard.engines.preparation import prepare_patience
    from regard.runs.run import Run
    from regard.tasks.translation.data import read_valid
    from regard.tasks.translation.model import load
    from regard.tasks.translation.tuning import (
        LENGTH_PENALTIES,
        choose_penalty,
        try_length_penalties,
    )

    if (source is None) != (reference is None):
        raise SettingsError("Give both --source and --reference, or neither of them.")
    model = load(run)
    if source is not None and reference is not None:
        pairs = read_pairs([source, reference])
    else:
        pairs = read_valid(model.recipe.data)
    sources = [pair.source for pair in pairs]
    prepare_patience(model, run, sources)
    tried = []
    for one in try_length_penalties(
        model,
        pairs,
        penalties=penalties or LENGTH_PENALTIES,
        tokenize=tokenize,
        engine_for=lambda settings: choose_engine(model, PlannedSearch(settings), folder=run),
    ):
        tried.append(one)
        if not json:
            typer.echo(
                f"length penalty {one.length_penalty:<4g} BLEU {one.score.value:6.2f}   "
                f"length {one.length_ratio:6.1%}"
            )
    present = model.recipe.decoding.length_penalty
    found = choose_penalty(tried, pairs, present=present, tokenize=tokenize)
    chosen = found.chosen.length_penalty
    if keep and chosen != present:
        decoding = model.decoding(length_penalty=chosen)
        model.recipe = model.recipe.model_copy(update={"decoding": decoding})
        Run.open(run).rewrite(model.recipe)
        prepare_patience(model, run, sources)
    if json:
        print_json({**found.to_dict(), "tried": [one.to_dict() for one in tried]})
        return
    if found.p_value is not None:
        gain = found.best.score.value - next(
            one.score.value for one in tried if one.length_penalty == present
        )
        typer.echo(
            f"{found.best.length_penalty:g} is {gain:.2f} BLEU better than the run's {present:g} "
            f"on these {len(pairs)} pairs; p = {found.p_value:.3f} that it is chance."
        )
    if chosen == present:
        typer.echo(f"{run} stays at decoding.length_penalty = {present:g}: no sure gain.")
    elif keep:
        typer.echo(f"{run} has decoding.length_penalty = {chosen:g} from now on.")
    else:
        typer.echo(f"{run} stays as it is; decoding.length_penalty = {chosen:g} would be better.")
