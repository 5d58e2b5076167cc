"""The arithmetic of recurrent cells: single steps, and an LSTM layer with its own gradients."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from regard.base.shapes import Bool, Float, Tensor
from regard.compute.linear import product, shared_product

# The visible state first: (h,) for most cells, (h, c) for the LSTM; each [batch, hidden].
StepState = tuple[Tensor, ...]


class Recurrence(NamedTuple):
    """What a step needs of a cell, apart from the projected inputs."""

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
    return (torch.tanh(shared_product(h, cell.state_weights, projected)),)


def _gru_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    (h,) = state
    width = 2 * h.shape[1]
    of_state = shared_product(h, cell.state_weights)
    gates = torch.sigmoid(projected[:, :width] + of_state[:, :width])
    r, z = gates.chunk(2, dim=1)
    of_candidate = of_state[:, width:]
    if cell.candidate_bias is not None:
        of_candidate = of_candidate + cell.candidate_bias
    candidate = torch.tanh(torch.addcmul(projected[:, width:], r, of_candidate))
    return (torch.lerp(candidate, h, z),)  # (1-z) h~ + z h


def _gated_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    (s,) = state
    g, candidate = shared_product(s, cell.state_weights, projected).chunk(2, dim=1)
    return (torch.lerp(s, torch.tanh(candidate), torch.sigmoid(g)),)  # (1-g) s + g s~


def _lstm_step(cell: Recurrence, projected: Tensor, state: StepState) -> StepState:
    h, c = state
    gates = shared_product(h, cell.state_weights, projected)
    after: StepState = _LstmGates.apply(gates, c)  # type: ignore[no-untyped-call]
    return after


class _LstmGates(torch.autograd.Function):
    """c' = f c + i g, h' = o tanh(c'), from all gates at once (Gers et al. 2000)."""

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


def read_lstm(
    projected: Float[Tensor, "positions four_hidden"],
    batch_sizes: list[int],
    h: Float[Tensor, "batch hidden"],
    c: Float[Tensor, "batch hidden"],
    chain: Sequence[Tensor],
    *,
    backward: bool = False,
) -> tuple[
    Float[Tensor, "positions hidden"], Float[Tensor, "batch hidden"], Float[Tensor, "batch hidden"]
]:
    """Read packed sequences, from either end, given U x + b of all positions.

    Packed sequences hold the first tokens of all sequences, then the second ones, and so on, the
    longest sequence first; `batch_sizes` says how many there are of each. The state is multiplied
    with the matrices of the chain in turn: W, or its factors, or blocks of it for `block_product`.
    """
    result: tuple[Tensor, Tensor, Tensor] = _LstmLayer.apply(  # type: ignore[no-untyped-call]
        projected, h, c, batch_sizes, backward, *chain
    )
    return result


def block_product(
    inputs: Float[Tensor, "rows width"], blocks: Float[Tensor, "groups four_part part"]
) -> Float[Tensor, "rows four_hidden"]:
    """Return what each group makes of its part of the inputs, ordered by gate, then by group."""
    parts = inputs.view(len(inputs), len(blocks), -1)
    found = torch.bmm(parts.transpose(0, 1), blocks.mT)  # [groups, rows, gates * part]
    ordered = found.view(len(blocks), len(inputs), 4, -1).permute(1, 2, 0, 3)
    return ordered.reshape(len(inputs), -1)


def _by_group(of_gates: Tensor, groups: int) -> Tensor:
    """Return [rows, gates * hidden] as [groups, rows, gates * part]: the reverse order."""
    return of_gates.view(len(of_gates), 4, groups, -1).permute(2, 0, 1, 3).flatten(2)


def _of_state(state: Tensor, chain: Sequence[Tensor], plus: Tensor, *, out: Tensor) -> None:
    """Write the products of a state with a chain of matrices, added to `plus`."""
    if chain[0].dim() == 3:
        torch.add(plus, block_product(state, chain[0]), out=out)
        return
    for matrix in chain[:-1]:
        state = state @ matrix.T
    torch.addmm(plus, state, chain[-1].T, out=out)


def _back_to_state(gradient: Tensor, chain: Sequence[Tensor], *, out: Tensor) -> None:
    """Write the gradient of a state, given that of its products."""
    if chain[0].dim() == 3:
        back = torch.bmm(_by_group(gradient, len(chain[0])), chain[0])
        out.copy_(back.transpose(0, 1).flatten(1))
        return
    for matrix in reversed(chain[1:]):
        gradient = gradient @ matrix
    torch.mm(gradient, chain[0], out=out)


def _of_chain(gradient: Tensor, states: Tensor, chain: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradient of each matrix, given all states and those of all their products."""
    if chain[0].dim() == 3:
        parts = states.view(len(states), len(chain[0]), -1).transpose(0, 1)
        return [torch.bmm(_by_group(gradient, len(chain[0])).mT, parts)]
    entering = [states]
    for matrix in chain[:-1]:
        entering.append(entering[-1] @ matrix.T)
    found = []
    for matrix, inputs in zip(reversed(chain), reversed(entering), strict=True):
        found.append(product(gradient.T, inputs))
        gradient = gradient @ matrix
    return found[::-1]


def _steps(batch_sizes: list[int], *, backward: bool) -> Iterator[tuple[int, slice]]:
    """Yield for each step how many sequences it has, and where their positions are."""
    ends = torch.tensor(batch_sizes).cumsum(0).tolist()
    steps = [(size, slice(end - size, end)) for size, end in zip(batch_sizes, ends, strict=True)]
    return iter(steps[::-1] if backward else steps)


class _LstmLayer(torch.autograd.Function):
    """All steps of one LSTM layer in one direction, with the gradient by hand."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        h: Tensor,
        c: Tensor,
        batch_sizes: list[int],
        backward: bool,
        *chain: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        hidden = h.shape[1]
        gates = torch.empty_like(projected)
        h, c = h.clone(), c.clone()
        outputs, before_h, before_c, visible = (
            projected.new_empty(len(projected), hidden) for _ in range(4)
        )
        for size, here in _steps(batch_sizes, backward=backward):
            state, cell, active = h[:size], c[:size], gates[here]
            before_h[here], before_c[here] = state, cell
            _of_state(state, chain, projected[here], out=active)
            i, f, g, o = active.chunk(4, dim=1)
            active[:, : 2 * hidden].sigmoid_()
            g.tanh_()
            o.sigmoid_()
            cell.mul_(f).addcmul_(i, g)  # c = f c + i g
            torch.tanh(cell, out=visible[here])
            torch.mul(o, visible[here], out=state)  # h = o tanh(c)
            outputs[here] = state
        ctx.save_for_backward(gates, before_h, before_c, visible, *chain)
        ctx.batch_sizes, ctx.backward_direction = batch_sizes, backward
        return outputs, h, c

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gates, before_h, before_c, visible, *chain = ctx.saved_tensors
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
            _back_to_state(of_active, chain, out=of_state)
        return of_gates, of_h, of_c, None, None, *_of_chain(of_gates, before_h, chain)
