from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from regard.settings.recipe import recipe_text
from regard.tasks import parse_recipe, validate_recipe
from regard.tasks.translation.settings import TranslationRecipe

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FILES = st.lists(TEXT, max_size=2)
WIDE, RATE = st.integers(1, 10**9), st.floats(1e-9, 1e9)
TABLES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "data": {"train": FILES, "valid": FILES, "hold_out": WIDE},
    "tokenizer": {"kind": st.sampled_from(["character", "word"]), "size": st.integers(8, 9000)},
    "model": {
        "hidden": st.integers(1, 65_536).map(lambda n: 2 * n),
        "attention": TEXT,
        "bidirectional": st.booleans(),
        "dropout": st.floats(0, 1, exclude_max=True),
        "source_vocab": st.none() | st.integers(5, 9),
    },
    "training": {
        "minutes": st.none() | RATE,
        "learning_rate": RATE,
        "patience": st.none() | WIDE,
        "tensorboard": st.booleans(),
    },
    "decoding": {"length_penalty": st.floats(0, 10), "beam": st.integers(1, 1_000)},
}
RECIPES = st.fixed_dictionaries(
    {"title": TEXT},
    optional={
        name: st.fixed_dictionaries({}, optional=fields)  # type: ignore[arg-type]
        for name, fields in TABLES.items()
    },
)


@settings(deadline=None, max_examples=200)
@given(RECIPES)
def test_any_recipe_comes_back_from_its_text(table: dict[str, Any]) -> None:
    recipe = validate_recipe(table, origin="here")
    assert parse_recipe(recipe_text(recipe), origin="there") == recipe


def test_the_text_is_complete_and_readable() -> None:
    text = recipe_text(TranslationRecipe(title='"Grüße"'))
    assert text.startswith('task = "translate"\ntitle = "\\"Grüße\\""\n')
    assert "\n[data.grammar]\n" in text
    assert '\ncell = "lstm"\n' in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_recipes_are_frozen() -> None:
    recipe = TranslationRecipe()
    try:
        recipe.title = "other"  # type: ignore[misc]
    except ValidationError as error:
        assert "frozen" in str(error)
    assert recipe.title == ""
