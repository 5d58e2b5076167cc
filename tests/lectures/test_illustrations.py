"""What the illustrations claim, and what can be changed of them."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from regard.base.errors import RegardError, SettingsError
from regard.cli.app import app, main
from regard.lectures.illustrations import ILLUSTRATIONS, illustrate, options, read_options
from regard.pictures.matrices import NamedMatrix


def figures(name: str, **numbers: float | int | bool) -> dict[str, float]:
    return dict(illustrate(name, **numbers).figures)


def test_the_softmax_makes_shares_and_bounds_the_context() -> None:
    weak, strong = (figures("without-softmax", strength=each) for each in (1, 10))
    assert weak["sum_with"] == pytest.approx(1) == strong["sum_with"]
    assert strong["length_without"] == pytest.approx(10 * weak["length_without"])
    assert strong["length_with"] < 1.1


@pytest.mark.parametrize("word", [1, 3, 5])
def test_a_strong_query_like_a_key_gives_its_value(word: int) -> None:
    assert figures("extreme-case", strength=50, word=word)["gap"] < 1e-3
    assert figures("extreme-case", strength=1, word=word)["gap"] > 0.1


def test_order_counts_only_with_positions() -> None:
    assert figures("any-order")["difference"] < 1e-12
    assert figures("any-order", positions=True)["difference"] > 0.05


@pytest.mark.parametrize("bits", [1, 4, 6])
def test_waves_have_the_signs_of_bits(bits: int) -> None:
    assert figures("binary-positions", bits=bits)["agreement"] == 1


@pytest.mark.parametrize("width", [1, 3, 5])
def test_heads_give_what_the_convolution_gives(width: int) -> None:
    assert figures("heads-as-convolution", width=width)["difference"] < 1e-5


@pytest.mark.parametrize("by", [1, 4])
def test_only_relative_attention_follows_a_shift(by: int) -> None:
    found = figures("shift", by=by)
    assert found["relative"] < 1e-6 < 0.05 < found["sinusoidal"]


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("softmax", [], "There is no illustration 'softmax'; choose one of: without-softmax"),
        ("shift", ["far=2"], "The illustration shift has no 'far'; it has: by."),
        ("shift", ["by=far"], "--set by=far: by must be a whole number."),
        ("any-order", ["positions=1"], "--set positions=1: positions must be true or false."),
        ("extreme-case", ["strength=x"], "--set strength=x: strength must be a number."),
        ("extreme-case", ["word=6"], "word = 6: the sentence has words 1 to 5."),
        ("binary-positions", ["bits=7"], "bits = 7: choose 1 to 6, for 2 to 64 positions."),
        ("heads-as-convolution", ["width=2"], "width = 2: choose 1, 3 or 5"),
        ("shift", ["by=5"], "by = 5: choose a shift of 1 to 4 places."),
    ],
)
def test_mistakes_are_told(name: str, given: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        illustrate(name, **read_options(name, given))
    assert str(caught.value).startswith(message)


def test_labels_must_fit() -> None:
    with pytest.raises(RegardError, match=r"a: 1 labels do not fit 2 entries\."):
        NamedMatrix("a", np.zeros((2, 2)), ["one"])


def test_the_command_lists_shows_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = CliRunner().invoke(app, ["illustrate"]).output
    assert all(name in listed for name in ILLUSTRATIONS)
    assert set(json.loads(CliRunner().invoke(app, ["illustrate", "--json"]).output)) == set(
        ILLUSTRATIONS
    )
    picture, numbers = tmp_path / "order.svg", tmp_path / "order.csv"
    for path in (picture, numbers):
        shown = CliRunner().invoke(
            app, ["illustrate", "any-order", "--set", "positions=true", "--out", str(path)]
        )
        assert "Now the order counts." in shown.output
    assert "ATT(B,C,A)" in picture.read_text() and "ATT(B,C,A)" in numbers.read_text()
    given = CliRunner().invoke(app, ["illustrate", "shift", "--set", "by=3", "--json"]).output
    assert json.loads(given)["figures"]["relative"] < 1e-6
    with pytest.raises(SystemExit):
        main(["illustrate", "nothing"])
    assert "no illustration 'nothing'" in capsys.readouterr().err


def test_an_illustration_shows_itself_in_a_notebook() -> None:
    assert "<svg" in illustrate("any-order")._repr_html_()
    assert options("any-order") == {"positions": False}
