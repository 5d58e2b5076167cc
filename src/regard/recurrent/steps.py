"""Single steps of the cells, made for loops: the inputs' part of all gates is given, done at once.

Where a decoder's next input depends on its last state, no kernel can read a whole sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from regard.attention.repeated import product
from regard.base.shapes import Bool, Float, Tensor

# The visible state first: (h,) for most cells, (h, c) for the LSTM; each [batch, hidden].
StepState = tuple[Tensor, ...]


class Recurrence(NamedTuple):
    """What a step needs of a cell besides its inputs' part."""

    kind: str
    state_weights: Float[Tensor, "gates_hidden hidden"]
    candidate_bias: Float[Tensor, "hidden"] | None  # the GRU's


def cell_step(
    cell: Recurrence, projected: Float[Tensor, "batch gates_hidden"], state: StepState
) -> StepState:
    """Return the state after one more input, given U x + b for all gates."""
    return STEPS[cell.kind](cell, projected, state)


def read_steps(
    cell: Recurrence,
    projected: Float[Tensor, "batch time gates_hidden"],
    state: StepState,
    *,
    mask: Bool[Tensor, "batch time"] | None = None,
    backward: bool = False,
) -> tuple[Float[Tensor, "batch time hidden"], StepState]:
    """Read a sequence step by step, from either end; where the mask is False nothing happens."""
    inputs = projected.unbind(dim=1)
    real = None if mask is None else mask[:, :, None].unbind(dim=1)
    order = range(len(inputs))
    outputs: list[Tensor] = list(inputs)
    for time in reversed(order) if backward else order:
        after = cell_step(cell, inputs[time], state)
        if real is None:
            state, outputs[time] = after, after[0]
        else:
            kept = zip(after, state, strict=True)
            state = tuple(torch.where(real[time], new, old) for new, old in kept)
            outputs[time] = state[0] * real[time]
    return torch.stack(outputs, dim=1), state


def _tanh_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    (h,) = state
    return (torch.tanh(product(h, cell.state_weights, projected)),)


def _gru_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    (h,) = state
    width = 2 * h.shape[1]
    of_state = product(h, cell.state_weights)
    gates = torch.sigmoid(projected[:, :width] + of_state[:, :width])
    r, z = gates.chunk(2, dim=1)
    of_candidate = of_state[:, width:]
    if cell.candidate_bias is not None:
        of_candidate = of_candidate + cell.candidate_bias
    candidate = torch.tanh(torch.addcmul(projected[:, width:], r, of_candidate))
    return (torch.lerp(candidate, h, z),)  # (1-z) h~ + z h


def _gated_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    (s,) = state
    g, candidate = product(s, cell.state_weights, projected).chunk(2, dim=1)
    return (torch.lerp(s, torch.tanh(candidate), torch.sigmoid(g)),)  # (1-g) s + g s~


def _lstm_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    h, c = state
    gates = product(h, cell.state_weights, projected)
    after: StepState = _LstmGates.apply(gates, c)  # type: ignore[no-untyped-call]
    return after


class _LstmGates(torch.autograd.Function):
    """c' = f c + i g, h' = o tanh(c'), from all gates at once, with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        hidden = c.shape[1]
        active = torch.sigmoid(gates)
        i, f, g, o = active.chunk(4, dim=1)
        torch.tanh(gates[:, 2 * hidden : 3 * hidden], out=g)
        after = torch.addcmul(f * c, i, g)
        visible = torch.tanh(after)
        ctx.save_for_backward(active, c, visible)
        return o * visible, after

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        of_h, of_after = gradients
        active, c, visible = ctx.saved_tensors
        i, f, g, o = active.chunk(4, dim=1)
        of_gates = torch.empty_like(active)
        of_i, of_f, of_g, of_o = of_gates.chunk(4, dim=1)
        # d tanh(x) = 1 - tanh(x)^2
        of_c = torch.addcmul(of_after, of_h * o, 1 - visible * visible)
        torch.mul(of_c, g, out=of_i)
        torch.mul(of_c, c, out=of_f)
        torch.mul(of_h, visible, out=of_o)
        # d sigmoid(x) = sigmoid(x) (1 - sigmoid(x)), for three gates in one pass
        of_gates *= active - active * active
        torch.mul(of_c * i, 1 - g * g, out=of_g)
        return of_gates, of_c * f


STEPS: dict[str, Callable[[Recurrence, Tensor, StepState], StepState]] = {
    "tanh": _tanh_step,
    "gru": _gru_step,
    "lstm": _lstm_step,
    "gated": _gated_step,
}
