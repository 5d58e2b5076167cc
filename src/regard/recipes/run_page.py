"""A run in a notebook: what was trained, how it learned, and what its test found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from regard.base.errors import RunError
from regard.pictures.curves import learning_curves_svg
from regard.pictures.svg import notebook_lines, notebook_picture
from regard.recipes.learning import histories_of
from regard.recipes.run import RECIPE, Run
from regard.settings.read import read_recipe


def run_html(run: Run) -> str:
    """Return a run as HTML: a few lines, and its learning curves."""
    recipe = read_recipe(run.folder / RECIPE)
    lines = [("run", str(run.folder)), ("task", recipe.task)]
    lines += [("title", recipe.title)] if recipe.title else []
    shown = notebook_lines(*lines, *_tested(run))
    try:
        histories = histories_of(run.folder)
    except RunError:  # nothing was trained yet
        return shown
    return shown + notebook_picture(learning_curves_svg(histories), label="learning curves")


def _tested(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the test; those that carry a signature with it."""
    path = run.folder / "test.json"
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for name, value in found.items():
        if isinstance(value, dict) and "signature" in value:
            yield str(value["name"]), f"{value['value']:.2f} ({value['signature']})"
        elif isinstance(value, int | float):
            yield name, f"{value:.4g}"
