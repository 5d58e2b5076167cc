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
from regard.compute.device import HOST, moved, on_host
from regard.compute.linear import linear, shared
from regard.recurrent.kernels import Recurrence, block_product, read_lstm, read_steps

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
        self._make_matrices(gates, input_dim=input_dim, hidden=hidden, bound=bound)
        self.bias = nn.Parameter(torch.zeros(gates * hidden)) if CELLS[kind].biased else None
        if (
            kind == "lstm" and self.bias is not None
        ):  # a cell that remembers at first learns to (Jozefowicz et al. 2015)
            nn.init.ones_(self.bias[hidden : 2 * hidden])
        if kind == "gru":
            self.candidate_bias = nn.Parameter(torch.zeros(hidden))
        self.no_bias: Tensor
        self.register_buffer("no_bias", torch.zeros(gates * hidden), persistent=False)

    def _make_matrices(self, gates: int, *, input_dim: int, hidden: int, bound: float) -> None:
        self.input_weights = nn.Parameter(torch.empty(gates * hidden, input_dim))
        self.state_weights = nn.Parameter(torch.empty(gates * hidden, hidden))
        for weights in (self.input_weights, self.state_weights):
            nn.init.uniform_(weights, -bound, bound)

    @property
    def chain(self) -> tuple[Tensor, ...]:
        """The matrices that a state is multiplied with, one after the other, for all gates."""
        return (self.state_weights,)

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


class FactorisedWeights(CellWeights):
    """F-LSTM: one matrix for input and state, as a product of two narrow ones.

    W [x; h] = W_2 W_1 [x; h], with W_1 of r rows (Kuchaiev & Ginsburg 2017, section 2.2).
    """

    def __init__(self, *, kind: str, input_dim: int, hidden: int, rank: int):
        self._rank = rank
        super().__init__(kind=kind, input_dim=input_dim, hidden=hidden)

    def _make_matrices(self, gates: int, *, input_dim: int, hidden: int, bound: float) -> None:
        rank = self._rank
        self.input_factor = nn.Parameter(torch.empty(rank, input_dim))  # W_1, left columns
        self.state_factor = nn.Parameter(torch.empty(rank, hidden))  # W_1, right columns
        self.outer_factor = nn.Parameter(torch.empty(gates * hidden, rank))  # W_2
        for factor in (self.input_factor, self.state_factor):
            nn.init.uniform_(factor, -bound, bound)
        # So that the product has the spread of an undivided matrix.
        nn.init.uniform_(self.outer_factor, -math.sqrt(3 / rank), math.sqrt(3 / rank))

    @property
    def input_weights(self) -> Tensor:  # type: ignore[override]
        """U, multiplied out."""
        return self.outer_factor @ self.input_factor

    @property
    def state_weights(self) -> Tensor:  # type: ignore[override]
        """W, multiplied out."""
        return self.outer_factor @ self.state_factor

    @property
    def chain(self) -> tuple[Tensor, ...]:
        """The two factors."""
        return self.state_factor, self.outer_factor

    def project(
        self, inputs: Float[Tensor, "*positions input_dim"]
    ) -> Float[Tensor, "*positions gates_hidden"]:
        """Return U x + b for all gates and all steps at once, before a loop."""
        return linear(linear(inputs, self.input_factor), self.outer_factor, self.bias)


