"""The cells as plain equations, one step and one gate at a time, as lectures write them.

The fast kernels in `cells` do the same with all gates in one matrix; tests hold both equal.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from regard.base.shapes import Float, Tensor
from regard.recurrent.cells import CELLS, CellState, CellWeights


class Gate(NamedTuple):
    """U x + W h + b: what stands inside every gate and every candidate."""

    input_weights: Float[Tensor, "hidden input_dim"]  # U
    state_weights: Float[Tensor, "hidden hidden"]  # W
    bias: Float[Tensor, "hidden"] | None  # b

    def __call__(
        self, x: Float[Tensor, "batch input_dim"], h: Float[Tensor, "batch hidden"]
    ) -> Float[Tensor, "batch hidden"]:
        """Return U x + W h + b."""
        return self.of_input(x) + self.of_state(h)

    def of_input(self, x: Float[Tensor, "batch input_dim"]) -> Float[Tensor, "batch hidden"]:
        """Return U x + b."""
        projected = x @ self.input_weights.T
        return projected if self.bias is None else projected + self.bias

    def of_state(self, h: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch hidden"]:
        """Return W h."""
        return h @ self.state_weights.T


def tanh_unit(x: Tensor, h: Tensor, *, update: Gate) -> Tensor:
    """h_t = tanh(U x_t + W h_{t-1} + b) (Elman 1990)."""
    return torch.tanh(update(x, h))


def lstm(
    x: Tensor,
    h: Tensor,
    c: Tensor,
    *,
    input_gate: Gate,
    forget_gate: Gate,
    candidate: Gate,
    output_gate: Gate,
) -> tuple[Tensor, Tensor]:
    """Return the visible state and the memory cell (Hochreiter & Schmidhuber 1997; Gers 2000)."""
    f = torch.sigmoid(forget_gate(x, h))
    i = torch.sigmoid(input_gate(x, h))
    o = torch.sigmoid(output_gate(x, h))
    c = f * c + i * torch.tanh(candidate(x, h))  # memory cell
    return o * torch.tanh(c), c  # visible state


def gru(
    x: Tensor, h: Tensor, *, reset: Gate, update: Gate, candidate: Gate, candidate_bias: Tensor
) -> Tensor:
    """h_t = z h_{t-1} + (1-z) h~ (Cho et al. 2014), the reset gate after the product with W."""
    r = torch.sigmoid(reset(x, h))
    z = torch.sigmoid(update(x, h))
    proposed = torch.tanh(candidate.of_input(x) + r * (candidate.of_state(h) + candidate_bias))
    return z * h + (1 - z) * proposed


def gated_unit(x: Tensor, s: Tensor, *, gate: Gate, candidate: Gate) -> Tensor:
    """s_t = (1-g) s_{t-1} + g tanh(W^ss s_{t-1} + W^sx x), g = sigmoid(W^gs s_{t-1} + W^gx x)."""
    g = torch.sigmoid(gate(x, s))
    return (1 - g) * s + g * torch.tanh(candidate(x, s))


def gates_of(weights: CellWeights) -> list[Gate]:
    """Return the gates of a cell, in the order in which its matrices hold them."""
    count = CELLS[weights.kind].gates
    biases = [None] * count if weights.bias is None else weights.bias.chunk(count)
    parts = zip(
        weights.input_weights.chunk(count), weights.state_weights.chunk(count), biases, strict=True
    )
    return [Gate(*part) for part in parts]


def step(weights: CellWeights, x: Float[Tensor, "batch input_dim"], state: CellState) -> CellState:
    """Return the state after one more input, by the equations of the cell's kind."""
    return EQUATIONS[weights.kind](weights, x, state)


def _tanh_step(weights: CellWeights, x: Tensor, state: CellState) -> CellState:
    (update,) = gates_of(weights)
    return (tanh_unit(x, *state, update=update),)


def _lstm_step(weights: CellWeights, x: Tensor, state: CellState) -> CellState:
    i, f, g, o = gates_of(weights)
    return lstm(x, *state, input_gate=i, forget_gate=f, candidate=g, output_gate=o)


def _gru_step(weights: CellWeights, x: Tensor, state: CellState) -> CellState:
    r, z, n = gates_of(weights)
    bias = weights.candidate_bias
    return (gru(x, *state, reset=r, update=z, candidate=n, candidate_bias=bias),)


def _gated_step(weights: CellWeights, x: Tensor, state: CellState) -> CellState:
    g, candidate = gates_of(weights)
    return (gated_unit(x, *state, gate=g, candidate=candidate),)


EQUATIONS: dict[str, Callable[[CellWeights, Tensor, CellState], CellState]] = {
    "tanh": _tanh_step,
    "gru": _gru_step,
    "lstm": _lstm_step,
    "gated": _gated_step,
}


def gates(weights: CellWeights, x: Tensor, state: CellState) -> dict[str, Tensor]:
    """Return the gates of a cell at one step, and its candidate, by their names."""
    h = state[0]
    parts = gates_of(weights)
    if weights.kind == "lstm":
        i, f, g, o = parts
        named = {"f": f, "i": i, "o": o}
        found = {name: torch.sigmoid(gate(x, h)) for name, gate in named.items()}
        return {**found, "c~": torch.tanh(g(x, h))}
    if weights.kind == "gru":
        reset, update, candidate = parts
        r, z = torch.sigmoid(reset(x, h)), torch.sigmoid(update(x, h))
        inner = candidate.of_state(h) + weights.candidate_bias
        return {"z": z, "r": r, "h~": torch.tanh(candidate.of_input(x) + r * inner)}
    if weights.kind == "gated":
        gate, candidate = parts
        return {"g": torch.sigmoid(gate(x, h)), "s~": torch.tanh(candidate(x, h))}
    return {}
