from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError, SettingsError
from regard.tasks.attention import AttentionHeads
from regard.tasks.translation.model import LoadedTranslator, load
from regard.tasks.translation.views import translator_heads

TEXT = "badal kofen badal"
WORDS = ("the", "␣cat", "saw", "the", "cat")
HEADS = AttentionHeads("a text", np.tril(np.full((2, 3, 5, 5), 0.2)), WORDS, WORDS)


@pytest.fixture(scope="module")
def model(random_transformer_run: Path) -> LoadedTranslator:
    return load(random_transformer_run)


@pytest.mark.parametrize("part", ["cross", "encoder", "decoder"])
def test_every_part_has_weights_between_its_words(model: LoadedTranslator, part: str) -> None:
    said, heads = translator_heads(model, TEXT, part=part)
    source, target = tuple(TEXT.split()), tuple(said.split())
    rows, columns = {
        "cross": (target, source), "encoder": (source, source), "decoder": (target, target)
    }[part]  # fmt: skip
    assert (heads.target, heads.source) == (rows, columns)
    assert heads.weights.shape == (2, 2, len(rows), len(columns))
    assert (heads.weights.sum(axis=-1) <= 1.0001).all()  # the rest lies on the marks
    assert heads.looks_at_itself is (part != "cross")


@pytest.mark.parametrize("part", ["cross", "encoder", "decoder"])
def test_weights_between_pieces_sum_to_one(model: LoadedTranslator, part: str) -> None:
    _, heads = translator_heads(model, TEXT, part=part, pieces=True)
    np.testing.assert_allclose(heads.weights.sum(axis=-1), 1.0, atol=1e-4)
    marks = {"cross": "</s>", "encoder": "</s>", "decoder": "<s>"}
    assert marks[part] in (heads.target[-1], heads.target[0])


def test_one_head_a_layer_or_all_of_them() -> None:
    weights = np.arange(2 * 3).reshape(2, 3, 1, 1).astype(np.float32)
    heads = AttentionHeads("numbers", weights, ("a",), ("b",))
    assert [heads.of(*which).weights.item() for which in [(1, 2), (1, None), (None, None)]] == [
        5.0, 4.0, 2.5
    ]  # fmt: skip
    assert heads.to_dict()["weights"][1][2] == [[5.0]]


@pytest.mark.parametrize(
    ("layer", "head", "message"),
    [
        (2, None, "There is no layer 2: the layers are 0 to 1."),
        (-1, None, "There is no layer -1: the layers are 0 to 1."),
        (0, 3, "There is no head 3: the heads are 0 to 2."),
    ],
)
def test_what_is_not_there_is_refused_with_the_range(
    layer: int, head: int | None, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        HEADS.of(layer, head)


def test_a_single_layer_is_called_so() -> None:
    heads = AttentionHeads("one", np.ones((1, 1, 1, 1)), ("a",), ("a",))
    with pytest.raises(SettingsError, match="There is no head 1: there is head 0 only"):
        heads.check(0, 1)


def test_a_word_is_found_by_itself_or_by_its_number() -> None:
    assert [HEADS.place(word) for word in ("the", "the#2", "cat", "cat#2", "saw")] == [
        0, 3, 1, 4, 2
    ]  # fmt: skip
    hashed = AttentionHeads("c", np.ones((1, 1, 2, 2)), ("c#2", "c"), ("c#2", "c"))
    assert hashed.place("c#2") == 0


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("dog", "The text has no word 'dog'. Its words are: the cat saw the cat."),
        ("the#3", "The text has no such word 'the#3'"),
        ("the#0", "The text has no such word 'the#0'"),
    ],
)
def test_a_word_that_is_not_there(word: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        HEADS.place(word)


def test_mistakes(model: LoadedTranslator, toy_run: Path) -> None:
    with pytest.raises(RegardError, match="the text is empty"):
        translator_heads(model, "  ")
    with pytest.raises(SettingsError, match=r"Unknown part 'encodr'\. Did you mean 'encoder'"):
        translator_heads(model, TEXT, part="encodr")
    with pytest.raises(RegardError, match="only a Transformer has them"):
        translator_heads(load(toy_run), TEXT)
    across = AttentionHeads("a", np.ones((1, 1, 1, 2)), ("a", "b"), ("c",))
    with pytest.raises(SettingsError, match="Only self-attention leads from word to word"):
        across.place("a")


def test_it_shows_itself_in_a_notebook_and_draws_itself(tmp_path: Path) -> None:
    assert "layer 1, head 2" in HEADS._repr_html_()
    assert HEADS.plot(tmp_path / "heads.svg", layer=1).is_file()
    for where in ({}, {"layer": 1}, {"layer": 1, "head": 0}):
        assert HEADS.plot(**where)._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(SettingsError, match="Say of which layer: 0 to 1"):
        HEADS.plot(head=0)
