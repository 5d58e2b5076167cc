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
        ("softmax", [], "There is no illustration 'softmax'; choose one of: dilution"),
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


def test_gates_of_0_and_1_keep_and_write() -> None:
    assert figures("single-gate", gate=0, write_at=3)["change"] == 0
    assert figures("single-gate", gate=1)["state"] == pytest.approx(np.tanh(0.2))
    kept = figures("lstm-cell", forget=1, write=0)
    assert kept["first"] == kept["last"] == pytest.approx(np.tanh(0.8))
    assert figures("lstm-cell", output=0)["shown"] == 0


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_only_the_right_indices_give_the_recurrence(keep: float) -> None:
    found = figures("unrolled-gates", keep=keep)
    assert found["right"] < 1e-12 < 0.01 < found["wrong"]


def test_early_words_are_diluted_but_not_for_attention() -> None:
    short, long = figures("dilution", words=4), figures("dilution", words=20)
    assert long["tanh"] < short["tanh"] < 1
    assert long["gated"] == pytest.approx(0.8**19)
    *_, last = illustrate("dilution").matrices[0].values
    assert np.allclose(last, 1)


def test_two_words_are_what_the_layer_computes() -> None:
    x, q, k, v, _, scores, weights, z = (each.values for each in illustrate("two-words").matrices)
    assert x.shape == (2, 4)
    assert np.allclose(scores, q @ k.T / np.sqrt(3))
    assert np.allclose(weights, np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    assert np.allclose(z, weights @ v)
    assert figures("two-words", scaled=False)["to_itself"] > figures("two-words")["to_itself"]


def test_division_keeps_the_softmax_soft() -> None:
    wide = figures("scaling", width=1024)
    assert wide["largest_raw"] > 0.95 > wide["largest"]


@pytest.mark.parametrize("heads", [1, 8])
def test_heads_stand_side_by_side(heads: int) -> None:
    joined, output, result = (each.values for each in illustrate("concatenated-heads",
                                                                 heads=heads).matrices)  # fmt: skip
    assert joined.shape == (2, 3 * heads)
    assert np.allclose(joined @ output, result) and result.shape == (2, 4)


def test_the_mask_hides_the_future() -> None:
    assert figures("causal")["ahead"] == 0 < figures("causal", masked=False)["ahead"]


@pytest.mark.parametrize("span", [2, 6])
def test_patterns_save_pairs(span: int) -> None:
    shares = figures("patterns", span=span)
    assert shares.pop("all_earlier_words") == 1
    assert all(0 < share < 1 for share in shares.values())


def test_only_neighbours_get_weight() -> None:
    assert figures("graph-attention", slope=1)["outside"] == 0
    weights = illustrate("graph-attention").matrices[3].values
    assert np.allclose(weights.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("single-gate", {"gate": 2}, "gate = 2: a gate lies between 0 and 1."),
        ("single-gate", {"write_at": 0}, "write_at = 0: the steps are 1 to 6."),
        ("lstm-cell", {"forget": -1}, "forget = -1: a gate lies"),
        ("unrolled-gates", {"keep": 3}, "keep = 3: a gate lies"),
        ("dilution", {"words": 1}, "words = 1: choose 2 to 40."),
        ("dilution", {"scale": 0}, "scale = 0: choose a scale above 0, up to 3."),
        ("scaling", {"width": 0}, "width = 0: choose 1 to 1024."),
        ("concatenated-heads", {"heads": 9}, "heads = 9: choose 1 to 8."),
        ("patterns", {"span": 7}, "span = 7: choose 2 to 6."),
        ("graph-attention", {"slope": 2}, "slope = 2: choose 0 to 1"),
    ],
)
def test_numbers_out_of_range_are_told(name: str, numbers: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        illustrate(name, **numbers)
    assert str(caught.value).startswith(message)
