"""Matrix products by the faster of the two libraries that torch brings.

Torch multiplies in single precision with MKL, which leaves half of the vector width of AMD's
processors unused; oneDNN does not. On an AMD processor with AVX-512, oneDNN takes about half the
time for the products of a Transformer, forwards and backwards. Small products stay with MKL.
"""

import os
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.function import once_differentiable
from torch.utils.weak import WeakTensorKeyDictionary

from regard.base.shapes import Float, Tensor
from regard.compute.device import HOST, has_idle_avx512, on_host
from regard.compute.precision import narrowed, narrows

# The number of multiplications below which preparing a product costs more than it saves, and the
# number of rows below which transposing a weight does.
FEWEST_ELEMENTS = 2**20
FEWEST_ROWS = 64
# How many kernels oneDNN caches, one for each shape. Training has many shapes, which would fill
# the memory for nothing; 16 are enough for the layers of one batch.
KERNELS = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16", "LRU_CACHE_CAPACITY": "16"}
# The transposed parts of each frozen parameter, by offset and shape, with the version of it.
# Trained parameters are not kept: torch's fused optimisers change weights without a new version.
_TRANSPOSED: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def linear(
    inputs: Float[Tensor, "*places input_dim"],
    weight: Float[Tensor, "output_dim input_dim"],
    bias: Float[Tensor, "output_dim"] | None = None,
) -> Float[Tensor, "*places output_dim"]:
    """Return x W^T + b, as torch's `linear` does."""
    if narrows(inputs) and inputs.numel() * len(weight) >= FEWEST_ELEMENTS:
        if torch.compiler.is_compiling():
            found = F.linear(narrowed(inputs), narrowed(weight)).float()
            return found if bias is None else found + bias
        narrow: Tensor = _NarrowLinear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
        return narrow
    if not onednn_pays(inputs, weight.T) or torch.is_autocast_enabled(HOST.type):
        return F.linear(inputs, weight, bias)
    if not torch.is_grad_enabled() and (kept := _kept_transposed(weight)) is not None:
        return onednn_product(inputs, kept, bias)
    if inputs.shape[:-1].numel() < FEWEST_ROWS:
        return F.linear(inputs, weight, bias)
    whole: Tensor = _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return whole


class Linear(nn.Linear):
    """torch's layer x W^T + b, with the same names and the same initial weights."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return x W^T + b at each place."""
        return linear(inputs, self.weight, self.bias)


def product(
    left: Float[Tensor, "rows inner"],
    right: Float[Tensor, "inner columns"],
    *,
    room: Float[Tensor, "rows columns"] | None = None,
) -> Float[Tensor, "rows columns"]:
    """Return the product of two matrices, for gradients by hand: autograd does not see it.

    The result is written into `room` if the library can do that. Where the factors are `narrowed`,
    it is rounded like them.
    """
    if left.dtype == torch.bfloat16:
        return torch.mm(left, right).float()
    if onednn_pays(left, right):
        return onednn_product(left, right)
    return torch.mm(left, right, out=room)


def add_product(
    total: Float[Tensor, "rows columns"],
    left: Float[Tensor, "rows inner"],
    right: Float[Tensor, "inner columns"],
) -> None:
    """Add the product of two matrices to a sum, as `product` makes it."""
    if left.dtype == torch.bfloat16:
        total += torch.mm(left, right)
    elif onednn_pays(left, right):
        total += onednn_product(left, right)
    else:
        total.addmm_(left, right)


def transposed(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "columns rows"]:
    """Return a transposed matrix that is to be the right side of many products."""
    return matrix.T.contiguous() if on_host(matrix) and prefers_onednn() else matrix.T


class _Linear(torch.autograd.Function):
    """y = x W^T + b; with g = dL/dy the gradients are g W, g^T x and the sum of g over places."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return onednn_product(inputs, weight.T, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        g, x = (part.reshape(-1, part.shape[-1]) for part in (gradient, inputs))
        by_inputs = by_weight = by_bias = None
        if ctx.needs_input_grad[0]:
            by_inputs = product(g, weight).view(inputs.shape)
        if ctx.needs_input_grad[1]:
            # The left one is transposed first: let that be the narrower one.
            narrow = x.shape[1] < g.shape[1]
            by_weight = product(x.T, g).T if narrow else product(g.T, x)
        if ctx.needs_input_grad[2]:
            by_bias = g.sum(dim=0)
        return by_inputs, by_weight, by_bias


class _NarrowLinear(torch.autograd.Function):
    """As `_Linear`, with factors of sixteen bits, which are also what it keeps for the gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, w = narrowed(inputs), narrowed(weight)
        ctx.save_for_backward(x, w)
        found = F.linear(x, w).float()
        return found if bias is None else found.add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        g = gradient.reshape(-1, gradient.shape[-1])
        x, narrow = inputs.reshape(-1, inputs.shape[-1]), g.to(weight.dtype)
        by_inputs = by_weight = by_bias = None
        if ctx.needs_input_grad[0]:
            by_inputs = product(narrow, weight).view(inputs.shape)
        if ctx.needs_input_grad[1]:
            by_weight = product(narrow.T, x)
        if ctx.needs_input_grad[2]:
            by_bias = g.sum(dim=0)
        return by_inputs, by_weight, by_bias


