"""Mixtures of experts: equal to their equations in numpy, and what holds for every input."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from regard.attention.costs import LayerCosts
from regard.attention.experts import ExpertGate, MixtureOfExperts
from regard.attention.probe import Probe, Recorder
from regard.transformer.layers import FeedForward

WIDTH, EXPERTS = 6, 4


def mixture(*, chosen: int = 1, kind: str = "softmax", **options: object) -> MixtureOfExperts:
    torch.manual_seed(5)
    experts = [FeedForward(WIDTH, hidden=8, activation="relu") for _ in range(EXPERTS)]
    bias = bool(options.pop("bias", False))
    gate = ExpertGate(WIDTH, experts=EXPERTS, chosen=chosen, kind=kind, bias=bias)
    nn.init.normal_(gate.scores.weight)
    return MixtureOfExperts(experts, gate=gate, **options).double()  # type: ignore[arg-type]


def features(batch: int = 3, time: int = 5) -> Tensor:
    torch.manual_seed(6)
    return torch.randn(batch, time, WIDTH, dtype=torch.float64)


def by_equations(mixed: MixtureOfExperts, x: np.ndarray, *, chosen: int, kind: str) -> np.ndarray:
    """One token at a time, in numpy."""
    out = np.zeros_like(x)
    for place, token in enumerate(x):
        h = mixed.gate.scores.weight.detach().numpy() @ token
        best = np.argsort(-h)[:chosen]
        exponentials = np.exp(h - h.max())
        total = exponentials[best].sum() if kind == "noisy" else exponentials.sum()
        for e in best:
            expert = mixed.experts[e]
            inner = (
                expert.inner.weight.detach().numpy() @ token + expert.inner.bias.detach().numpy()
            )
            y = expert.outer.weight.detach().numpy() @ np.maximum(inner, 0)
            out[place] += exponentials[e] / total * (y + expert.outer.bias.detach().numpy())
    return out


@pytest.mark.parametrize(
    ("chosen", "kind"), [(1, "softmax"), (2, "softmax"), (EXPERTS, "softmax"), (2, "noisy")]
)
def test_a_mixture_equals_its_equations(chosen: int, kind: str) -> None:
    mixed, x = mixture(chosen=chosen, kind=kind).eval(), features()
    expected = by_equations(mixed, x.flatten(0, 1).numpy(), chosen=chosen, kind=kind)
    np.testing.assert_allclose(
        mixed(x).detach().numpy(), expected.reshape(x.shape), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("chosen", [1, 2])
def test_gradients_are_right(chosen: int) -> None:
    mixed = mixture(chosen=chosen, balance=0.1, z=0.05)
    for expert in mixed.experts:
        expert.activation = "gelu"  # smooth

    def loss(x: Tensor) -> Tensor:
        costs = LayerCosts(mixed)
        return costs.added_to(mixed(x, **costs.probing).square().sum(), tokens=1)

    x = features(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(loss, (x,))
    loss(x).backward()
    assert mixed.gate.scores.weight.grad is not None
    assert mixed.gate.scores.weight.grad.abs().sum() > 0


def test_costs_equal_their_equations() -> None:
    mixed, x = mixture(chosen=2, balance=0.3, z=0.2), features()
    recorder, costs = Recorder(), LayerCosts(mixed)
    mixed(x, **costs.probing)
    mixed(x, probe=Probe(recorder))
    h = recorder.get("cross", 0, "gate scores").flatten(0, 1).numpy()
    w = recorder.get("cross", 0, "gate").flatten(0, 1).numpy()
    p = np.exp(h) / np.exp(h).sum(axis=1, keepdims=True)
    shares = (w > 0).sum(axis=0) / (w > 0).sum()
    balance = 0.3 * EXPERTS * (shares * p.mean(axis=0)).sum()
    z = 0.2 * (np.log(np.exp(h).sum(axis=1)) ** 2).mean()
    found = costs.added_to(torch.zeros((), dtype=torch.float64), tokens=1)
    assert found.item() == pytest.approx(len(h) * (balance + z))


def test_noise_is_drawn_in_training_alone_and_its_size_is_learned() -> None:
    mixed, x = mixture(chosen=2, kind="noisy"), features()
    assert not torch.equal(mixed(x), mixed(x))
    mixed(x).sum().backward()
    noise = mixed.gate.noise
    assert noise is not None
    assert noise.weight.grad is not None
    mixed.eval()
    assert torch.equal(mixed(x), mixed(x))


def test_a_bias_gets_the_excess_load_as_gradient_and_changes_only_the_choice() -> None:
    mixed, x = mixture(bias=True), features()
    costs = LayerCosts(mixed)
    before = mixed(x, **costs.probing)
    costs.added_to(torch.zeros((), dtype=torch.float64), tokens=1).backward()
    bias = mixed.gate.bias
    assert bias is not None
    assert bias.grad is not None
    loads = torch.bincount(mixed.gate(x.flatten(0, 1)).weights.argmax(1), minlength=EXPERTS)
    expected = len(x.flatten(0, 1)) * (loads / loads.sum() - 1 / EXPERTS)
    torch.testing.assert_close(bias.grad, expected.double(), atol=1e-6, rtol=1e-6)
    assert costs.added_to(torch.zeros((), dtype=torch.float64), tokens=1).item() == 0.0
    with torch.no_grad():
        bias += 3.0  # the same for all: the choice stays, and so do the weights
    torch.testing.assert_close(mixed(x), before)


def test_capacity_leaves_the_last_tokens_unchanged_in_training_only() -> None:
    mixed, x = mixture(capacity=0.5), features()
    whole = mixed.eval()(x)
    mixed.train()
    limited = mixed(x)
    left = (limited == 0).all(dim=-1).flatten()
    weights = mixed.gate(x.flatten(0, 1)).weights
    most = int(np.ceil(0.5 * len(weights) / EXPERTS))
    for expert in range(EXPERTS):
        tokens = (weights[:, expert] > 0).nonzero().flatten()
        assert not left[tokens[:most]].any()
        assert left[tokens[most:]].all()
    kept = ~left.view(x.shape[:2])
    torch.testing.assert_close(limited[kept], whole[kept])


def test_an_output_depends_on_its_own_token_alone() -> None:
    mixed, x = mixture(chosen=2).eval(), features()
    whole = mixed(x)
    for row in range(len(x)):
        torch.testing.assert_close(mixed(x[row : row + 1]), whole[row : row + 1])
    other = x.clone()
    other[:, -1] += 1.0
    torch.testing.assert_close(mixed(other)[:, :-1], whole[:, :-1])


def test_padding_takes_no_capacity_and_no_part_in_the_costs() -> None:
    mixed, x = mixture(balance=1.0, z=1.0, capacity=1.0), features()
    real = torch.ones(3, 5, dtype=torch.bool)
    real[:, 3:] = False
    changed = torch.where(real[:, :, None], x, torch.randn_like(x))
    costs, others = LayerCosts(mixed), LayerCosts(mixed)
    found, other = mixed(x, real=real, **costs.probing), mixed(changed, real=real, **others.probing)
    torch.testing.assert_close(found[real], other[real])
    zero = torch.zeros((), dtype=torch.float64)
    assert costs.added_to(zero, tokens=1).item() == pytest.approx(
        others.added_to(zero, tokens=1).item()
    )


def test_a_probe_can_switch_an_expert_off() -> None:
    mixed, x = mixture(chosen=2).eval(), features()

    def without_first(site: object, name: str, value: Tensor) -> Tensor:
        return value * torch.tensor([0.0, 1.0, 1.0, 1.0]) if name == "gate" else value

    found = mixed(x, probe=Probe(without_first))
    weights = mixed.gate(x.flatten(0, 1)).weights
    used = (weights[:, 0] > 0).view(x.shape[:2])
    whole = mixed(x)
    torch.testing.assert_close(found[~used], whole[~used])
    assert not torch.allclose(found[used], whole[used])


def test_a_model_without_experts_is_not_probed() -> None:
    assert LayerCosts(nn.Linear(2, 2)).probing == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chosen": 5}, r"experts_per_token \(5\) must be between 1 and experts \(4\)"),
        ({"kind": "noisy"}, "needs experts_per_token of at least 2"),
        ({"capacity": 0.0}, r"expert_capacity \(0\.0\) must be above 0"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mixture(**options)  # type: ignore[arg-type]
