from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention.lookup import Lookup
from regard.attention.scores import AdditiveScore
from regard.base.results import Encoded
from regard.recurrent.cells import CELLS, RecurrentStack
from regard.recurrent.decoders import BahdanauDecoder, RecurrentDecoderState
from regard.recurrent.equations import step

TOKENS = torch.tensor([[2, 4, 5], [2, 6, 7]])


def decoder(kind: str = "gru", *, attends: bool) -> BahdanauDecoder:
    torch.manual_seed(1)
    return BahdanauDecoder(
        embedding=nn.Embedding(9, 5),
        stack=RecurrentStack(kind=kind, input_dim=5 + 8, hidden=8),
        lookup=Lookup(score=AdditiveScore(query_dim=8, key_dim=8)) if attends else None,
        readout=nn.Linear(5 + 8 + 8, 8, bias=False),
    ).eval()


def encoded(states: int = 1) -> Encoded:
    torch.manual_seed(2)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    summary = tuple(torch.randn(1, 2, 8) for _ in range(states))
    return Encoded(memory=torch.randn(2, 3, 8), mask=mask, summary=summary)


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("attends", [True, False])
@torch.no_grad()
def test_each_step_follows_the_equations(kind: str, attends: bool) -> None:
    model, source = decoder(kind, attends=attends), encoded(CELLS[kind].states)
    output, _ = model(TOKENS, model.start(source), with_weights=True)
    state = tuple(part[0] for part in source.summary)
    for position in range(3):
        y = model.embedding(TOKENS[:, position])
        if model.lookup is None:
            context = source.summary[0][-1]  # c = h_T
        else:
            memory = model.lookup.prepare(source.memory, source.mask)
            found = model.lookup(state[0][:, None], memory, with_weights=True)  # a(s_{i-1}, h_j)
            context = found.context[:, 0]
            assert output.attention is not None
            torch.testing.assert_close(output.attention[:, [position]], found.weights)
        state = step(model.stack.cells[0], torch.cat([y, context], dim=1), state)
        expected = torch.tanh(model.readout(torch.cat([y, state[0], context], dim=1)))
        torch.testing.assert_close(output.features[:, position], expected)


@torch.no_grad()
def test_the_control_has_no_weights_and_one_context() -> None:
    model = decoder(attends=False)
    state = model.start(encoded())
    output, after = model(TOKENS, state, with_weights=True)
    assert output.attention is None
    assert after.handed is state.handed


@pytest.mark.parametrize("attends", [True, False])
def test_a_state_made_elsewhere_is_refused(attends: bool) -> None:
    state = RecurrentDecoderState(cells=encoded().summary, memory=None)
    with pytest.raises(ValueError, match="needs a state that its `start` made"):
        decoder(attends=attends)(TOKENS, state)
