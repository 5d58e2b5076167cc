from __future__ import annotations

import pytest
import torch

from regard.base.errors import SettingsError
from regard.models.architecture import architecture
from regard.models.forecaster import build_forecaster
from regard.settings.models import ForecasterSettings


def build(attention: str = "none", **changes: object):  # type: ignore[no-untyped-def]
    settings = ForecasterSettings.model_validate({"attention": attention, **changes})
    return build_forecaster(settings, window=20, horizon=1)


@pytest.mark.parametrize(
    ("attention", "parameters"),
    [("none", [8, 3]), ("softmax", [8, 22, 3]), ("lecture", [8, 22, 3])],
)
def test_the_layers_have_the_parameters_of_the_lectures(
    attention: str, parameters: list[int]
) -> None:
    found = architecture(build(attention))
    assert [block.parameters for block in found.layers] == parameters
    assert found.parameters == sum(parameters)


@pytest.mark.parametrize("attention", ["none", "softmax", "lecture"])
@pytest.mark.parametrize("output", ["linear", "tanh"])
def test_what_is_explained_is_what_is_computed(attention: str, output: str) -> None:
    model = build(attention, output=output)
    window = torch.rand(3, 20, dtype=torch.float64)
    values, weights = model(window, with_weights=True)
    found = model.explain(window)
    torch.testing.assert_close(found["output"], values)
    context = found["context"]
    assert ("score" in found) == (attention == "softmax")
    if attention == "none":
        assert weights is None
        torch.testing.assert_close(context, found["state"][:, -1])
        return
    torch.testing.assert_close(found["alpha"], weights)
    offset = model.attention.offset()
    torch.testing.assert_close(context, found["alpha_state"].sum(1) + offset)


def test_a_squashed_output_stays_within_one() -> None:
    model = build(output="tanh")
    with torch.no_grad():
        model.dense.bias.fill_(50.0)
    assert model(torch.zeros(1, 20, dtype=torch.float64)).values.item() == pytest.approx(1.0)


def test_the_smallest_values_are_not_lost() -> None:
    model = build()
    tiny = torch.full((1, 20), 2.2664e-251, dtype=torch.float64)
    state = model.read(tiny)
    assert not torch.equal(state, torch.zeros_like(state))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "grru"}, "Unknown model.cell 'grru'. Did you mean 'gru'"),
        ({"attention": "softmx"}, "Unknown model.attention 'softmx'. Did you mean 'softmax'"),
    ],
)
def test_unknown_parts_are_named(changes: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build(**changes)
