"""`regard forecast`: train on a column of a CSV file and see how well it can be forecast."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import AsJson, Overrides, print_json


class DecimalChoice(StrEnum):
    """The decimal marks of a file."""

    auto = "auto"
    point = "point"
    comma = "comma"


class GapChoice(StrEnum):
    """What can be done with empty cells."""

    refuse = "refuse"
    interpolate = "interpolate"
    drop = "drop"


def forecast(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Rows of numbers, one a step.")],
    column: Annotated[
        str | None, typer.Option("--column", help="Column to forecast, by its name.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="Another column that the model reads. May be given often."),
    ] = None,
    dates: Annotated[
        str | None,
        typer.Option("--dates", help="Column of dates; found automatically if left out."),
    ] = None,
    decimal: Annotated[
        DecimalChoice,
        typer.Option("--decimal", help="Decimal mark; auto takes the one that the numbers show."),
    ] = DecimalChoice.auto,
    gaps: Annotated[
        GapChoice, typer.Option("--gaps", help="What to do with empty cells.")
    ] = GapChoice.refuse,
    season: Annotated[
        int | None,
        typer.Option(
            "--season", min=0, help="Steps of a season, for a baseline; found if left out, 0: none."
        ),
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
    """Forecast a column of a CSV file, compared with repeating the last value or season.

    The end of the series is the test.

    Example: regard forecast prices.csv --column close --window 30 --gaps interpolate
    """
    from regard import api

    trained = api.forecast(
        file,
        column=column,
        inputs=inputs or (),
        dates=dates,
        decimal=decimal.value,
        gaps=gaps.value,
        season=season,
        window=window,
        horizon=horizon,
        attention=attention,
        out=out or Path("runs") / f"forecast-{file.stem}",
        set=overrides or [],
    )
    future = trained.future()
    if json:
        print_json(
            {
                **trained.to_dict(),
                "column": trained.windows.series.name,
                **future.to_dict(),
            }
        )
        return
    *results, place = trained.lines()
    for line in results:
        typer.echo(line)
    for label, value, low, high in zip(
        future.labels(), future.values, future.low, future.high, strict=True
    ):
        typer.echo(f"next: {label}  {value:.6g}  (90 % of past errors: {low:.6g} to {high:.6g})")
    typer.echo(f"{place}   picture: {trained.pictures[0]}")
