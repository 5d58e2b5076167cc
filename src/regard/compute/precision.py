"""In how many bits matrix products are computed: in all of them, or in sixteen.

Within `products_in(torch.bfloat16)` the factors of large products are rounded to sixteen bits,
which processors with instructions for them multiply twice as fast. Sums have all bits, and so has
whatever is no product: weights, updates, norms, softmax, losses.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from regard.base.shapes import Float, Tensor

# One for the whole process, as compilers can follow; None is: whatever the factors have.
_chosen: torch.dtype | None = None


@contextmanager
def products_in(kind: torch.dtype) -> Iterator[None]:
    """Compute products of this type inside the block, and later in its backward pass."""
    global _chosen
    before, _chosen = _chosen, kind
    try:
        yield
    finally:
        _chosen = before


def narrows(inputs: Tensor) -> bool:
    """Return whether factors of products are to be rounded here."""
    return (
        _chosen is not None
        and inputs.dtype == torch.float32
        and inputs.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
    )


def narrowed(matrix: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the matrix as a factor of products: rounded, or as it is."""
    return matrix if _chosen is None or not narrows(matrix) else matrix.to(_chosen)
