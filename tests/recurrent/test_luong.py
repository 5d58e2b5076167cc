from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.attention.lookup import Lookup
from regard.attention.scores import DotScore
from regard.base.results import Encoded
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.decoders import LuongDecoder


def decoder(*, attends: bool) -> LuongDecoder:
    torch.manual_seed(1)
    return LuongDecoder(
        embedding=nn.Embedding(9, 5),
        stack=RecurrentStack(kind="gru", input_dim=5, hidden=8),
        lookup=Lookup(score=DotScore(query_dim=8, key_dim=8)) if attends else None,
        combine=nn.Linear(16, 8, bias=False) if attends else None,
    ).eval()


def encoded() -> Encoded:
    torch.manual_seed(2)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    return Encoded(memory=torch.randn(2, 3, 8), mask=mask, summary=(torch.randn(1, 2, 8),))


TOKENS = torch.tensor([[2, 4, 5], [2, 6, 7]])


def test_features_with_attention_are_tanh_of_state_and_context() -> None:
    model, source = decoder(attends=True), encoded()
    output, _ = model(TOKENS, model.start(source), with_weights=True)
    hidden, _ = model.stack(model.embedding(TOKENS), source.summary)
    assert output.attention is not None
    context = output.attention @ source.memory
    assert model.combine is not None
    expected = torch.tanh(model.combine(torch.cat([hidden, context], dim=-1)))
    torch.testing.assert_close(output.features, expected)
    assert (output.attention[1, :, 2] == 0).all()


def test_without_attention_the_features_are_the_states() -> None:
    model, source = decoder(attends=False), encoded()
    state = model.start(source)
    output, _ = model(TOKENS, state, with_weights=True)
    hidden, _ = model.stack(model.embedding(TOKENS), source.summary)
    assert state.memory is None
    assert output.attention is None
    torch.testing.assert_close(output.features, hidden)


@pytest.mark.parametrize("attends", [True, False])
def test_a_call_leaves_the_state_as_it_was(attends: bool) -> None:
    model = decoder(attends=attends)
    state = model.start(encoded())
    before = state.cells[0].clone()
    first, _ = model(TOKENS, state)
    again, _ = model(TOKENS, state)
    assert torch.equal(state.cells[0], before)
    assert torch.equal(first.features, again.features)


def feeding() -> LuongDecoder:
    torch.manual_seed(1)
    return LuongDecoder(
        embedding=nn.Embedding(9, 5),
        stack=RecurrentStack(kind="gru", input_dim=5 + 8, hidden=8),
        lookup=Lookup(score=DotScore(query_dim=8, key_dim=8)),
        combine=nn.Linear(16, 8, bias=False),
        input_feeding=True,
        dropout=0.5,
    )


@torch.no_grad()
def test_input_feeding_reads_the_last_features_beside_each_symbol() -> None:
    model, source = feeding().eval(), encoded()
    output, _ = model(TOKENS, model.start(source), with_weights=True)
    fed, cells = torch.zeros(2, 8), source.summary
    assert model.lookup is not None
    assert model.combine is not None
    for position in range(3):
        inputs = torch.cat([model.embedding(TOKENS[:, position]), fed], dim=1)
        hidden, cells = model.stack(inputs[:, None], cells)
        memory = model.lookup.prepare(source.memory, source.mask)
        context, weights = model.lookup(hidden, memory, with_weights=True)
        fed = torch.tanh(model.combine(torch.cat([hidden, context], dim=-1)))[:, 0]
        torch.testing.assert_close(output.features[:, position], fed)
        assert output.attention is not None
        torch.testing.assert_close(output.attention[:, [position]], weights)


def test_features_are_dropped_before_they_are_fed() -> None:
    model = feeding().train()
    output, state = model(TOKENS, model.start(encoded()))
    assert (output.features == 0).any()
    assert state.handed is not None
    assert torch.equal(state.handed, output.features[:, -1])


def test_input_feeding_needs_attention() -> None:
    stack = RecurrentStack(kind="gru", input_dim=13, hidden=8)
    with pytest.raises(ValueError, match="it needs attention"):
        LuongDecoder(
            embedding=nn.Embedding(9, 5),
            stack=stack,
            lookup=None,
            combine=None,
            input_feeding=True,
        )
    model = feeding()
    with pytest.raises(ValueError, match="a state that `start` made"):
        model(TOKENS, model.start(encoded())._replace(handed=None))
