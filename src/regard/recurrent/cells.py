"""Recurrent cells on torch's fused kernels: tanh RNN, GRU and LSTM; and the single-gate unit.

One bias a gate, as papers and Keras count them. torch's kernels add a second bias to every gate;
here it is a constant zero, except inside the GRU's candidate, whose form needs it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from regard.attention.masks import padding_mask
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.linear import linear, shared
from regard.recurrent.kernels import Recurrence, read_lstm, read_steps

# Each tensor is [layers * directions, batch, hidden]: (h,) for most cells, (h, c) for the LSTM.
CellState = tuple[Tensor, ...]


@dataclass(frozen=True)
class CellKind:
    """What distinguishes one cell from another: how many gates, and how many state tensors."""

    gates: int
    states: int
    biased: bool = True


CELLS = {
    "tanh": CellKind(gates=1, states=1),  # h_t = tanh(U x_t + W h_{t-1} + b)
    "gru": CellKind(gates=3, states=1),  # Cho et al. 2014, in the form of torch and cuDNN
    "lstm": CellKind(gates=4, states=2),  # Hochreiter & Schmidhuber 1997, with forget gate
    "gated": CellKind(gates=2, states=1, biased=False),  # s_t = (1-g) s_{t-1} + g s~_t
}
# torch's fused kernels have no type annotations.
_KERNELS: dict[str, Callable[..., tuple[Tensor, ...]]] = {
    "tanh": torch.rnn_tanh,
    "gru": torch.gru,
    "lstm": torch.lstm,
}


@runtime_checkable
class ReadLayer(Protocol):
    """Reads with one layer in one direction, chosen by its number among the weights."""

    def __call__(self, number: int, inputs: Tensor, *, backward: bool) -> tuple[Tensor, CellState]:
        """Return all its states and the last one."""
        ...


class CellWeights(nn.Module):
    """The weights of one layer in one direction."""

    def __init__(self, *, kind: str, input_dim: int, hidden: int):
        super().__init__()
        gates = CELLS[kind].gates
        bound = 1 / math.sqrt(hidden)
        self.kind = kind
        self.input_weights = nn.Parameter(torch.empty(gates * hidden, input_dim))
        self.state_weights = nn.Parameter(torch.empty(gates * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(gates * hidden)) if CELLS[kind].biased else None
        for weights in (self.input_weights, self.state_weights):
            nn.init.uniform_(weights, -bound, bound)
        if (
            kind == "lstm" and self.bias is not None
        ):  # a cell that remembers at first learns to (Jozefowicz et al. 2015)
            nn.init.ones_(self.bias[hidden : 2 * hidden])
        if kind == "gru":
            self.candidate_bias = nn.Parameter(torch.zeros(hidden))
        self.no_bias: Tensor
        self.register_buffer("no_bias", torch.zeros(gates * hidden), persistent=False)

    def flat(self) -> list[Tensor]:
        """Return the four tensors that torch's kernels take."""
        second = self.no_bias
        if self.bias is None:
            return [self.input_weights, self.state_weights, second, second]
        if self.kind == "gru":
            second = torch.cat([second[: -len(self.candidate_bias)], self.candidate_bias])
        return [self.input_weights, self.state_weights, self.bias, second]

    def project(
        self, inputs: Float[Tensor, "*positions input_dim"]
    ) -> Float[Tensor, "*positions gates_hidden"]:
        """Return U x + b for all gates and all steps at once, before a loop."""
        return linear(inputs, self.input_weights, self.bias)

    def recurrence(self) -> Recurrence:
        """Return what each step of a loop needs."""
        bias = self.candidate_bias if self.kind == "gru" else None
        return Recurrence(self.kind, shared(self.state_weights), bias)


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
        like = self.cells[0].state_weights
        shape = (len(self.weights), batch, self.cell_hidden)
        return tuple(like.new_zeros(shape) for _ in range(CELLS[self.kind].states))

    def forward(
        self, inputs: Float[Tensor, "batch time input_dim"], state: CellState
    ) -> tuple[Float[Tensor, "batch time hidden"], CellState]:
        """Read sequences of one length; return every hidden state and the last one."""
        if self.kind not in _KERNELS:
            return self._loop(inputs, state, mask=None)
        outputs, *last = self._kernel(inputs, state, *self._arguments(), True)
        return outputs, tuple(last)

    def read_packed(
        self, inputs: Float[Tensor, "batch time input_dim"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch time hidden"], CellState]:
        """Read sequences of these lengths from both ends, never touching the padding."""
        if self.kind not in _KERNELS:
            mask = padding_mask(lengths, size=inputs.shape[1])
            return self._loop(inputs, self.zero_state(len(inputs)), mask=mask)
        ordered, order = lengths.cpu().sort(descending=True)
        packed = pack_padded_sequence(inputs[order], ordered, batch_first=True)
        data, last = self._read_data(packed.data, packed.batch_sizes, self.zero_state(len(inputs)))
        outputs, _ = pad_packed_sequence(
            PackedSequence(data, packed.batch_sizes), batch_first=True, total_length=inputs.shape[1]
        )
        back = order.argsort()
        return outputs[back], tuple(part[:, back] for part in last)

    def _read_data(
        self, data: Tensor, batch_sizes: Tensor, state: CellState
    ) -> tuple[Tensor, CellState]:
        """Read packed data; the LSTM has a layer here that trains faster than torch's kernel."""
        if self.kind != "lstm":
            data, *last = self._kernel(data, batch_sizes, state, *self._arguments())
            return data, tuple(last)
        sizes = batch_sizes.tolist()

        def read(number: int, inputs: Tensor, *, backward: bool) -> tuple[Tensor, CellState]:
            cell, (h, c) = self.cells[number], (part[number] for part in state)
            outputs, *end = read_lstm(
                cell.project(inputs), sizes, h, c, cell.state_weights, backward=backward
            )
            return outputs, tuple(end)

        return self._through_layers(data, read)

    def _loop(
        self,
        inputs: Float[Tensor, "batch time input_dim"],
        state: CellState,
        *,
        mask: Bool[Tensor, "batch time"] | None,
    ) -> tuple[Float[Tensor, "batch time hidden"], CellState]:
        """Read step by step what has no kernel, each layer and direction with its own state."""

        def read(number: int, inputs: Tensor, *, backward: bool) -> tuple[Tensor, CellState]:
            cell, begin = self.cells[number], tuple(part[number] for part in state)
            return read_steps(
                cell.recurrence(), cell.project(inputs), begin, mask=mask, backward=backward
            )

        return self._through_layers(inputs, read)

    def _through_layers(self, inputs: Tensor, read: ReadLayer) -> tuple[Tensor, CellState]:
        """Read with each layer in each direction; return the top's states and all last ones."""
        directions = 2 if self.bidirectional else 1
        last: list[CellState] = []
        for layer in range(self.layers):
            if layer and self.dropout:
                inputs = F.dropout(inputs, self.dropout, self.training)
            first = layer * directions
            found = [
                read(first + direction, inputs, backward=direction == 1)
                for direction in range(directions)
            ]
            inputs = torch.cat([states for states, _ in found], dim=-1)
            last += [end for _, end in found]
        return inputs, tuple(torch.stack(parts) for parts in zip(*last, strict=True))

    def _kernel(self, inputs: Tensor, *arguments: Any) -> tuple[Tensor, ...]:
        """Call torch's fused kernel; a state of one tensor goes in bare, as the kernels want it."""
        bare = [a[0] if isinstance(a, tuple) and len(a) == 1 else a for a in arguments]
        results: tuple[Tensor, ...] = _KERNELS[self.kind](inputs, *bare)
        return results

    def _arguments(self) -> tuple[list[Tensor], bool, int, float, bool, bool]:
        weights = [tensor for cell in self.cells for tensor in cell.flat()]
        return weights, True, self.layers, self.dropout, self.training, self.bidirectional

    @property
    def cells(self) -> list[CellWeights]:
        """The weights of each layer and direction."""
        return [cell for cell in self.weights if isinstance(cell, CellWeights)]
