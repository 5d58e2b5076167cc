"""`regard study`: small experiments about efficiency and scale, and the published table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from regard.studies.small_models import Characters

study = typer.Typer(
    no_args_is_help=True,
    help="Small experiments: what length costs, laws of scale; and the published table.\n\n"
    "Example: regard study efficiency --out efficiency.png",
)


@study.command()
def efficiency(
    out: Annotated[
        Path, typer.Option("--out", help="Picture of the result (.png, .svg or .pdf).")
    ] = Path("efficiency.png"),
    longest: Annotated[
        int, typer.Option("--longest", min=16, help="Tokens of the longest texts.")
    ] = 1_024,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements; the median counts.")] = 3,
    json: AsJson = False,
) -> None:
    """Measure time, memory and path length of models against the length of texts.

    Recurrent networks and Transformers have equal numbers of parameters.
    Example: regard study efficiency --longest 512
    """
    from regard.studies.drawings import draw_costs
    from regard.studies.efficiency import LENGTHS
    from regard.studies.efficiency import efficiency as measure

    lengths = [length for length in (*LENGTHS, 4_096) if length <= longest]
    found = measure(
        lengths=lengths, rounds=rounds, on_model=lambda name: typer.echo(name, err=True)
    )
    draw_costs(found, out)
    if json:
        print_json({"models": [one.to_dict() for one in found], "picture": str(out)})
        return
    for one in found:
        typer.echo(f"{one.name} ({one.parameters:,} parameters)")
        for length in lengths:
            path = one.path[length]
            typer.echo(
                f"  {length:>5} tokens  {1e3 * one.seconds[length]:8.1f} ms"
                f"  {one.kept_bytes[length] / 1e6:8.1f} MB"
                f"  path {'never' if path is None else path}"
            )
    typer.echo(f"Wrote {out}")


@study.command()
def scaling(
    data: Annotated[
        Path | None, typer.Option("--data", help="A text; none: built-in sentences.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Picture of the result (.png, .svg or .pdf).")
    ] = Path("scaling.png"),
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Trainings of each kind.")] = 1,
    tokens: Annotated[
        int, typer.Option("--tokens", min=8_192, help="Tokens of the longest training.")
    ] = 262_144,
    json: AsJson = False,
) -> None:
    """Train a grid of small language models and fit a law of scale to their losses.

    Example: regard study scaling --data book.txt --out scaling.svg
    """
    from regard.studies import scaling as study_of
    from regard.studies.drawings import draw_runs

    runs = study_of.scaled_runs(
        _text(data),
        tokens=[tokens >> shift for shift in (3, 2, 1, 0)],
        seeds=range(1, seeds + 1),
        on_run=lambda run: typer.echo(
            f"{run.parameters:>9,} parameters  {run.tokens:>9,} tokens  loss {run.loss:.4f}",
            err=True,
        ),
    )
    law = study_of.fit_law(runs)
    values, intervals = study_of.exponents(runs), study_of.exponent_intervals(runs)
    draw_runs(runs, out)
    if json:
        print_json(
            {
                "law": law.to_dict(),
                "exponents": values,
                "intervals": intervals,
                "runs": [run.to_dict() for run in runs],
                "picture": str(out),
            }
        )
        return
    typer.echo(
        f"L = {law.floor:.3f} + {law.size_factor:.3g} / N^{law.alpha:.3f} "
        f"+ {law.data_factor:.3g} / D^{law.beta:.3f}"
    )
    for name, value in values.items():
        low, high = intervals[name]
        typer.echo(f"{name:<20} {value:+.3f}  [{low:+.3f}, {high:+.3f}]")
    typer.echo(f"Wrote {out}")


def _text(path: Path | None) -> Characters:
    from regard.corpora.grammar.generate import generate
    from regard.corpora.running_text import text_chunks
    from regard.studies.small_models import Characters

    if path is not None:
        return Characters.of("".join(text_chunks([path])))
    pairs = generate(pair="en-de", split="train", size=20_000, max_words=20)
    return Characters.of("\n".join(pair.source for pair in pairs))


@study.command()
def published(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUNS]...", help="Runs of translators.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show the published English-German systems, and your own runs beside them.

    Example: regard study published runs/mine
    """
    from regard.studies import published as table

    own = table.own_runs(runs or [])
    if json:
        print_json(
            {
                "published": [one.to_dict() for one in table.PUBLISHED],
                "own": [one.to_dict() for one in own],
                "warning": table.WARNING,
            }
        )
        return
    typer.echo(f"WMT14 English-German, BLEU; MOSES {table.MOSES}")
    for one in table.PUBLISHED:
        days = f"{one.days} {'day' if one.days == 1 else 'days'}"
        gpus = f"{one.gpus} {'GPU' if one.gpus == 1 else 'GPUs'}"
        typer.echo(
            f"  {one.name:<26} {one.bleu:5.1f}  {one.above_moses:+.1f}  {days:>7}, {gpus:<8}"
            f"  here: {one.recipe or '-'} ({one.note})"
        )
    if own:
        typer.echo("Your runs, each on its own test part")
    for each in own:
        bleu = "no test" if each.bleu is None else f"{each.bleu:5.1f}"
        typer.echo(f"  {each.name:<26} {bleu}  {each.minutes:,.1f} minutes")
    typer.echo(table.WARNING)
