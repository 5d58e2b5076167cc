"""A layer of LSTM cells with its own gradients, for packed sequences.

torch's packed kernel lets autograd go through every step. Here a step touches its own rows alone,
and the weights get their gradient in one product over all steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from regard.base.products import product
from regard.base.shapes import Float, Tensor


def read_lstm(
    projected: Float[Tensor, "positions four_hidden"],
    batch_sizes: list[int],
    h: Float[Tensor, "batch hidden"],
    c: Float[Tensor, "batch hidden"],
    state_weights: Float[Tensor, "four_hidden hidden"],
    *,
    backward: bool = False,
) -> tuple[
    Float[Tensor, "positions hidden"], Float[Tensor, "batch hidden"], Float[Tensor, "batch hidden"]
]:
    """Read packed sequences, from either end, given U x + b of all positions.

    Packed means: the first symbols of all sequences, then the second ones, and so on, the longest
    sequence first; `batch_sizes` says how many there are of each.
    """
    result: tuple[Tensor, Tensor, Tensor] = _LstmLayer.apply(  # type: ignore[no-untyped-call]
        projected, h, c, state_weights, batch_sizes, backward
    )
    return result


def _steps(batch_sizes: list[int], *, backward: bool) -> Iterator[tuple[int, slice]]:
    """Yield for each step how many sequences it has, and where their positions are."""
    ends = torch.tensor(batch_sizes).cumsum(0).tolist()
    steps = [(size, slice(end - size, end)) for size, end in zip(batch_sizes, ends, strict=True)]
    return iter(steps[::-1] if backward else steps)


class _LstmLayer(torch.autograd.Function):
    """All steps of one layer in one direction."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        h: Tensor,
        c: Tensor,
        weights: Tensor,
        batch_sizes: list[int],
        backward: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        hidden, transposed = h.shape[1], weights.T
        gates = torch.empty_like(projected)
        h, c = h.clone(), c.clone()
        outputs, before_h, before_c, visible = (
            projected.new_empty(len(projected), hidden) for _ in range(4)
        )
        for size, here in _steps(batch_sizes, backward=backward):
            state, cell, active = h[:size], c[:size], gates[here]
            before_h[here], before_c[here] = state, cell
            torch.addmm(projected[here], state, transposed, out=active)
            i, f, g, o = active.chunk(4, dim=1)
            active[:, : 2 * hidden].sigmoid_()
            g.tanh_()
            o.sigmoid_()
            cell.mul_(f).addcmul_(i, g)  # c = f c + i g
            torch.tanh(cell, out=visible[here])
            torch.mul(o, visible[here], out=state)  # h = o tanh(c)
            outputs[here] = state
        ctx.save_for_backward(gates, before_h, before_c, visible, weights)
        ctx.batch_sizes, ctx.backward_direction = batch_sizes, backward
        return outputs, h, c

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None, None]:
        gates, before_h, before_c, visible, weights = ctx.saved_tensors
        of_outputs, of_h, of_c = gradients[0], gradients[1].clone(), gradients[2].clone()
        of_gates = torch.empty_like(gates)
        # The steps in the opposite order to that in which they were read.
        for size, here in _steps(ctx.batch_sizes, backward=not ctx.backward_direction):
            i, f, g, o = gates[here].chunk(4, dim=1)
            of_active, seen = of_gates[here], visible[here]
            of_i, of_f, of_g, of_o = of_active.chunk(4, dim=1)
            of_state, of_cell = of_h[:size], of_c[:size]
            of_state += of_outputs[here]
            # d tanh(x) = 1 - tanh(x)^2; d sigmoid(x) = sigmoid(x) (1 - sigmoid(x))
            of_cell.addcmul_(of_state * o, 1 - seen * seen)
            torch.mul(of_cell, g, out=of_i)
            torch.mul(of_cell, before_c[here], out=of_f)
            torch.mul(of_state, seen, out=of_o)
            of_active.mul_(gates[here] - gates[here] * gates[here])
            torch.mul(of_cell * i, 1 - g * g, out=of_g)
            of_cell.mul_(f)
            torch.mm(of_active, weights, out=of_state)
        return of_gates, of_h, of_c, product(of_gates.T, before_h), None, None
