"""The layer lens: the last row is the output, the others are the layers' own features projected."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.base.errors import SettingsError
from regard.models.lens import layer_features
from regard.tasks import find_recipe, task_of
from regard.tasks.lens import lens_of

SMALL = ["model.layers=3", "model.model_dim=16", "model.heads=2", "model.feed_forward=24"]
TARGET = torch.tensor([[2, 7, 5, 9]])


def translator(*more: str) -> Any:
    torch.manual_seed(3)
    overrides = [*SMALL, "model.source_vocab=12", "model.target_vocab=12", *more]
    return task_of("translate").build(find_recipe("transformer-tiny", overrides=overrides)).eval()


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_the_last_row_is_the_output_bit_for_bit(placement: str) -> None:
    model = translator(f"model.norm_placement={placement}")
    source, mask = torch.tensor([[4, 6, 8, 3]]), torch.ones(1, 4, dtype=torch.bool)
    with torch.inference_mode():
        features = model(source, mask, TARGET).features[0]
    rows = layer_features(model.decoder, lambda probe: model(source, mask, TARGET, probe=probe))
    assert len(rows) == 4
    assert torch.equal(rows[-1], features)
    # A model of the first two layers says what the lens shows after the second.
    model.decoder.layers, model.decoder.alignment_layer = model.decoder.layers[:2], 0
    with torch.inference_mode():
        shorter = model(source, mask, TARGET).features[0]
    assert torch.allclose(rows[2], shorter, atol=1e-6)


def test_a_language_model_has_a_lens_and_a_recurrent_one_none() -> None:
    small = [*SMALL[:3], "model.context=16", "model.vocab=12"]
    model: Any = task_of("language-model").build(find_recipe("gpt-nano", overrides=small)).eval()
    rows = layer_features(model.backbone, lambda probe: model(TARGET, probe=probe))
    with torch.inference_mode():
        assert torch.equal(rows[-1], model(TARGET).features[0])
    recurrent: Any = task_of("language-model").build(find_recipe("lstm-nano"))
    with pytest.raises(SettingsError, match="lens is for Transformers"):
        layer_features(recurrent.backbone, lambda probe: None)


def test_guesses_are_the_most_probable_tokens() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]])
    found = lens_of(
        [logits], lambda each: each, lambda ids: [f"t{number}" for number in ids],
        text="t1 t0", read=["a", "b"], said=[1, 2],
    )  # fmt: skip
    assert [step[0].token for step in found.guesses[0]] == ["t1", "t0"]
    assert found.probabilities[0].tolist() == pytest.approx(
        [float(logits[0].softmax(0)[1]), float(logits[1].softmax(0)[2])]
    )
    assert "input  t1 67%" in str(found).splitlines()[1]
    assert found.to_dict()["layers"][0]["said"][0] == pytest.approx(0.665241)
