from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import SettingsError
from regard.settings.recipe import parse_value
from regard.tasks import parse_recipe, read_recipe


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("5", 5),
        ("1e-3", 1e-3),
        ("true", True),
        ('"5"', "5"),
        ("gru", "gru"),
        ("a/b.en", "a/b.en"),
        ("[1, 2]", [1, 2]),
        ("[a.en,a.de]", ["a.en", "a.de"]),
        ("[ a.en , a.de ]", ["a.en", "a.de"]),
        ('["a.en", a.de]', ["a.en", "a.de"]),
        ("[]", []),
        ("", ""),
    ],
)
def test_values_are_read_as_toml_or_else_as_text(raw: str, value: Any) -> None:
    assert parse_value(raw) == value


def test_overrides_change_what_the_text_says() -> None:
    recipe = parse_recipe(
        "[model]\nhidden = 32\ncell = 'gru'",
        overrides=["model.hidden=64", "data.train=[a.en,a.de]", "training.steps = 7", "title=T"],
        origin="here",
    )
    assert (recipe.model.hidden, recipe.model.cell) == (64, "gru")
    assert recipe.data.train == ("a.en", "a.de")
    assert (recipe.training.steps, recipe.title) == (7, "T")


# Name of the case: TOML text, overrides, what must stand in the message.
MISTAKES: dict[str, tuple[str, list[str], str]] = {
    "unknown key": (
        "[model]\nhiden = 5",
        [],
        "here: unknown key 'model.hiden'. Did you mean 'hidden'?",
    ),
    "renamed key": (
        "task = 'language-model'\n[training]\nsecond_beta = 0.9",
        [],
        "here: the key 'training.second_beta' is now called 'training.beta2'.",
    ),
    "renamed key on the command line": (
        "task = 'language-model'",
        ["training.second_beta=0.9"],
        "the key 'training.second_beta' is now called 'training.beta2'.",
    ),
    "unknown key at the top": ("modle = 5", [], "unknown key 'modle'. Did you mean 'model'?"),
    "unknown key far from all": (
        "[tokenizer]\nxyz = 5",
        [],
        "unknown key 'tokenizer.xyz'. Known: kind, mark_capitals, min_count,",
    ),
    "unknown key deep down": (
        "[data.grammar]\nsede = 1",
        [],
        "unknown key 'data.grammar.sede'. Did you mean 'seed'?",
    ),
    "unknown key by override": ("", ["training.step=5"], "Did you mean 'steps'?"),
    "wrong type": ("[model]\nhidden = 'wide'", [], "model.hidden: Input should be a valid integer"),
    "wrong type shows the value": ("[model]\nhidden = 'wide'", [], "(given: 'wide')."),
    "a value for a table": ("model = 5", [], "model: Input should be a valid dictionary"),
    "wrong choice": ("[model]\ncell = 'gur'", [], "model.cell: Input should be 'tanh', 'gru'"),
    "too small": ("[training]\nsteps = 0", [], "training.steps: Input should be greater than"),
    "not a number": ("[training]\nlearning_rate = nan", [], "training.learning_rate: Input should"),
    "infinite": ("[training]\nminutes = inf", [], "training.minutes: Input should be a finite"),
    "negative seed": ("[training]\nseed = -1", [], "training.seed: Input should be greater than"),
    "odd width": (
        "[model]\nhidden = 33",
        [],
        "model: hidden (33) must be even when bidirectional is true.",
    ),
    "range upside down": (
        "[data.grammar]\nmin_words = 9\nmax_words = 5",
        [],
        "data.grammar: min_words (9) must not exceed max_words (5).",
    ),
    "two origins": (
        "",
        ["data.train=a.tsv", "data.built_in=true"],
        "data: built_in and train exclude each other; choose one.",
    ),
    "unknown task": ("task = 'translat'", [], "Unknown task in here: 'translat'. Did you mean"),
    "invalid TOML": ("model = [", [], "here is not valid TOML: "),
    "override without value": ("", ["model.hidden"], "--set 'model.hidden' is not of the form"),
    "override without key": ("", ["=5"], "--set '=5' is not of the form key=value."),
    "override with a gap": ("", ["model..hidden=5"], "is not of the form key=value."),
    "override into a value": (
        "title = 'x'",
        ["title.size=5"],
        "--set 'title.size=5': 'title' is a value, not a table of settings.",
    ),
}


@pytest.mark.parametrize(("text", "overrides", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_in_one_sentence(text: str, overrides: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_recipe(text, overrides=overrides, origin="here")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Cannot read the recipe .*no\.toml: No such file"):
        read_recipe(tmp_path / "no.toml")


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes("title = 'Köln'".encode("latin-1"))
    with pytest.raises(SettingsError, match=r"latin\.toml is not UTF-8 text"):
        read_recipe(path)


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbftitle = 'x'\r\n")
    assert read_recipe(path).title == "x"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("average = 1", "average (1) must be 0 for none, or at least 2 checkpoints"),
        ("average = 3\nema = 0.9", "average and ema exclude each other"),
    ],
)
def test_averages_that_make_no_sense_are_refused(settings: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_recipe(f"[training]\n{settings}", origin="here")
    assert message in str(caught.value)
