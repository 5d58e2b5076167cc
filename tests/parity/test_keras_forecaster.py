"""The Fibonacci models compared with the same models in Keras, with copied weights."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch

from regard.models.forecaster import Forecaster, build_forecaster
from regard.models.inspection import parameter_count
from regard.settings.models import ForecasterSettings
from regard.tasks.forecasting.data import read_windows
from regard.tasks.forecasting.settings import SeriesSettings

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

WINDOW, HIDDEN = 20, 2


def build(attention: str, output: str) -> Forecaster:
    torch.manual_seed(3)
    settings = ForecasterSettings.model_validate(
        {"attention": attention, "output": output, "hidden": HIDDEN}
    )
    model = build_forecaster(settings, window=WINDOW, horizon=1)
    with torch.no_grad():  # biases begin at zero, and would hide a mistake
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def keras_model(attention: str, output: str) -> Any:
    """Return the model of the lectures, written with the layers that Keras has."""
    layers = keras.layers
    inputs = keras.Input((WINDOW, 1))
    states = layers.SimpleRNN(HIDDEN, return_sequences=attention != "none", name="rnn")(inputs)
    context = states if attention == "none" else ATTENTION[attention]()(states)
    outputs = layers.Dense(1, activation=output, name="dense")(context)
    return keras.Model(inputs, outputs)


class Softmax(keras.layers.Layer):  # type: ignore[misc]
    def build(self, shape: Any) -> None:
        self.w = self.add_weight(shape=(HIDDEN, 1), name="w")
        self.b = self.add_weight(shape=(WINDOW, 1), name="b")

    def call(self, states: Any) -> Any:
        scores = keras.ops.tanh(keras.ops.matmul(states, self.w) + self.b)
        return keras.ops.sum(states * keras.ops.softmax(scores, axis=1), axis=1)


class Lecture(keras.layers.Layer):  # type: ignore[misc]
    def build(self, shape: Any) -> None:
        self.alpha = self.add_weight(shape=(WINDOW, 1), name="alpha")
        self.b = self.add_weight(shape=(HIDDEN,), name="b")

    def call(self, states: Any) -> Any:
        return keras.ops.sum(states * self.alpha, axis=1) + self.b


ATTENTION = {"softmax": Softmax, "lecture": Lecture}


def copy_weights(model: Forecaster, other: Any) -> None:
    """Set the weights of a Keras model to ours, in the order in which it lists them."""
    cell: Any = model.rnn.weights[0]
    weights = [cell.input_weights.T, cell.state_weights.T, cell.bias]
    if model.attention is not None:
        own = dict(model.attention.named_parameters())
        order = ("readout", "bias") if "readout" in own else ("alpha", "bias")
        weights += [own[name] for name in order]
    weights += [model.dense.weight.T, model.dense.bias]
    shaped = [
        value.detach().numpy().reshape(tuple(wanted.shape))
        for value, wanted in zip(weights, other.weights, strict=True)
    ]
    other.set_weights(shaped)


@pytest.mark.parametrize("output", ["linear", "tanh"])
@pytest.mark.parametrize(
    ("attention", "parameters"), [("none", 11), ("softmax", 33), ("lecture", 33)]
)
def test_counts_and_outputs_are_those_of_keras(
    attention: str, parameters: int, output: str
) -> None:
    ours, theirs = build(attention, output), keras_model(attention, output)
    assert parameter_count(ours) == theirs.count_params() == parameters
    copy_weights(ours, theirs)
    windows = np.concatenate(
        [
            read_windows(SeriesSettings(built_in=True)).inputs[-40:],
            np.random.default_rng(1).normal(size=(40, WINDOW)),
        ]
    )
    with torch.no_grad():
        expected = theirs(windows[:, :, None].astype(np.float32))
        found = ours(torch.tensor(windows)).values
    assert (found - expected).abs().max() < 1e-5
