"""`regard compare`: several translators on one test set, given or trained first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, Overrides, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

    from regard.studies.compare import Comparison

COMPARISON, SERIES = Path("runs/comparison"), Path("runs/model-series")


def compare(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Folders of trained translators.")
    ] = None,
    test: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SOURCE TARGET", help="Test files, where the runs' own differ."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="What the others are measured by; else the first."),
    ] = None,
    tokenize: Annotated[
        str, typer.Option(help="sacreBLEU's tokenizer: none for tokenised text.")
    ] = "13a",
    out: Annotated[
        Path | None,
        typer.Option(help=f"Folder to write to; {COMPARISON}, or {SERIES} with --series."),
    ] = None,
    series: Annotated[
        bool,
        typer.Option("--series", help="Train the models first: from no attention to Transformer."),
    ] = False,
    story: Annotated[bool, typer.Option("--story", hidden=True)] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with train.*, valid.* and test.*, for --series.", metavar="DIR"),
    ] = None,
    pair: Annotated[
        str | None, typer.Option(help="Source and target language of --series; en-de.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Training time of each model of --series.")
    ] = None,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Compare trained translators on the same test set.

    Example: regard compare runs/demo/plain runs/demo/attention runs/demo/transformer

    With --series, six models are trained first, each for the same minutes on the same data: without
    attention, with dot, bilinear and additive attention, with a convolutional encoder, and a
    Transformer. Without --data they learn the built-in corpus, for 1.7 minutes each; given
    again, the command goes on where it was stopped.

    Example: regard compare --series --data corpus --pair en-de --minutes 20
    """
    from rich.console import Console

    from regard import api
    from regard.runs.display import ConsoleDisplay
    from regard.studies.comparison_report import PAGE

    console = Console(stderr=json)
    named: Mapping[str, Path] | list[Path]
    if story:
        raise SettingsError("--story was renamed: use --series.")
    if series:
        if runs:
            raise SettingsError("--series trains its own runs; leave out the folders, or --series.")
        out = out or SERIES
        named = _train_series(console, out, data=data, pair=pair, minutes=minutes, test=test,
                      overrides=overrides or [])  # fmt: skip
        title = "From no attention to the Transformer"
    else:
        for name, value in {
            "data": data,
            "pair": pair,
            "minutes": minutes,
            "set": overrides,
        }.items():
            if value is not None:
                raise SettingsError(f"--{name} belongs to --series, which trains models.")
        if len(runs or []) + (baseline is not None) < 2:
            raise SettingsError(
                "Give the folders of two runs or more, or --series to train models to compare."
            )
        out = out or COMPARISON
        named = runs or []
        title = "Comparison of translators"
    comparison = api.compare(
        named,
        test=test,
        baseline=baseline,
        tokenize=tokenize,
        out=out,
        title=title,
        progress=ConsoleDisplay(console),
    )
    if json:
        print_json(comparison.to_dict())
        return
    general = [general_table(comparison)] if comparison.general_pairs else []
    for table in (score_table(comparison), *general, length_table(comparison)):
        console.print(table)
    console.print(f"\nPage with pictures and samples: [bold]{out / PAGE}[/]", highlight=False)


def _train_series(
    console: Console,
    out: Path,
    *,
    data: Path | None,
    pair: str | None,
    minutes: float | None,
    test: tuple[Path, Path] | None,
    overrides: list[str],
) -> dict[str, Path]:
    """Train the models of the series, or continue their training; return their runs."""
    from regard.corpora.sources import find_corpus
    from regard.runs.display import ConsoleDisplay
    from regard.studies.model_series import series_recipes, series_runs
    from regard.tasks.translation.training import train_many

    wanted = pair or "en-de"
    files = find_corpus(data, wanted, needs_test=test is None) if data is not None else None
    recipes = series_recipes(files, pair=wanted, minutes=minutes, overrides=overrides)
    try:
        train_many(recipes, out, display=ConsoleDisplay(console))
    except KeyboardInterrupt:
        typer.echo("Interrupted. Give the same command again to continue.", err=True)
        raise typer.Exit(130) from None
    return series_runs(out)


def score_table(comparison: Comparison) -> Table:
    """Return the figures of each model as a table for the terminal."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"\n{len(comparison.pairs):,} sentences; differences and speeds are from "
        f"“{comparison.baseline}”",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("model", min_width=12)
    # AER: alignment error rate in percent; million parameters; minutes of training.
    for head in ("BLEU", "diff.", "p", "chrF", "AER", "million", "min.", "speed"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in comparison.rows():
        tested = row["p_value"] is not None
        table.add_row(
            row["model"],
            f"{row['bleu']:.1f}",
            f"{row['difference']:+.1f}" if tested else "",
            f"{row['p_value']:.3f}" if tested else "",
            f"{row['chrf']:.1f}",
            _decimal(row["alignment_error_rate"]),
            f"{row['parameters'] / 1e6:.2f}",
            _decimal(row["training_minutes"]),
            f"{row['speed_ratio']:.2f}x",
        )
    return table


def general_table(comparison: Comparison) -> Table:
    """Return the BLEU of each model on general sentences, on which forgetting is seen."""
    from rich import box
    from rich.table import Table

    title = f"{len(comparison.general_pairs):,} general sentences, on which forgetting is seen"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("model", min_width=12)
    for head in ("BLEU", "95 %", "diff.", "p"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in comparison.rows():
        p_value = row["general_p_value"]
        table.add_row(
            row["model"],
            f"{row['general_bleu']:.1f}",
            f"{row['general_bleu_low']:.1f}-{row['general_bleu_high']:.1f}",
            "" if p_value is None else f"{row['general_difference']:+.1f}",
            "" if p_value is None else f"{p_value:.3f}",
        )
    return table


def length_table(comparison: Comparison) -> Table:
    """Return BLEU by the number of source words, a row a model."""
    from rich import box
    from rich.table import Table

    title = "BLEU by words in the source sentence"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("model", min_width=12)
    for band in comparison.first.bands:
        table.add_column(band.band.label, justify="right", no_wrap=True)
    for name, each in comparison.contestants.items():
        scores = [band.band.score for band in each.bands]
        table.add_row(name, *(_decimal(score.value if score else None) for score in scores))
    return table


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
