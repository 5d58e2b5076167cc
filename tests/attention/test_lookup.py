from __future__ import annotations

import pytest
import torch

from regard.attention.lookup import Lookup
from regard.attention.scores import SCORES

MASK = torch.tensor([[True, True, True], [True, True, False]])


@pytest.mark.parametrize("name", SCORES)
def test_weights_sum_to_one_and_mix_the_values(name: str) -> None:
    torch.manual_seed(1)
    lookup = Lookup(score=SCORES[name](query_dim=6, key_dim=6, heads=2))
    source = torch.randn(2, 3, 6)
    memory = lookup.prepare(source, MASK)
    context, weights = lookup(torch.randn(2, 4, 6), memory, with_weights=True)
    assert weights is not None
    assert context.shape == (2, 4, lookup.context_dim)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4))
    assert (weights[1, :, 2] == 0).all()
    if name != "multi-head":  # its heads mix their own parts of the values
        torch.testing.assert_close(context, weights @ memory.values)


@pytest.mark.parametrize("name", SCORES)
def test_a_memory_for_loops_gives_the_same_with_the_same_gradients(name: str) -> None:
    torch.manual_seed(1)
    lookup = Lookup(score=SCORES[name](query_dim=6, key_dim=6, heads=2))
    source, query = torch.randn(2, 3, 6, requires_grad=True), torch.randn(2, 4, 6)
    memory = lookup.prepare(source, MASK)
    whole, _ = lookup(query, memory)
    looping = memory.as_shared()
    steps = torch.cat([lookup(query[:, [i]], looping).context for i in range(4)], dim=1)
    torch.testing.assert_close(steps, whole)
    leaves = [source, *lookup.parameters()]
    expected = torch.autograd.grad(whole.sin().sum(), leaves, retain_graph=True)
    found = torch.autograd.grad(steps.sin().sum(), leaves)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_select_takes_rows_of_every_part() -> None:
    lookup = Lookup(score=SCORES["bilinear"](query_dim=6, key_dim=6))
    memory = lookup.prepare(torch.randn(2, 3, 6), MASK)
    chosen = memory.select(torch.tensor([1, 1, 0]))
    for part, whole in zip(chosen, memory, strict=True):
        assert torch.equal(part, whole[[1, 1, 0]])
