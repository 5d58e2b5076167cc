"""`regard explain`: which source words decided, by attention and by other methods, with grades."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.options import AsJson, RunFolder, print_json

if TYPE_CHECKING:
    from regard.tasks.translation.explanations import Explanation


def explain(
    run: RunFolder,
    text: Annotated[str | None, typer.Argument(help="A sentence in the source language.")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="attention, best-head, rollout, gradient, integrated-gradients, occlusion, "
            "value-zeroing, weighted-values or alti; by default all, side by side.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="A translation to explain, not the model's own.")
    ] = None,
    grade: Annotated[
        bool, typer.Option("--grade", help="Grade all methods on the run's test part.")
    ] = False,
    sentences: Annotated[
        int, typer.Option("--sentences", min=2, help="How many sentences to grade on.")
    ] = 100,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Heat map of a method (.png, .svg, .pdf), or .csv, .json."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show which source words decided on each target word, and how far each method can be trusted.

    Example: regard explain runs/demo/attention "cats do not like dogs"

    Example: regard explain runs/demo/transformer "cats like dogs" --method alti --out alti.png

    Example: regard explain runs/demo/transformer --grade
    """
    if grade:
        _grade(run, sentences=sentences, method=method, as_json=json)
        return
    if text is None:
        raise SettingsError("Give a sentence to explain, or ask for --grade.")
    if out is not None and method is None:
        raise SettingsError("A picture shows one method: name it, as --method attention.")
    from regard.api import explain

    found = explain(run, text, target=target, methods=None if method is None else [method])
    if out is not None:
        found[0].save(out)
    if json:
        print_json([each.to_dict() for each in found])
    elif out is not None:
        typer.echo(f"{found[0].text}\nWrote {out}")
    else:
        _show(found)


def _show(found: list[Explanation]) -> None:
    """Print the heat map of one method, or the word that each method names."""
    from rich.console import Console
    from rich.table import Table

    from regard.pictures.terminal import terminal_heat_map

    console = Console()
    if len(found) == 1:
        seen = found[0].by_word()
        console.print(
            terminal_heat_map(
                seen.weights, source=seen.source, target=seen.target, console_width=console.width
            ),
            highlight=False,
        )
        typer.echo(found[0].text)
        return
    words = found[0].by_word().target
    table = Table(title="the source word with the largest share", title_justify="left")
    table.add_column("method")
    for word in words:
        table.add_column(word)
    for each in found:
        seen = each.by_word()
        best = seen.weights.argmax(axis=1)
        shares = seen.weights.max(axis=1)
        table.add_row(
            each.method,
            *(
                f"{seen.source[place]} {share:.2f}"
                for place, share in zip(best, shares, strict=True)
            ),
        )
    (console if console.is_terminal else Console(width=160)).print(table, highlight=False)


def _grade(run: Path, *, sentences: int, method: str | None, as_json: bool) -> None:
    from regard.studies.explanations import grade_explanations

    found = grade_explanations(
        run, sentences=sentences, methods=None if method is None else [method]
    )
    if as_json:
        print_json(found.to_dict())
    else:
        typer.echo(str(found))
