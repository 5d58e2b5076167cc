from __future__ import annotations

import torch
from torch import nn

from regard.base.results import Attended
from regard.models.inspection import join_calls, recorded


class Pair(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Attended, list[torch.Tensor]]:
        return Attended(x + 1, None), [x.long()]


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.pair = Pair()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.pair(x)
        result: torch.Tensor = self.linear(x)
        return result


def test_what_each_part_returned_is_heard_by_name() -> None:
    model, x = Model(), torch.randn(4, 2)
    with recorded(model) as heard:
        output = model(x)
    assert set(heard) == {"linear", "pair.0.context"}
    assert torch.equal(heard["linear"][0], output)
    assert not heard["linear"][0].requires_grad


def test_nobody_listens_afterwards() -> None:
    model = Model()
    with recorded(model) as heard:
        pass
    model(torch.randn(1, 2))
    assert heard == {}


def test_what_is_handed_on_counts_once() -> None:
    model, x = nn.Sequential(nn.Identity()), torch.randn(2, 2)
    with recorded(model) as heard:
        model(x)
        model(x)
    assert len(heard["0"]) == 1


def test_steps_are_joined_and_other_calls_kept_apart() -> None:
    step, whole = torch.randn(1, 1, 4), torch.randn(1, 5, 4)
    joined = join_calls([step, step, whole, whole])
    assert [tuple(each.shape) for each in joined] == [(1, 2, 4), (1, 5, 4), (1, 5, 4)]
