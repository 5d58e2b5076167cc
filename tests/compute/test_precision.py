"""Numbers of fewer bits are used only where the processor has them, and only inside the model."""

from __future__ import annotations

import pytest
import torch

from regard.base.errors import SettingsError
from regard.compute import device as precision
from regard.compute.device import computing_in, has_bf16
from regard.training.losses import chunked_token_loss


def test_single_precision_changes_nothing() -> None:
    with computing_in("fp32")():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_bf16_is_for_products_and_not_for_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: True)
    weight = torch.randn(7, 4, requires_grad=True)
    with computing_in("bf16")():
        features = (torch.randn(3, 4) @ torch.randn(4, 4)).view(1, 3, 4)
        assert features.dtype == torch.bfloat16
        found = chunked_token_loss(
            features.requires_grad_(),
            expected=torch.tensor([[1, 2, 3]]),
            mask=torch.ones(1, 3, dtype=torch.bool),
            weight=weight,
            smoothing=0.1,
        )
    assert found.objective.dtype == torch.float32
    found.objective.backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


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
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    else:
        with pytest.raises(SettingsError, match=r'use "fp32"'):
            computing_in("bf16")
