from __future__ import annotations

import os
from typing import Any

import pytest
import torch

os.environ["KERAS_BACKEND"] = "torch"  # before Keras is imported: it reads it once

from regard.models.build import build_translator
from regard.models.inspection import parameter_count
from regard.models.translator import Translator
from regard.recurrent.cells import CellWeights
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.settings import TranslationRecipe

keras = pytest.importorskip("keras")

SOURCE, TARGET, HIDDEN = 74, 78, 256


def ours() -> Translator[Any]:
    torch.manual_seed(1)
    recipe = expect(find_recipe("char-lstm", overrides=[]), TranslationRecipe)
    model = build_translator(recipe.model, source_vocab=SOURCE, target_vocab=TARGET).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases too, so that a misplaced one shows
            parameter.uniform_(-0.1, 0.1)
    return model


def theirs() -> Any:
    """Return the encoder-decoder as Keras users write it."""
    layers = keras.layers
    source = keras.Input((None, SOURCE))
    _, *state = layers.LSTM(HIDDEN, return_state=True, name="encoder")(source)
    target = keras.Input((None, TARGET))
    decoder = layers.LSTM(HIDDEN, return_sequences=True, return_state=True, name="decoder")
    hidden, *_ = decoder(target, initial_state=state)
    logits = layers.Dense(TARGET, name="output")(hidden)
    return keras.Model([source, target], logits)


def copy_weights(model: Translator[Any], keras_model: Any) -> None:
    for name, part in (("encoder", model.encoder), ("decoder", model.decoder)):
        cell = part.stack.weights[0]  # type: ignore[union-attr,index]
        assert isinstance(cell, CellWeights)
        assert cell.bias is not None
        weights = [cell.input_weights.T, cell.state_weights.T, cell.bias]
        keras_model.get_layer(name).set_weights([w.detach().numpy() for w in weights])
    projection = model.projection
    keras_model.get_layer("output").set_weights(
        [projection.weight.T.detach().numpy(), projection.bias.detach().numpy()]
    )


def test_parameters_are_those_of_keras() -> None:
    model, keras_model = ours(), theirs()
    counts = [
        parameter_count(part)
        for part in (model.encoder, model.decoder, model.projection)
        if isinstance(part, torch.nn.Module)
    ]
    assert counts == [338_944, 343_040, 20_046]
    assert [keras_model.get_layer(n).count_params() for n in ("encoder", "decoder", "output")] == (
        counts
    )
    assert parameter_count(model) == keras_model.count_params() == 702_030


def test_outputs_are_those_of_keras() -> None:
    model, keras_model = ours(), theirs()
    copy_weights(model, keras_model)
    generator = torch.Generator().manual_seed(2)
    source = torch.randint(4, SOURCE, (3, 12), generator=generator)
    target = torch.randint(4, TARGET, (3, 9), generator=generator)
    one_hot = [torch.eye(SOURCE)[source], torch.eye(TARGET)[target]]
    with torch.no_grad():
        output = model(source, torch.ones_like(source, dtype=torch.bool), target)
        difference = model.project(output.features) - keras_model(one_hot)
    assert difference.abs().max() < 1e-5
