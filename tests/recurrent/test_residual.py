"""Residual stacks (Wu et al. 2016): each layer by its equations, and an encoder like GNMT's."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

from regard.models.build import build_translator
from regard.models.inspection import parameter_count
from regard.recurrent.cells import CELLS, RecurrentStack
from regard.recurrent.equations import step
from regard.settings.language_models import RecurrentLanguageModelSettings
from regard.settings.models import RecurrentSettings


@pytest.mark.parametrize("kind", CELLS)
@torch.no_grad()
def test_what_enters_a_layer_is_added_to_what_leaves_it(kind: str) -> None:
    torch.manual_seed(1)
    stack = RecurrentStack(kind=kind, input_dim=3, hidden=6, layers=3, residual=True).eval()
    inputs = torch.randn(2, 5, 3)
    found, last = stack(inputs, stack.zero_state(2))
    features = inputs
    for layer, cell in enumerate(stack.cells):
        state = tuple(part[layer] for part in stack.zero_state(2))
        states = []
        for x in features.unbind(1):
            state = step(cell, x, state)
            states.append(state[0])
        outputs = torch.stack(states, dim=1)
        features = outputs + features if layer else outputs  # eq. 6, from the second layer on
        torch.testing.assert_close(last[0][layer], states[-1], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found, features, atol=1e-5, rtol=1e-4)
    packed, _ = stack.read_packed(inputs, torch.tensor([5, 3]))
    torch.testing.assert_close(packed[0], features[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(packed[1, :3], features[1, :3], atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_only_the_first_layer_reads_from_both_ends() -> None:
    torch.manual_seed(1)
    settings = RecurrentSettings(
        cell="lstm", hidden=8, embedding=5, layers=3, residual=True, upper_layers="forward"
    )  # type: ignore[call-arg]
    model = build_translator(settings, source_vocab=11, target_vocab=11).eval()
    source, mask = torch.tensor([[4, 5, 6, 7]]), torch.ones(1, 4, dtype=torch.bool)
    encoded = model.encode(source, mask)
    assert encoded.memory.shape == (1, 4, 8)
    assert [part.shape for part in encoded.summary] == [(3, 1, 8)] * 2
    assert model.encoder.first.bidirectional
    assert not model.encoder.stack.bidirectional
    other = source.clone()
    other[0, 3] = 9  # the last word is heard at the first position, through the first layer
    assert not torch.equal(model.encode(other, mask).memory[:, 0], encoded.memory[:, 0])
    alike = settings.model_copy(update={"upper_layers": "alike"})
    both = build_translator(alike, source_vocab=11, target_vocab=11)
    assert parameter_count(model) != parameter_count(both)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"residual": True}, "residual = true needs at least 2 layers (given: 1)"),
        ({"upper_layers": "forward"}, 'upper_layers = "forward" needs bidirectional = true'),
        (
            {"upper_layers": "forward", "layers": 2, "bidirectional": False},
            "(given: bidirectional false, 2 layers",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RecurrentSettings(**changes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_language_model_may_have_residuals() -> None:
    with pytest.raises(ValidationError, match="residual = true needs at least 2 layers"):
        RecurrentLanguageModelSettings(residual=True)  # type: ignore[call-arg]
