"""Where kernels with gradients by hand serve: they are made for a CPU, and in the way elsewhere."""

from __future__ import annotations

import torch

from regard.base.shapes import Tensor


def by_hand(tensor: Tensor) -> bool:
    """Return whether a hand-made kernel should compute on this tensor.

    A compiler joins plain formulas better by itself, and on other devices torch's kernels do.
    """
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