def onednn_pays(left: Tensor, right: Tensor) -> bool:
    """Return whether oneDNN is faster for this product."""
    return (
        not torch.compiler.is_compiling()  # first: a compiler cannot look at the processor
        and prefers_onednn()
        and left.dtype == right.dtype == torch.float32
        and on_host(left)
        and left.numel() * right.shape[1] >= FEWEST_ELEMENTS
    )


@cache
def prefers_onednn() -> bool:
    """Return whether oneDNN is faster on this processor; if so, limit how much it caches."""
    if not has_idle_avx512() or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    for name, value in KERNELS.items():
        os.environ.setdefault(name, value)
    return True


def onednn_product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the product by oneDNN, with the right matrix stored row by row.

    For any other layout oneDNN makes a kernel of megabytes for each number of rows, or is slow.
    """
    by_rows = right.contiguous().T
    found: Tensor = torch.ops.mkldnn._linear_pointwise(left, by_rows, bias, "none", [], "")
    return found


def _kept_transposed(weight: Tensor) -> Tensor | None:
    """Return W^T, stored row by row and cached, of a frozen parameter or a part of one."""
    owner = weight if weight._base is None else weight._base
    if not isinstance(owner, nn.Parameter):
        return None
    if owner.requires_grad:
        _TRANSPOSED.pop(owner, None)  # type: ignore[no-untyped-call]  # it may have been frozen before
        return None
    parts = _TRANSPOSED.setdefault(owner, {})  # type: ignore[no-untyped-call]
    place = (weight.storage_offset(), weight.shape, weight.stride())
    state = (owner._version, owner.data_ptr())
    known = parts.get(place)
    if known is None or known[0] != state:
        known = parts[place] = (state, weight.T.contiguous())
    kept: Tensor = known[1]
    return kept


# What each step recorded: the gradient of its result, and what it multiplied the matrix with.
Tape = list[tuple[Tensor, Tensor]]


def shared(matrix: Float[Tensor, "*batch rows columns"]) -> Float[Tensor, "*batch rows columns"]:
    """Return the same matrix, marked for `shared_product` and `weighted_sum` in a loop."""
    if not (torch.is_grad_enabled() and matrix.requires_grad):
        return matrix
    anchored: Tensor = _Anchor.apply(matrix)  # type: ignore[no-untyped-call]
    return anchored


def shared_product(
    left: Float[Tensor, "*left columns"],
    matrix: Float[Tensor, "*batch rows columns"],
    plus: Float[Tensor, "*left rows"] | None = None,
) -> Float[Tensor, "*left rows"]:
    """Return x M^T (+ `plus`), as nn.Linear and dot scores compute it."""
    if _is_shared(matrix):
        result: Tensor = _Product.apply(left, matrix, plus, True)  # type: ignore[no-untyped-call]
        return result
    return _multiply(left, matrix.mT, plus)


def weighted_sum(
    left: Float[Tensor, "*left rows"], matrix: Float[Tensor, "*batch rows columns"]
) -> Float[Tensor, "*left columns"]:
    """Return x M: the rows of the matrix, mixed with these weights."""
    if _is_shared(matrix):
        result: Tensor = _Product.apply(left, matrix, None, False)  # type: ignore[no-untyped-call]
        return result
    return left @ matrix


def _is_shared(matrix: Tensor) -> bool:
    # The graph node of an anchored matrix is the one that holds its tape.
    return hasattr(matrix.grad_fn, "regard_tape")


def _multiply(left: Tensor, right: Tensor, plus: Tensor | None) -> Tensor:
    if plus is None:
        return left @ right
    return torch.addmm(plus, left, right) if left.dim() == 2 else plus + left @ right


class _Anchor(torch.autograd.Function):
    """The matrix before the loop: its backward runs last, when every step has recorded its part."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        ctx.regard_tape = []
        ctx.set_materialize_grads(False)
        return matrix.view_as(matrix)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Tensor | None:
        tape: Tape = ctx.regard_tape
        ctx.regard_tape = []
        (direct,) = gradients
        if not tape:
            return direct
        # [*batch, steps * rows, columns]: steps follow each other in the last axis but one.
        rows = torch.cat([row for row, _ in tape], dim=-2)
        columns = torch.cat([column for _, column in tape], dim=-2)
        collected = rows.mT @ columns
        return collected if direct is None else collected + direct


class _Product(torch.autograd.Function):
    """One step's product; the gradient of the matrix is left to the anchor."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, matrix: Tensor, plus: Tensor | None, transposed: bool
    ) -> Tensor:
        ctx.save_for_backward(left, matrix)
        ctx.transposed = transposed
        ctx.tape_holder = matrix.grad_fn
        return _multiply(left, matrix.mT if transposed else matrix, plus)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, Tensor | None, None]:
        left, matrix = ctx.saved_tensors
        (gradient,) = gradients
        tape: Tape = ctx.tape_holder.regard_tape
        of_plus = gradient if ctx.needs_input_grad[2] else None
        if ctx.transposed:
            tape.append((gradient, left))
            return gradient @ matrix, None, of_plus, None
        tape.append((left, gradient))
        return gradient @ matrix.mT, None, of_plus, None
