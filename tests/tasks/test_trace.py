from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError, SettingsError
from regard.models.inspection import Trace, TracedArray
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe, trace_recipe, trace_run
from regard.tasks.node_classification.settings import GraphRecipe
from regard.tasks.node_classification.training import train_node_classifier

SMALL = ["model.hidden=6", "model.embedding=4", "tokenizer.kind=word", "model.dropout=0"]
SENTENCE = "to be or not to be"


def trace(recipe: str, text: str, *overrides: str) -> Trace:
    return trace_recipe(find_recipe(recipe, overrides=list(overrides)), text)


@pytest.mark.parametrize("recipe", ["fibonacci-rnn", "fibonacci-attention", "fibonacci-lecture"])
def test_a_forecaster_shows_how_its_context_is_built(recipe: str) -> None:
    found = trace(recipe, "last")
    assert found.family == "forecaster"
    assert found["input"].shape == (20,)
    assert found["state"].shape == (20, 2)
    if recipe == "fibonacci-rnn":
        np.testing.assert_allclose(found["context"], found["state"][-1])
    else:
        by_hand = found["alpha"] @ found["state"]  # the bias begins at zero
        np.testing.assert_allclose(found["context"], by_hand)
        np.testing.assert_allclose(found["alpha_state"].sum(0), by_hand)
    if recipe == "fibonacci-attention":
        expected = np.exp(found["score"]) / np.exp(found["score"]).sum()
        np.testing.assert_allclose(found["alpha"], expected)


