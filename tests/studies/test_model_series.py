from __future__ import annotations

from pathlib import Path

import pytest

from regard.base.errors import SettingsError
from regard.models.build import build_translator
from regard.models.inspection import parameter_count
from regard.settings.models import TransformerSettings
from regard.studies.model_series import BUILT_IN, ENTRIES, FROM_FILES, series_recipes, series_runs

FILES = {"train": (Path("a b/train.en"), Path("a b/train.de")),
         "test": (Path("it's/a,b[1].en"), Path('"x"/a\\b.de'))}  # fmt: skip
CASES = {"built-in": (None, BUILT_IN), "files": (FILES, FROM_FILES)}


@pytest.fixture(params=CASES.values(), ids=CASES)
def series(request: pytest.FixtureRequest):
    files, scale = request.param
    return series_recipes(files), scale


def test_all_models_have_the_same_budget_data_and_vocabulary(series):
    recipes, scale = series
    assert list(recipes) == list(ENTRIES)
    for recipe in recipes.values():
        first = next(iter(recipes.values()))
        assert recipe.data == first.data
        assert recipe.tokenizer == first.tokenizer
        assert recipe.batches.tokens == first.batches.tokens
        assert recipe.decoding == first.decoding
        assert recipe.training.minutes == scale.minutes
        for name in ("steps", "label_smoothing", "average", "seed", "validate_every"):
            assert getattr(recipe.training, name) == getattr(first.training, name)


def test_the_models_go_from_no_attention_to_the_transformer(series):
    recipes, _ = series
    models = {name: recipe.model for name, recipe in recipes.items()}
    looks = {"plain": "none", "dot": "dot", "bilinear": "bilinear", "additive": "additive"}
    for name, attention in looks.items():
        assert models[name].attention == attention
        assert models[name].hidden == models["plain"].hidden
        assert models[name].cell == models["plain"].cell
    assert models["additive"].decoder == "bahdanau"
    assert isinstance(models["transformer"], TransformerSettings)
    changed = models["transformer"].model_copy(update={"encoder": "convolutional"})
    assert models["convolutional"] == changed


def test_no_model_is_much_larger_than_the_others(series):
    recipes, _ = series
    sizes = [
        parameter_count(build_translator(recipe.model, source_vocab=6_000, target_vocab=6_000))
        for recipe in recipes.values()
    ]
    assert max(sizes) < 2.5 * min(sizes)


def test_the_titles_name_runs_and_recipes():
    runs, recipes = series_runs(Path("out")), series_recipes()
    assert list(runs) == [recipe.title for recipe in recipes.values()]
    assert [folder.name for folder in runs.values()] == list(recipes)


def test_whatever_files_are_called_they_stay_what_they_are():
    for recipe in series_recipes(FILES).values():
        for part, files in FILES.items():
            assert getattr(recipe.data, part) == tuple(map(str, files))
        assert recipe.data.valid == ()


def test_minutes_language_and_settings_can_be_chosen():
    overrides = ["training.minutes=3", "tokenizer.min_count=2"]
    for recipe in series_recipes(pair="en-fr", minutes=0.5).values():
        assert recipe.data.grammar.pair == "en-fr"
        assert recipe.training.minutes == 0.5
    for recipe in series_recipes(overrides=overrides).values():
        assert recipe.training.minutes == 3
        assert recipe.tokenizer.min_count == 2


def test_a_setting_that_a_model_lacks_is_refused():
    with pytest.raises(SettingsError, match=r"unknown key 'model.hidden'"):
        series_recipes(overrides=["model.hidden=8"])
