"""`regard recipes`: what can be trained without writing a file, and every setting of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.options import AsJson, print_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from regard.settings.recipe import Recipe
    from regard.settings.reference import Found, Setting


def recipes(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Show all settings of this recipe.")
    ] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="WORD", help="Find settings by a word.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List the shipped recipes, show all settings of one, or find a setting.

    What is shown can be changed with --set, as --set training.steps=500. Written into a file,
    a recipe is TOML: regard recipes seq2seq-attention > mine.toml

    Example: regard recipes --search minutes
    """
    from regard.runs.catalogue import recipe_names
    from regard.tasks import find_recipe

    if search is not None:
        names = [name] if name is not None else recipe_names()
        _search(search, {each: find_recipe(each) for each in names}, json=json)
    elif name is not None:
        _show(find_recipe(name), name, json=json)
    else:
        _list({each: find_recipe(each).title for each in recipe_names()}, json=json)


def _list(titles: dict[str, str], *, json: bool) -> None:
    if json:
        print_json(titles)
        return
    width = max(len(each) for each in titles)
    for each, title in titles.items():
        typer.echo(f"{each:<{width}}  {title}")


def _show(recipe: Recipe, name: str, *, json: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    from regard.settings.reference import commented_text, settings_of, tables_of

    console = Console()
    if json:
        keys = {setting.key: setting.to_dict() for setting in settings_of(recipe)}
        print_json({**recipe.model_dump(mode="json"), "keys": keys})
        return
    if not console.is_terminal:
        typer.echo(commented_text(recipe), nl=False)
        return
    console.print(f"[bold]{name}[/]: {recipe.title}", highlight=False)
    for table in tables_of(recipe):
        if table.name:
            console.print(f"\n[bold]\\[{table.name}][/]  [dim]{escape(table.description)}[/]")
        grid = _grid()
        for setting in table.settings:
            grid.add_row(setting.name, _value(setting), escape(setting.text))
        console.print(grid)
    console.print(
        "\n[bold]Bold[/]: set by the recipe; - : not set. Change one with --set KEY=VALUE, "
        f"as --set training.minutes=10.\nAs a file: regard recipes {name} > mine.toml",
        highlight=False,
    )


def _grid() -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(min_width=15, style="cyan", no_wrap=True)
    grid.add_column(min_width=10, max_width=24, overflow="fold")
    grid.add_column(ratio=1)
    return grid


def _value(setting: Setting) -> str:
    from rich.markup import escape

    if not setting.given:
        return f"[dim]{escape(_shown(setting.value))}[/]"
    default = _shown(setting.default)
    was = f"\n[dim]default {escape(default)}[/]" if setting.value != setting.default else ""
    return f"[bold]{escape(_shown(setting.value))}[/]{was}"


def _shown(value: Any) -> str:
    from regard.settings.recipe import toml_value

    return "-" if value in (None, [], "") else toml_value(value)


def _search(word: str, recipes: dict[str, Recipe], *, json: bool) -> None:
    from rich.console import Console

    from regard.settings.reference import search

    found = search(word, recipes)
    if json:
        print_json([one.to_dict() for one in found])
        return
    console = Console()
    for number, one in enumerate(found):
        _print_found(console, one, all_of=recipes, first=number == 0)


def _print_found(console: Console, found: Found, *, all_of: dict[str, Recipe], first: bool) -> None:
    """Print a key, what it is, and where it has which value."""
    from rich.markup import escape
    from rich.padding import Padding

    setting = found.setting
    console.print(
        f"{'' if first else chr(10)}[bold cyan]{setting.key}[/] = "
        f"{escape(_shown(setting.default))}",
        highlight=False,
    )
    tasks = sorted({all_of[name].task for name in found.recipes})
    others = [
        f"{name} {_shown(value)}"
        for name, value in found.recipes.items()
        if value != setting.default
    ]
    lines = [escape(setting.text), f"[dim]task: {', '.join(tasks)}[/]"]
    if others:
        lines.append(f"[dim]otherwise in: {escape(', '.join(others))}[/]")
    for line in lines:
        console.print(Padding(line, (0, 0, 0, 4)), highlight=False)