@pytest.mark.parametrize("recipe", ["seq2seq-attention", "bahdanau", "luong"])
def test_a_recurrent_translator_shows_every_step(recipe: str) -> None:
    found = trace(recipe, SENTENCE, *SMALL)
    source, target = len(found.labels["source"]), len(found.labels["target"])
    assert source == 7
    assert found["embedding"].shape[0] == found["encoder_state"].shape[0] == source
    assert found["decoder_state"].shape[0] == target
    assert found["score"].shape == found["weight"].shape == (target, source)
    np.testing.assert_allclose(found["weight"].sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        found["context"], found["weight"] @ found["encoder_state"], atol=1e-6
    )
    scores = np.exp(found["score"])
    np.testing.assert_allclose(found["weight"], scores / scores.sum(1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(found["probability"].sum(1), 1, rtol=1e-5)
    assert found["probability"].shape == (target, len(found.labels["vocab"]))
    assert any(array.name.startswith("part.encoder") for array in found.parts)


def formulas_of(found: Trace) -> dict[str, str]:
    return {array.name: array.formula for array in found.arrays}


@pytest.mark.parametrize("recipe", ["luong", "bahdanau"])
@pytest.mark.parametrize("heads", [1, 2])
def test_scores_of_several_heads_have_an_axis_of_heads(recipe: str, heads: int) -> None:
    overrides = [*SMALL, "model.attention=multi-head", f"model.heads={heads}"]
    found = trace(recipe, SENTENCE, *overrides)
    source, target = len(found.labels["source"]), len(found.labels["target"])
    (score,) = (array for array in found.arrays if array.name == "score")
    assert score.axes == ("target", "head", "source")
    assert score.values.shape == (target, heads, source)
    alone = np.exp(score.values)
    alone /= alone.sum(2, keepdims=True)
    np.testing.assert_allclose(found["weight"], alone.mean(1), rtol=1e-4)
    (_, table) = found.tables()
    assert len(table.rows) == target
    assert "score[1, to]" in table.columns
    formulas = formulas_of(found)
    query = "s_i" if recipe == "luong" else "s_{i-1}"
    assert formulas["score"] == f"e_mij = (W_m^k h_j)^T (W_m^q {query}) / sqrt(d) in head m"
    assert formulas["weight"] == "alpha_ij = mean_m softmax_j(e_mij)"
    assert formulas["context"].endswith("c_mi = sum_j softmax_j(e_mij) W_m^v h_j")


def test_the_context_of_projected_values_is_named_as_such() -> None:
    found = trace("luong", SENTENCE, *SMALL, "model.attention=parameterised")
    assert formulas_of(found)["context"] == "c_i = sum_j alpha_ij W^v h_j"
    values = found["weight"] @ found["encoder_state"]  # would be the context without W^v
    assert not np.allclose(found["context"], values, atol=1e-4)


# Name of the case: the recipe, what is set, and the formulas that must stand in its trace.
FORMULAS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "luong": (
        "luong",
        ["model.attention=dot", "model.input_feeding=false"],
        {
            "decoder_state": "s_i = f(s_{i-1}, y_{i-1})",
            "score": "e_ij = h_j^T s_i",
            "context": "c_i = sum_j alpha_ij h_j",
            "probability": "p(y_i | y_<i, x) = softmax(W^o tanh(W [s_i; c_i]) + b)",
        },
    ),
    "input feeding": (
        "luong",
        ["model.input_feeding=true"],
        {"decoder_state": "s_i = f(s_{i-1}, [y_{i-1}; t_{i-1}])"},
    ),
    "bahdanau": (
        "bahdanau",
        ["model.attention=additive"],
        {
            "decoder_state": "s_i = f(s_{i-1}, [y_{i-1}; c_i])",
            "score": "e_ij = v^T tanh(W s_{i-1} + U h_j)",
            "probability": "p(y_i | y_<i, x) = softmax(W^o tanh(W [y_{i-1}; s_i; c_i]) + b)",
        },
    ),
    "bahdanau without attention": (
        "bahdanau",
        ["model.attention=none"],
        {"decoder_state": "s_i = f(s_{i-1}, [y_{i-1}; h_T])"},
    ),
    "shared matrix": (
        "seq2seq-attention",
        ["model.decoder=shared", "model.bidirectional=false"],
        {"probability": "p(y_i | y_<i, x) = softmax(W^o [s_i; c_i])"},
    ),
    "no attention": (
        "seq2seq",
        [],
        {"probability": "p(y_i | y_<i, x) = softmax(W^o s_i + b)"},
    ),
}


@pytest.mark.parametrize(("recipe", "overrides", "expected"), FORMULAS.values(), ids=FORMULAS)
def test_a_translator_s_formulas_are_those_of_its_decoder(
    recipe: str, overrides: list[str], expected: dict[str, str]
) -> None:
    assert expected.items() <= formulas_of(trace(recipe, SENTENCE, *SMALL, *overrides)).items()


@pytest.mark.parametrize(
    ("recipe", "override", "expected"),
    [
        ("fibonacci-rnn", "model.output=linear", {"context": "c = h_T"}),
        (
            "fibonacci-lecture",
            "model.output=linear",
            {"context": "c = sum_t alpha_t h_t + b", "output": "y = W c + b, scaled"},
        ),
        (
            "fibonacci-attention",
            "model.output=tanh",
            {"alpha": "alpha_t = softmax_t(e_t)", "output": "y = tanh(W c + b), scaled"},
        ),
    ],
)
def test_a_forecaster_s_formulas_are_those_of_its_layers(
    recipe: str, override: str, expected: dict[str, str]
) -> None:
    assert expected.items() <= formulas_of(trace(recipe, "last", override)).items()


def test_a_translator_without_attention_has_neither_scores_nor_contexts() -> None:
    found = trace("seq2seq", SENTENCE, *SMALL)
    names = {array.name for array in found.arrays}
    assert {"encoder_state", "decoder_state", "probability"} <= names
    assert not names & {"score", "weight", "context"}


def test_a_transformer_shows_what_each_part_returned() -> None:
    found = trace("transformer-tiny", SENTENCE, "tokenizer.kind=word")
    assert found["encoder_state"].shape[0] == 7
    np.testing.assert_allclose(found["weight"].sum(1), 1, rtol=1e-4)
    assert len(found.parts) > 10


def test_a_node_shows_its_neighbours_and_its_classes(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(30) % 3
    graph = tmp_path / "graph.npz"
    features = np.eye(3, dtype=np.float32)[labels] + random.random((30, 3), dtype=np.float32)
    np.savez(graph, x=features, y=labels, edges=random.integers(0, 30, (2, 60)))
    overrides = [f"data.graph={graph}", "training.steps=3", "training.seeds=1"]
    overrides.append("data.train_per_class=3")
    recipe = expect(find_recipe("gat-cora", overrides=overrides), GraphRecipe)
    train_node_classifier(recipe, open_run(tmp_path / "run", recipe, resume=False))
    found = trace_run(tmp_path / "run", "7")
    assert found.family == "graph classifier"
    np.testing.assert_allclose(found["weight"].sum(0), 1, rtol=1e-5)
    assert "e_ij = LeakyReLU(a^T [W h_i || W h_j])" in formulas_of(found)["weight"]
    assert len(found.labels["neighbour (layer 1)"]) == len(found["weight"])
    np.testing.assert_allclose(found["probability"].sum(), 1, rtol=1e-5)
    assert found.output == found.labels["class"][found["probability"].argmax()]
    with pytest.raises(SettingsError, match="There is no node 'x'"):
        trace_run(tmp_path / "run", "x")


def test_windows_can_be_given_as_numbers_or_as_a_file(tmp_path: Path) -> None:
    numbers = [t / 10 for t in range(25)]
    file = tmp_path / "x.csv"
    file.write_text("value\n" + "".join(f"{number}\n" for number in numbers))
    given = trace("fibonacci-attention", ", ".join(str(number) for number in numbers[-20:]))
    from_file = trace("fibonacci-attention", str(file))
    np.testing.assert_array_equal(given["input"], numbers[-20:])
    np.testing.assert_array_equal(given["output"], from_file["output"])


@pytest.mark.parametrize(
    ("recipe", "text", "message"),
    [
        ("fibonacci-rnn", "1 2 3", "3 values were given, but this model reads a window of 20"),
        ("fibonacci-rnn", "a b", "'a b' is no window of a series: give 20 numbers"),
        ("seq2seq", "", "There is nothing to trace: the text is empty"),
    ],
)
def test_what_cannot_be_traced(recipe: str, text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        trace(recipe, text)


def test_a_task_without_a_tracer_is_named() -> None:
    with pytest.raises(SettingsError, match="'classify-text' has no trace"):
        trace("text-classifier", "a text")


def test_tables_join_what_shares_an_axis_and_cut_what_is_wide() -> None:
    found = Trace(
        family="toy",
        source="x",
        output="y",
        arrays=[
            TracedArray("a", ("time",), np.array([0.5, 0.25])),
            TracedArray("h", ("time", "hidden"), np.ones((2, 9))),
            TracedArray("p", ("step", "vocab"), np.array([[0.2, 0.7, 0.1]])),
        ],
        labels={"time": ["one", "two"], "vocab": ["x", "y", "z"]},
    )
    first, second = found.tables()
    assert first.columns == ["time", "a", *(f"h[{n}]" for n in range(1, 7)), "... h, norm"]
    assert first.rows[1][:3] == ["two", "0.25", "1"]
    assert first.rows[0][-1] == "3"
    assert second.rows == [["1", "y 0.700  x 0.200  z 0.100"]]
    with pytest.raises(KeyError):
        found["nothing"]


def test_npz_and_json_hold_every_value(tmp_path: Path) -> None:
    found = trace("fibonacci-attention", "last")
    found.save(tmp_path / "trace.npz")
    with np.load(tmp_path / "trace.npz", allow_pickle=False) as saved:
        np.testing.assert_array_equal(saved["alpha"], found["alpha"])
        assert "part.rnn.0" in saved
    record = found.to_dict()
    assert record["values"]["alpha"]["values"] == found["alpha"].tolist()
    assert record["values"]["alpha"]["axes"] == ["time"]
    with pytest.raises(RegardError, match=r"a trace is written as \.npz"):
        found.save(tmp_path / "trace.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(RegardError, match="cannot be written"):
        found.save(tmp_path / "file" / "trace.npz")
