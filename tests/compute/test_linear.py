"""Products by oneDNN are those of torch; here they are made on every processor that has it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from regard.base.shapes import Tensor
from regard.compute import linear as products
from regard.compute.linear import Linear, add_product, linear, product, transposed

HAS_ONEDNN = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
LACKS_ONEDNN = "this torch was built without oneDNN"


@pytest.fixture(params=["onednn", "mkl"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "onednn" and not HAS_ONEDNN:
        pytest.skip(LACKS_ONEDNN)
    monkeypatch.setattr(products, "prefers_onednn", lambda: request.param == "onednn")
    monkeypatch.setattr(products, "FEWEST_ELEMENTS", 1)
    monkeypatch.setattr(products, "FEWEST_ROWS", 2)
    return str(request.param)


def matrices(*shapes: tuple[int, ...]) -> list[Tensor]:
    random = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=random) for shape in shapes]


@pytest.mark.parametrize(("inner", "outer"), [(24, 40), (40, 24), (32, 32)])
@pytest.mark.parametrize("biased", [True, False])
def test_values_and_gradients_are_those_of_the_formula_in_double_precision(
    library: str, inner: int, outer: int, biased: bool
) -> None:
    given = matrices((3, 7, inner), (outer, inner), (outer,), (3, 7, outer))
    single = [part.clone().requires_grad_() for part in given[:3]]
    double = [part.double().requires_grad_() for part in given[:3]]
    found = linear(single[0], single[1], single[2] if biased else None)
    wanted = double[0] @ double[1].T + (double[2] if biased else 0.0)
    found.backward(given[3])
    wanted.backward(given[3].double())
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-5)
    for one, other in zip(single[: 2 + biased], double[: 2 + biased], strict=True):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-4, atol=1e-5)


def test_the_gradient_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_double(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(left, right.T, bias)

    monkeypatch.setattr(products, "onednn_product", in_double)
    monkeypatch.setattr(products, "onednn_pays", lambda left, right: True)
    for outer in (3, 6):
        given = [part.double().requires_grad_() for part in matrices((2, 5, 4), (outer, 4))]
        bias = torch.zeros(outer, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(linear, (*given, bias))


def test_what_needs_no_gradient_gets_none(library: str) -> None:
    inputs, weight = matrices((6, 8), (5, 8))
    weight.requires_grad_()
    linear(inputs, weight).sum().backward()
    assert inputs.grad is None
    assert weight.grad is not None


def test_products_of_matrices_however_they_lie(library: str) -> None:
    left, right, total = matrices((6, 8), (8, 5), (6, 5))
    wanted = left @ right
    room = torch.empty(6, 5)
    for one, other in (
        (left, right),
        (left, transposed(right.T.contiguous())),
        (left.T.contiguous().T, right),
        (left, torch.cat([right, right], dim=1)[:, :5]),
    ):
        torch.testing.assert_close(product(one, other), wanted)
        torch.testing.assert_close(product(one, other, room=room), wanted)
        summed = total.clone()
        add_product(summed, one, other)
        torch.testing.assert_close(summed, total + wanted)


def copies(call: Callable[[], object]) -> int:
    """Return how many tensors a call copies, as transposing a weight does."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return sum(event.count for event in profile.key_averages() if event.key == "aten::clone")


def test_a_frozen_weight_is_transposed_once(library: str) -> None:
    layer = Linear(8, 12).requires_grad_(False)
    (inputs,) = matrices((3, 8))
    with torch.no_grad():
        assert copies(lambda: layer(inputs)) == (library == "onednn")
        assert copies(lambda: layer(inputs)) == 0
        assert copies(lambda: linear(inputs, layer.weight[:4])) == (library == "onednn")
        assert copies(lambda: linear(inputs, layer.weight[:4])) == 0


@pytest.mark.parametrize("quiet", [torch.no_grad, torch.inference_mode])
def test_frozen_weights_kept_transposed_follow_their_changes(
    library: str, quiet: type[torch.no_grad]
) -> None:
    layer = Linear(8, 12).requires_grad_(False)
    (inputs,) = matrices((3, 8))
    for _ in range(2):
        with quiet():
            for rows in (slice(0, 12), slice(0, 4), slice(4, 12)):
                weight, bias = layer.weight[rows], layer.bias[rows]
                torch.testing.assert_close(
                    linear(inputs, weight, bias), F.linear(inputs, weight, bias)
                )
            torch.testing.assert_close(layer(inputs), F.linear(inputs, layer.weight, layer.bias))
        with torch.no_grad():
            layer.weight.mul_(-2)
    layer.weight = torch.nn.Parameter(torch.ones(12, 8), requires_grad=False)
    with quiet():
        torch.testing.assert_close(layer(inputs), F.linear(inputs, layer.weight, layer.bias))


@pytest.mark.parametrize("fused", [True, False])
def test_weights_in_training_are_read_anew(library: str, fused: bool) -> None:
    """A fused optimiser changes weights without telling autograd's version of them."""
    layer = Linear(8, 12)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=fused)
    (inputs,) = matrices((100, 8))
    for _ in range(3):
        with torch.no_grad():
            torch.testing.assert_close(layer(inputs), F.linear(inputs, layer.weight, layer.bias))
        layer(inputs).square().sum().backward()
        optimizer.step()


def test_a_weight_that_is_trained_again_is_read_anew(library: str) -> None:
    layer = Linear(8, 12).requires_grad_(False)
    (inputs,) = matrices((100, 8))
    with torch.no_grad():
        layer(inputs)
    layer.requires_grad_(True)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, fused=True)
    layer(inputs).square().sum().backward()
    with torch.no_grad():
        layer(inputs)
    optimizer.step()
    layer.requires_grad_(False)
    with torch.no_grad():
        torch.testing.assert_close(layer(inputs), F.linear(inputs, layer.weight, layer.bias))


def test_weights_that_are_no_parameter_are_transposed_each_time(library: str) -> None:
    inputs, weight = matrices((3, 8), (4, 8))
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(linear(inputs, weight), inputs @ weight.T)
            assert copies(lambda: linear(inputs, weight)) == (library == "onednn")


@pytest.mark.skipif(not HAS_ONEDNN, reason=LACKS_ONEDNN)
def test_small_products_and_other_numbers_stay_with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Tensor:
        raise AssertionError("oneDNN was asked")

    monkeypatch.setattr(products, "prefers_onednn", lambda: True)
    monkeypatch.setattr(products, "onednn_product", refuse)
    few, many, weight = matrices((4, 16), (2**14, 16), (16, 16))
    torch.testing.assert_close(linear(few, weight), few @ weight.T)
    torch.testing.assert_close(
        linear(many.double(), weight.double()), many.double() @ weight.double().T
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(many, weight).dtype == torch.bfloat16
    with pytest.raises(AssertionError, match="asked"):
        linear(many, weight)


def test_onednn_is_told_to_keep_few_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in products.KERNELS:
        monkeypatch.setenv(name, "set before")
        monkeypatch.delenv(name)
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    decide = products.prefers_onednn.__wrapped__
    monkeypatch.setattr(products, "has_idle_avx512", lambda: False)
    assert not decide()
    assert "ONEDNN_PRIMITIVE_CACHE_CAPACITY" not in os.environ
    monkeypatch.setattr(products, "has_idle_avx512", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not decide()
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    assert decide()
    assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == "16"
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"  # what a user has said stays
