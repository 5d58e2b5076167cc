from __future__ import annotations

import pytest

from regard.base.errors import SettingsError
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.node_classification.settings import GraphRecipe


def test_the_shipped_recipe_has_the_papers_settings() -> None:
    recipe = expect(find_recipe("gat-cora"), GraphRecipe)
    assert (recipe.model.heads, recipe.model.head_dim, recipe.model.dropout) == (8, 8, 0.6)
    assert (recipe.training.l2, recipe.training.learning_rate) == (5e-4, 0.005)
    assert (recipe.training.patience, recipe.training.select) == (100, "both")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.graph=a.npz", "data.edges=b.csv"], "either graph, or edges with features"),
        (["data.edges=b.csv"], "edges, features and labels must be given together"),
        (["model.head=8"], "unknown key 'model.head'. Did you mean 'heads'"),
        (["model.dropout=1.5"], "model.dropout"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        find_recipe("gat-cora", overrides=overrides)
