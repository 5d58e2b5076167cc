"""`regard forecast`: train on a column of a CSV file and see how well it can be forecast."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, Overrides, print_json


def forecast(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Rows of numbers, one a step.")],
    column: Annotated[
        str | None, typer.Option("--column", help="Column to forecast, by its name.")
    ] = None,
    window: Annotated[int, typer.Option("--window", min=1, help="Values to read.")] = 20,
    horizon: Annotated[int, typer.Option("--horizon", min=1, help="Values to forecast.")] = 1,
    attention: Annotated[
        str, typer.Option("--attention", help='Over the window: "softmax", "lecture" or "none".')
    ] = "softmax",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder of the run, new or empty; runs/forecast-FILE if left out."
        ),
    ] = None,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Forecast a column of a CSV file; the naive forecast repeats the last value, for comparison.

    The end of the series is the test.

    Example: regard forecast prices.csv --column close --window 30
    """
    from regard import api

    trained = api.forecast(
        file,
        column=column,
        window=window,
        horizon=horizon,
        attention=attention,
        out=out or Path("runs") / f"forecast-{file.stem}",
        set=overrides or [],
    )
    next_values = trained.upcoming()
    if json:
        print_json(
            {
                **trained.to_dict(),
                "column": trained.windows.series.name,
                "next": next_values,
            }
        )
        return
    *results, place = trained.lines()
    for line in results:
        typer.echo(line)
    typer.echo("next: " + ", ".join(f"{value:.6g}" for value in next_values))
    typer.echo(f"{place}   picture: {trained.pictures[0]}")
