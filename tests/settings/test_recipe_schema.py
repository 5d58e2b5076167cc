from __future__ import annotations

from typing import Literal

import pytest

from regard.base.errors import SettingsError
from regard.settings.recipe import Recipe, expect
from regard.tasks import TASKS, task_of
from regard.tasks.translation.settings import TranslationRecipe


class Weather(Recipe):
    task: Literal["weather"] = "weather"


def test_a_recipe_of_the_right_task_is_handed_on() -> None:
    recipe = TranslationRecipe()
    assert expect(recipe, TranslationRecipe) is recipe


def test_a_recipe_of_another_task_is_refused() -> None:
    with pytest.raises(SettingsError, match="the task 'translate', not 'weather'"):
        expect(Weather(), TranslationRecipe)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_registered_under_its_own_name(task: str) -> None:
    assert task_of(task).schema.model_fields["task"].default == task
