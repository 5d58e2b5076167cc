"""`regard recipes`: what can be trained without writing a file."""

from typing import Annotated

import typer

from regard.cli.options import AsJson, print_json


def recipes(
    name: Annotated[str | None, typer.Argument(help="Show this recipe in full.")] = None,
    json: AsJson = False,
) -> None:
    """List the shipped recipes, or show one with all its settings.

    Example: regard recipes seq2seq-attention > mine.toml
    """
    from regard.runs.catalogue import recipe_names
    from regard.settings.recipe import recipe_text
    from regard.tasks import find_recipe

    if name is not None:
        recipe = find_recipe(name)
        if json:
            print_json(recipe.model_dump(mode="json"))
        else:
            typer.echo(recipe_text(recipe), nl=False)
        return
    titles = {each: find_recipe(each).title for each in recipe_names()}
    if json:
        print_json(titles)
        return
    width = max(len(each) for each in titles)
    for each, title in titles.items():
        typer.echo(f"{each:<{width}}  {title}")
