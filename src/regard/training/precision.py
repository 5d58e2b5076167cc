"""The numbers that a model computes with in training, where the hardware has faster ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch

from regard.base.errors import SettingsError


def computing_in(precision: str) -> Callable[[], AbstractContextManager[object]]:
    """Return what a model's pass runs within; weights and their updates stay as they are.

    "bf16" has products computed in half the bits, as long as the processor can.
    """
    if precision == "fp32":
        return nullcontext
    if not has_bf16():
        raise SettingsError(
            'training.precision = "bf16" needs a processor with instructions for it (AVX-512 BF16 '
            'or AMX), which this one lacks; use "fp32".'
        )
    return partial(torch.autocast, "cpu", dtype=torch.bfloat16)


def has_bf16() -> bool:
    """Return whether this processor computes in bf16 faster than in fp32."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
