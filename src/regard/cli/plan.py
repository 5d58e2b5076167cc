"""`regard plan`: what a training takes on several devices and machines."""

from typing import Annotated

import typer

from regard.cli.options import AsJson, Overrides, column_names, print_json
from regard.cli.train import Data, Test, Valid, show_lines


def plan(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A shipped recipe's name, or a .toml file.")
    ],
    data: Data = None,
    valid: Valid = None,
    test: Test = None,
    pair: Annotated[
        str | None, typer.Option("--pair", help="Languages from and to, as en-de.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="Columns of a table, by name or number: en,de or 1,3."),
    ] = None,
    built_in: Annotated[
        bool, typer.Option("--built-in", help="Plan for the built-in data.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="The limit in minutes, if there is one.")
    ] = None,
    devices: Annotated[int, typer.Option("--devices", help="Devices of each machine.")] = 1,
    machines: Annotated[int, typer.Option("--machines", help="Number of machines.")] = 1,
    memory: Annotated[
        float | None, typer.Option("--memory", help="Gigabytes of memory of a device.")
    ] = None,
    speedup: Annotated[
        float,
        typer.Option(
            "--speedup", help="How many times as fast as one process here a device computes."
        ),
    ] = 1.0,
    bandwidth: Annotated[
        float | None,
        typer.Option("--bandwidth", help="Gigabytes a second that a device sends to others."),
    ] = None,
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Calculate memory, traffic and time of a training on several devices and machines.

    A few updates are measured here; nothing is trained or written.

    Example: regard plan transformer-base --data pairs.tsv --devices 8 --machines 8 --memory 24
    """
    from regard.runs.scaling import Hardware
    from regard.tasks.planning import plan_on

    hardware = Hardware(
        devices=devices, machines=machines, memory=memory, speedup=speedup, bandwidth=bandwidth
    )
    parts = {"train": data, "valid": valid, "test": test}
    found = plan_on(
        hardware,
        recipe,
        data={part: files for part, files in parts.items() if files} or None,
        pair=pair,
        columns=column_names(columns),
        built_in=built_in,
        minutes=minutes,
        set=overrides or [],
    )
    if json:
        print_json(found.to_dict())
    else:
        show_lines(str(found).splitlines())
