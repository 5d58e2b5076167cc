"""Recurrent cells on torch's fused kernels: tanh RNN, GRU and LSTM.

One bias a gate, as papers and Keras count them. torch's kernels add a second bias to every gate;
here it is a constant zero, except inside the GRU's candidate, whose form needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.base.shapes import Float, Int, Tensor

# Each tensor is [layers * directions, batch, hidden]: (h,) for most cells, (h, c) for the LSTM.
CellState = tuple[Tensor, ...]


@dataclass(frozen=True)
class CellKind:
    """What distinguishes one cell from another: how many gates, and how many state tensors."""

    gates: int
    states: int


CELLS = {
    "tanh": CellKind(gates=1, states=1),  # h_t = tanh(U x_t + W h_{t-1} + b)
    "gru": CellKind(gates=3, states=1),  # Cho et al. 2014, in the form of torch and cuDNN
    "lstm": CellKind(gates=4, states=2),  # Hochreiter & Schmidhuber 1997, with forget gate
}


# torch's fused kernels carry no types of their own.
_KERNELS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "tanh": torch.rnn_tanh,
    "gru": torch.gru,
    "lstm": torch.lstm,
}


class CellWeights(nn.Module):
    """The weights of one layer in one direction."""

    def __init__(self, *, kind: str, input_dim: int, hidden: int):
        super().__init__()
        gates = CELLS[kind].gates
        bound = 1 / math.sqrt(hidden)
        self.kind = kind
        self.input_weights = nn.Parameter(torch.empty(gates * hidden, input_dim))
        self.state_weights = nn.Parameter(torch.empty(gates * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(gates * hidden))
        for weights in (self.input_weights, self.state_weights):
            nn.init.uniform_(weights, -bound, bound)
        if kind == "lstm":  # a cell that remembers at first learns to (Jozefowicz et al. 2015)
            nn.init.ones_(self.bias[hidden : 2 * hidden])
        if kind == "gru":
            self.candidate_bias = nn.Parameter(torch.zeros(hidden))
        self.no_bias: Tensor
        self.register_buffer("no_bias", torch.zeros(gates * hidden), persistent=False)

    def flat(self) -> list[Tensor]:
        """Return the four tensors that torch's kernels take."""
        second = self.no_bias
        if self.kind == "gru":
            second = torch.cat([second[: -len(self.candidate_bias)], self.candidate_bias])
        return [self.input_weights, self.state_weights, self.bias, second]


class RecurrentStack(nn.Module):
    """Layers of one kind of cell, in one or both directions, with dropout between the layers."""

    def __init__(
        self,
        *,
        kind: str,
        input_dim: int,
        hidden: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        directions = 2 if bidirectional else 1
        if hidden % directions:
            raise ValueError(f"hidden ({hidden}) must be even for a bidirectional network")
        self.kind = kind
        self.cell_hidden = hidden // directions
        self.layers = layers
        self.bidirectional = bidirectional
        self.dropout = dropout
        self.weights = nn.ModuleList(
            CellWeights(
                kind=kind,
                input_dim=input_dim if layer == 0 else hidden,
                hidden=self.cell_hidden,
            )
            for layer in range(layers)
            for _ in range(directions)
        )

    def zero_state(self, batch: int) -> CellState:
        """Return the state before anything was read."""
        like = self._cells()[0].bias
        shape = (len(self.weights), batch, self.cell_hidden)
        return tuple(like.new_zeros(shape) for _ in range(CELLS[self.kind].states))

    def forward(
        self, inputs: Float[Tensor, "batch time input_dim"], state: CellState
    ) -> tuple[Float[Tensor, "batch time hidden"], CellState]:
        """Read sequences of one length; return every hidden state and the last one."""
        outputs, *last = self._kernel(inputs, state, *self._arguments(), True)
        return outputs, tuple(last)

    def read_packed(
        self, inputs: Float[Tensor, "batch time input_dim"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch time hidden"], CellState]:
        """Read sequences of these lengths from both ends, never touching the padding."""
        ordered, order = lengths.cpu().sort(descending=True)
        packed = pack_padded_sequence(inputs[order], ordered, batch_first=True)
        data, *last = self._kernel(
            packed.data, packed.batch_sizes, self.zero_state(len(inputs)), *self._arguments()
        )
        outputs, _ = pad_packed_sequence(
            PackedSequence(data, packed.batch_sizes), batch_first=True, total_length=inputs.shape[1]
        )
        back = order.argsort()
        return outputs[back], tuple(part[:, back] for part in last)

    def _kernel(self, inputs: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        """Call torch's fused kernel; a state of one tensor goes in bare, as the kernels want it."""
        bare = [a[0] if isinstance(a, tuple) and len(a) == 1 else a for a in arguments]
        results: tuple[Tensor, ...] = _KERNELS[self.kind](inputs, *bare)
        return results

    def _arguments(self) -> tuple[list[Tensor], bool, int, float, bool, bool]:
        weights = [tensor for cell in self._cells() for tensor in cell.flat()]
        return weights, True, self.layers, self.dropout, self.training, self.bidirectional

    def _cells(self) -> list[CellWeights]:
        return [cell for cell in self.weights if isinstance(cell, CellWeights)]
