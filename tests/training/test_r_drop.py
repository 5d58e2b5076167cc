"""R-Drop against the plain formula, in double precision."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from regard.training.losses import r_drop_loss, token_loss

BATCH, TARGET, WIDTH, VOCAB = 2, 5, 4, 7


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [3, 100])
def test_loss_and_gradients_equal_the_formula(smoothing: float, rows: int) -> None:
    torch.manual_seed(1)
    features = torch.randn(2, BATCH, TARGET, WIDTH, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(VOCAB, WIDTH, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(VOCAB, dtype=torch.float64, requires_grad=True)
    expected = torch.randint(0, VOCAB, (BATCH, TARGET))
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    found = r_drop_loss((features[0], features[1]), expected=expected, mask=mask, weight=weight,
                        bias=bias, smoothing=smoothing, strength=3.0, rows=rows)  # fmt: skip
    losses = [
        token_loss(one, expected=expected, mask=mask, smoothing=smoothing,
                   project=lambda f: F.linear(f, weight, bias))
        for one in features
    ]  # fmt: skip
    logs = [F.log_softmax(F.linear(f[mask], weight, bias), dim=-1) for f in features]
    apart = sum(F.kl_div(logs[i], logs[1 - i], reduction="sum", log_target=True) for i in (0, 1))
    plain = (losses[0].objective + losses[1].objective) / 2 + 3.0 / 4 * apart
    assert float(found.objective.detach()) == pytest.approx(float(plain.detach()))
    assert float(found.nats) == pytest.approx(float(losses[0].nats + losses[1].nats) / 2)
    inputs = (features, weight, bias)
    ours = torch.autograd.grad(found.objective, inputs)
    theirs = torch.autograd.grad(plain, inputs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_equal_passes_cost_no_more_than_one() -> None:
    features = torch.randn(1, 3, WIDTH)
    options = {"expected": torch.tensor([[1, 2, 3]]), "mask": torch.ones(1, 3, dtype=torch.bool)}
    weight = torch.randn(VOCAB, WIDTH)
    found = r_drop_loss((features, features), weight=weight, strength=5.0, **options)
    single = token_loss(features, project=lambda f: f @ weight.T, **options)
    torch.testing.assert_close(found.objective, single.objective)
