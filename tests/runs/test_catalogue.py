from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import SettingsError
from regard.runs.catalogue import recipe_names
from regard.settings.recipe import recipe_text
from regard.tasks import find_recipe, parse_recipe


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_is_valid_and_comes_back_from_its_text(name: str) -> None:
    recipe = find_recipe(name)
    assert recipe.title
    assert parse_recipe(recipe_text(recipe), origin=name) == recipe


def test_the_recipes_of_the_first_steps_are_there() -> None:
    assert {"seq2seq", "seq2seq-attention"} <= set(recipe_names())


def test_a_users_recipe_is_found_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("title = 'mine'", encoding="utf-8")
    assert find_recipe(f"{tmp_path}/mine.toml").title == "mine"


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(SettingsError, match=r"Did you mean 'seq2seq-attention'\?"):
        find_recipe("seq2seq-atention")
