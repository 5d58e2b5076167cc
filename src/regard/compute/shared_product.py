"""Products with a matrix that every step of a loop shares; its gradient is one large product.

Autograd adds to the gradient of a weight at every step: a thin product and a pass over the whole
matrix each time. Here the steps only record what they multiplied; one product follows at the end.
"""

from __future__ import annotations

from typing import Any

import torch

from regard.base.shapes import Float, Tensor

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
