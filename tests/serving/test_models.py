"""Loading runs to serve them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from regard.base.errors import SettingsError
from regard.runs.report import keep_examples
from regard.runs.run import Run
from regard.serving.languages import UNNAMED, Pair
from regard.serving.models import example_sentences, load_models
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import DataSettings, GrammarSettings


def test_runs_get_names_and_languages(random_transformer_run: Path) -> None:
    run = random_transformer_run
    said: list[str] = []
    first, second = load_models(
        [run, run], pairs=["en-de", "de-en"], engine="torch", report=said.append
    )
    assert (first.name, second.name) == ("transformer", "transformer-2")
    assert (first.pair, second.pair) == (Pair("en", "de"), Pair("de", "en"))
    assert said == ["Engine: torch.", "Engine: torch."]
    assert first.examples == ()  # it was not trained, and has kept nothing


def test_one_pair_may_be_for_all_and_examples_may_be_left_out(random_transformer_run: Path) -> None:
    models = load_models(
        [random_transformer_run] * 2, pairs=["cs-sk"], engine="torch", examples=False
    )
    assert [str(model.pair) for model in models] == ["cs-sk", "cs-sk"]
    assert models[0].examples == ()


def test_nothing_is_converted_for_a_search_that_ctranslate2_lacks(
    random_transformer_run: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(random_transformer_run, tmp_path / "run"))
    recipe = load(folder).recipe
    decoding = recipe.decoding.model_copy(update={"no_repeat_ngram": 3})
    Run.open(folder).rewrite(recipe.model_copy(update={"decoding": decoding}))
    said: list[str] = []
    (model,) = load_models([folder], pairs=["en-de"], threads=1, report=said.append)
    assert said == ["Engine: torch (ctranslate2 cannot be used: it lacks no_repeat_ngram)."]
    assert model.translator.engine.name == "torch"
    assert not (folder / "engines").exists()


def test_pairs_that_do_not_fit_are_refused(random_transformer_run: Path) -> None:
    with pytest.raises(SettingsError, match="--pair was given 2 times for 3 runs"):
        load_models([random_transformer_run] * 3, pairs=["en-de", "de-en"])


def test_a_run_is_served_also_if_nothing_names_its_languages(random_transformer_run: Path) -> None:
    (model,) = load_models([random_transformer_run])
    assert model.pair == UNNAMED


def test_examples_come_from_the_grammar(tmp_path: Path) -> None:
    data = DataSettings(grammar=GrammarSettings(words="small", max_words=24))
    found = example_sentences(tmp_path, data)
    assert len(set(found)) == 6
    assert all(5 <= len(text.split()) <= 14 for text in found)


def test_examples_come_from_the_run_and_never_from_files_that_its_recipe_names(
    tmp_path: Path,
) -> None:
    private = tmp_path / "private"
    private.write_text("only I may read this line\n" * 9)
    run = tmp_path / "run"
    run.mkdir()
    files = (str(private), str(private))
    data = DataSettings(train=files, valid=files, test=files)
    assert example_sentences(run, data) == ()
    keep_examples(run, ["a sentence that the training kept"])
    assert example_sentences(run, data) == ("a sentence that the training kept",)
