from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.training.losses import token_loss

MASK = torch.tensor([[True, True, False], [True, False, False]])


def inputs() -> tuple[torch.Tensor, torch.Tensor, nn.Linear]:
    torch.manual_seed(1)
    return torch.randn(2, 3, 4), torch.randint(0, 7, (2, 3)), nn.Linear(4, 7)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_torchs_cross_entropy_over_real_positions(smoothing: float) -> None:
    features, expected, project = inputs()
    found = token_loss(features, expected=expected, mask=MASK, project=project, smoothing=smoothing)
    logits = project(features)[MASK]
    wanted = F.cross_entropy(logits, expected[MASK], reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found.objective, wanted)
    torch.testing.assert_close(found.nats, F.cross_entropy(logits, expected[MASK], reduction="sum"))


def test_label_smoothing_is_its_formula() -> None:
    features, expected, project = inputs()
    found = token_loss(features, expected=expected, mask=MASK, project=project, smoothing=0.1)
    log_p = project(features)[MASK].log_softmax(dim=-1)
    right = log_p.gather(1, expected[MASK][:, None]).sum()
    torch.testing.assert_close(found.objective, -(0.9 * right + 0.1 * log_p.mean(dim=1).sum()))


def test_padding_is_neither_projected_nor_learned_from() -> None:
    features, expected, project = inputs()
    features.requires_grad_()
    shapes = []

    def watched(rows: torch.Tensor) -> torch.Tensor:
        shapes.append(tuple(rows.shape))
        return project(rows)

    loss = token_loss(features, expected=expected, mask=MASK, project=watched)
    loss.objective.backward()
    assert shapes == [(3, 4)]
    assert features.grad is not None
    assert (features.grad[~MASK] == 0).all()
    assert not loss.nats.requires_grad
