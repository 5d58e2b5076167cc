"""Numbers of fewer bits are used only where the processor has them, and only inside the model."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.base.errors import SettingsError
from regard.compute import device as precision
from regard.compute import linear
from regard.compute.device import computing_in, has_bf16
from regard.compute.linear import Linear
from regard.compute.precision import narrowed
from regard.training.losses import LossSum, chunked_token_loss, r_drop_loss


def test_single_precision_changes_nothing() -> None:
    with computing_in("fp32")():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.fixture
def bits(monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[object]:
    """The context of bf16, on any processor and for products of any size."""
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    monkeypatch.setattr(linear, "FEWEST_ELEMENTS", 1)
    return computing_in("bf16")()


def rounded(matrix: Tensor) -> Tensor:
    return matrix.bfloat16().float()


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_factors_are_rounded_and_sums_are_not(
    bits: AbstractContextManager[object],
    biased: bool,
    compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layer, inputs = Linear(40, 30, bias=biased), torch.randn(2, 25, 40, requires_grad=True)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiled)
    with bits:
        found = layer(inputs)
    gradient = torch.randn_like(found)
    found.backward(gradient)  # outside of the block, as in a training
    x, w, g = (rounded(part.detach()) for part in (inputs, layer.weight, gradient))
    assert found.dtype == torch.float32
    wanted = [rounded(x @ w.T), rounded(g @ w), rounded(g.flatten(0, 1).T @ x.flatten(0, 1))]
    if biased:
        wanted[0] += layer.bias.detach()
        torch.testing.assert_close(layer.bias.grad, gradient.sum(dim=(0, 1)))
    for one, other in zip((found, inputs.grad, layer.weight.grad), wanted, strict=True):
        assert one is not None
        torch.testing.assert_close(one, other, rtol=2**-7, atol=1e-5)
    assert not torch.allclose(found, F.linear(inputs, layer.weight, layer.bias), rtol=1e-5)


def test_only_large_products_of_single_precision_are_rounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    few, many, weight = torch.randn(3, 16), torch.randn(2**13, 16), torch.randn(16, 16)
    with computing_in("bf16")():
        torch.testing.assert_close(linear.linear(few, weight), few @ weight.T)
        large = linear.linear(many, weight)
        exact = linear.linear(many.double(), weight.double())
    assert not torch.allclose(large, many @ weight.T, rtol=1e-5)
    torch.testing.assert_close(exact, many.double() @ weight.double().T)
    with computing_in("fp32")():
        torch.testing.assert_close(linear.linear(many, weight), many @ weight.T)


def test_an_error_ends_the_precision(bits: AbstractContextManager[object]) -> None:
    ones = torch.ones(3)
    with pytest.raises(ZeroDivisionError), bits:
        assert narrowed(ones).dtype == torch.bfloat16
        assert narrowed(ones.double()).dtype == torch.float64
        raise ZeroDivisionError
    assert narrowed(ones).dtype == torch.float32


@pytest.mark.parametrize("loss", ["chunked", "R-Drop"])
def test_losses_have_all_bits_and_their_gradients_fewer(
    loss: str, bits: AbstractContextManager[object]
) -> None:
    torch.manual_seed(3)
    features, weight = torch.randn(2, 3, 8), torch.randn(11, 8)
    given = {
        "expected": torch.randint(0, 11, (2, 3)),
        "mask": torch.ones(2, 3, dtype=torch.bool),
        "smoothing": 0.1,
    }

    def measured() -> tuple[LossSum, Tensor, Tensor]:
        f, w = features.clone().requires_grad_(), weight.clone().requires_grad_()
        if loss == "chunked":
            found = chunked_token_loss(f, weight=w, **given)
        else:
            found = r_drop_loss((f, f * 1.1), weight=w, strength=1.0, **given)
        found.objective.backward()  # type: ignore[no-untyped-call]
        assert f.grad is not None
        assert w.grad is not None
        return found, f.grad, w.grad

    exact, *wanted = measured()
    with bits:
        narrow, *gradients = measured()
    assert torch.equal(narrow.objective, exact.objective)
    assert torch.equal(narrow.nats, exact.nats)
    for found, one in zip(gradients, wanted, strict=True):
        assert found.dtype == torch.float32
        assert not torch.equal(found, one)
        torch.testing.assert_close(found, one, rtol=0.02, atol=0.02)


def test_a_processor_without_bf16_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: False)
    with pytest.raises(SettingsError, match=r"needs a processor .* which this one lacks; use"):
        computing_in("bf16")


@pytest.mark.parametrize("available", [True, False])
@pytest.mark.parametrize("supported", [True, False])
def test_bf16_needs_onednn_and_a_processor_that_has_it(
    monkeypatch: pytest.MonkeyPatch, available: bool, supported: bool
) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: available)
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: supported)
    assert has_bf16() == (available and supported)


def test_this_processor_computes_in_bf16_or_says_that_it_does_not() -> None:
    if has_bf16():
        with computing_in("bf16")():
            assert narrowed(torch.ones(2, 2)).dtype == torch.bfloat16
    else:
        with pytest.raises(SettingsError, match=r'use "fp32"'):
            computing_in("bf16")