class GroupedWeights(CellWeights):
    """G-LSTM: k independent groups, each with its part of input and state.

    (Kuchaiev & Ginsburg 2017, section 2.3.) The matrices are blocks on a diagonal, for each gate.
    """

    def __init__(self, *, kind: str, input_dim: int, hidden: int, groups: int):
        for name, width in (("hidden", hidden), ("input width", input_dim)):
            if width % groups:
                raise ValueError(f"{name} ({width}) must be divisible by cell_groups ({groups})")
        self._groups = groups
        super().__init__(kind=kind, input_dim=input_dim, hidden=hidden)

    def _make_matrices(self, gates: int, *, input_dim: int, hidden: int, bound: float) -> None:
        groups = self._groups
        rows = gates * hidden // groups
        self.input_blocks = nn.Parameter(torch.empty(groups, rows, input_dim // groups))
        self.state_blocks = nn.Parameter(torch.empty(groups, rows, hidden // groups))
        for blocks in (self.input_blocks, self.state_blocks):
            nn.init.uniform_(blocks, -bound * math.sqrt(groups), bound * math.sqrt(groups))

    @property
    def input_weights(self) -> Tensor:  # type: ignore[override]
        """U with all its zeros."""
        return _whole(self.input_blocks, gates=CELLS[self.kind].gates)

    @property
    def state_weights(self) -> Tensor:  # type: ignore[override]
        """W with all its zeros."""
        return _whole(self.state_blocks, gates=CELLS[self.kind].gates)

    @property
    def chain(self) -> tuple[Tensor, ...]:
        """The blocks."""
        return (self.state_blocks,)

    def project(
        self, inputs: Float[Tensor, "*positions input_dim"]
    ) -> Float[Tensor, "*positions gates_hidden"]:
        """Return U x + b for all gates and all steps at once, before a loop."""
        found = block_product(inputs.flatten(0, -2), self.input_blocks)
        found = found.view(*inputs.shape[:-1], -1)
        return found if self.bias is None else found + self.bias


def _whole(
    blocks: Float[Tensor, "groups rows columns"], *, gates: int
) -> Float[Tensor, "all_rows all_columns"]:
    """Return a matrix whose rows are ordered by gate, then by group."""
    groups, rows, columns = blocks.shape
    of_gates = blocks.view(groups, gates, rows // gates, columns).unbind(dim=1)
    whole: list[Tensor] = [torch.block_diag(*gate) for gate in of_gates]  # type: ignore[no-untyped-call]
    return torch.cat(whole)


def cell_weights(
    *, kind: str, input_dim: int, hidden: int, rank: int | None = None, groups: int = 1
) -> CellWeights:
    """Return fresh weights of a layer in one direction: whole, in factors, or in groups."""
    sizes = {"kind": kind, "input_dim": input_dim, "hidden": hidden}
    if (rank is not None or groups > 1) and kind != "lstm":
        raise ValueError(f'cell_rank and cell_groups are for cell = "lstm" (given: "{kind}")')
    if rank is not None and groups > 1:
        raise ValueError("cell_rank and cell_groups exclude each other; choose one")
    if rank is not None:
        return FactorisedWeights(**sizes, rank=rank)  # type: ignore[arg-type]
    if groups > 1:
        return GroupedWeights(**sizes, groups=groups)  # type: ignore[arg-type]
    return CellWeights(**sizes)  # type: ignore[arg-type]


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
        residual: bool = False,
        rank: int | None = None,
        groups: int = 1,
    ):
        """An LSTM may have matrices in factors of some `rank`, or in `groups`.

        With `residual`, what enters a layer is added to what leaves it, from the second layer on
        (Wu et al. 2016, eq. 6): the top gives the sum of the hidden states of all layers.
        """
        super().__init__()
        directions = 2 if bidirectional else 1
        if hidden % directions:
            raise ValueError(f"hidden ({hidden}) must be even for a bidirectional network")
        self.kind = kind
        self.cell_hidden = hidden // directions
        self.layers = layers
        self.bidirectional = bidirectional
        self.dropout = dropout
        self.residual = residual
        self.divided = rank is not None or groups > 1
        self.weights = nn.ModuleList(
            cell_weights(
                kind=kind,
                input_dim=input_dim if layer == 0 else hidden,
                hidden=self.cell_hidden,
                rank=rank,
                groups=groups,
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
        if not self._has_kernel:
            return self._loop(inputs, state, mask=None)
        if self.divided or self.residual:
            batch, time = inputs.shape[:2]
            sizes = torch.full((time,), batch)
            data, last = self._read_data(inputs.transpose(0, 1).flatten(0, 1), sizes, state)
            return data.view(time, batch, -1).transpose(0, 1), last
        outputs, *end = self._kernel(inputs, state, *self._arguments(), True)
        return outputs, tuple(end)

    def read_packed(
        self, inputs: Float[Tensor, "batch time input_dim"], lengths: Int[Tensor, "batch"]
    ) -> tuple[Float[Tensor, "batch time hidden"], CellState]:
        """Read sequences of these lengths from both ends, never touching the padding."""
        if not self._has_kernel:
            mask = padding_mask(lengths, size=inputs.shape[1])
            return self._loop(inputs, self.zero_state(len(inputs)), mask=mask)
        ordered, places = lengths.to(HOST).sort(descending=True)  # torch packs by lengths there
        order = moved(places, inputs.device)
        packed = pack_padded_sequence(inputs[order], ordered, batch_first=True)
        data, last = self._read_data(packed.data, packed.batch_sizes, self.zero_state(len(inputs)))
        outputs, _ = pad_packed_sequence(
            PackedSequence(data, packed.batch_sizes), batch_first=True, total_length=inputs.shape[1]
        )
        back = order.argsort()
        return outputs[back], tuple(part[:, back] for part in last)

    @property
    def _has_kernel(self) -> bool:
        """Whether more than a step is computed at once; torch's kernels know no residuals."""
        return self.kind == "lstm" or (self.kind in _KERNELS and not self.residual)

    def _read_data(
        self, data: Tensor, batch_sizes: Tensor, state: CellState
    ) -> tuple[Tensor, CellState]:
        """Read packed data; on a processor the LSTM has a layer that trains faster than torch's."""
        if self.kind != "lstm" or not (self.divided or on_host(data)):
            data, *last = self._kernel(data, batch_sizes, state, *self._arguments())
            return data, tuple(last)
        sizes = batch_sizes.tolist()

        def read(number: int, inputs: Tensor, *, backward: bool) -> tuple[Tensor, CellState]:
            cell, (h, c) = self.cells[number], (part[number] for part in state)
            outputs, *end = read_lstm(
                cell.project(inputs), sizes, h, c, cell.chain, backward=backward
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
            below = inputs
            if layer and self.dropout:
                inputs = F.dropout(inputs, self.dropout, self.training)
            first = layer * directions
            found = [
                read(first + direction, inputs, backward=direction == 1)
                for direction in range(directions)
            ]
            inputs = torch.cat([states for states, _ in found], dim=-1)
            if layer and self.residual:
                inputs = inputs + below
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
