"""`regard demo`: three small translators learn English to German while you watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import AsJson, Overrides, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from regard.tasks.translation.evaluation import TrainedTranslator

RECIPES = {
    "plain": "demo-plain",
    "attention": "demo-attention",
    "transformer": "demo-transformer",
}
SENTENCE = "Cats do not like dogs."


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the runs.")] = Path("runs/demo"),
    overrides: Overrides = None,
    json: AsJson = False,
) -> None:
    """Train three small translators on the built-in corpus and look inside (under 5 minutes).

    A recurrent network without attention, the same with attention, and a Transformer.

    Example: regard demo --out runs/demo
    """
    from rich.console import Console

    from regard.tasks.translation.report import report_runs

    console = Console(stderr=json)
    trained = _train_all(console, out, overrides or [])
    report = out / "report.html"
    report_runs(trained, report, title="Regard demo: what attention is good for")
    if json:
        print_json({name: each.to_dict() for name, each in trained.items()})
        return
    _show_scores(console, trained)
    _show_samples(console, trained)
    _show_attention(console, trained)
    console.print(f"\nReport with pictures: [bold]{report}[/]", highlight=False)
    console.print(f'Try: [bold]regard translate {out / "attention"} "{SENTENCE}"[/]')


def _train_all(console: Console, out: Path, overrides: list[str]) -> dict[str, TrainedTranslator]:
    """Train each model, or take it as it is if an earlier demo has trained it."""
    from regard.runs.display import ConsoleDisplay
    from regard.settings.recipe import expect
    from regard.tasks import find_recipe
    from regard.tasks.translation.settings import TranslationRecipe
    from regard.tasks.translation.training import train_many

    recipes = {
        name: expect(find_recipe(recipe_name, overrides=overrides), TranslationRecipe)
        for name, recipe_name in RECIPES.items()
    }  # all of them first: a mistake in an override is told before anything is trained
    return train_many(recipes, out, display=ConsoleDisplay(console))


def _show_scores(console: Console, trained: Mapping[str, TrainedTranslator]) -> None:
    """Print BLEU by sentence length, a column a model."""
    from rich.table import Table

    evaluations = {name: each.evaluation for name, each in trained.items() if each.evaluation}
    table = Table(title="\nBLEU by sentence length", title_justify="left")
    table.add_column("words in the source")
    for name in evaluations:
        table.add_column(name, justify="right")
    first = next(iter(evaluations.values()))
    for row, band in enumerate(first.bands):
        scores = [each.bands[row].score for each in evaluations.values()]
        table.add_row(band.label, *(f"{score.value:.1f}" if score else "-" for score in scores))
    table.add_section()
    table.add_row("all", *(f"{each.bleu.value:.1f}" for each in evaluations.values()))
    console.print(table)


def _show_samples(console: Console, trained: Mapping[str, TrainedTranslator]) -> None:
    """Print a few test sentences as each model translates them."""
    evaluations = {name: each.evaluation for name, each in trained.items() if each.evaluation}
    first = next(iter(evaluations.values()))
    order = sorted(range(len(first.pairs)), key=lambda row: len(first.pairs[row].source.split()))
    for row in (order[len(order) // 4], order[len(order) // 2], order[-1]):
        console.print(f"\n[dim]{'source':>11}[/]  {first.pairs[row].source}", highlight=False)
        for name, each in evaluations.items():
            right = " [green]✓[/]" if each.translations[row].text == first.pairs[row].target else ""
            console.print(
                f"[dim]{name:>11}[/]  {each.translations[row].text}{right}", highlight=False
            )
        console.print(f"[dim]{'reference':>11}[/]  {first.pairs[row].target}", highlight=False)


def _show_attention(console: Console, trained: Mapping[str, TrainedTranslator]) -> None:
    """Print the heat map of one sentence for each model that has attention."""
    from regard.pictures.terminal import terminal_heat_map

    for name, each in trained.items():
        translation = each.model.translate(SENTENCE)
        if translation.attention is None or not translation.text:
            continue
        seen = translation.by_word()
        console.print(f"\n[bold]What each German word looks at[/] ({name})\n")
        console.print(
            terminal_heat_map(
                seen.weights, source=seen.source, target=seen.target, console_width=console.width
            )
        )
