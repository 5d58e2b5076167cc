"""Recurrent decoders: attention after the state update (Luong) or before it (Bahdanau)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from regard.attention.lookup import Lookup, Memory
from regard.attention.probe import Probe
from regard.base.results import Encoded, Output
from regard.base.shapes import Float, Int, Tensor
from regard.compute.dropout import Dropout
from regard.compute.linear import linear, shared, shared_product
from regard.recurrent.cells import CELLS, CellState, RecurrentStack
from regard.recurrent.kernels import StepState, cell_step


class RecurrentDecoderState(NamedTuple):
    """Everything that the next step needs."""

    cells: CellState
    memory: Memory | None
    """The source to look at; None without attention."""
    handed: Float[Tensor, "batch width"] | None = None
    """What the next step reads in addition: with input feeding, the features of this step; in a
    decoder that reads a summary of the source at every step, that summary."""

    def select(self, rows: Int[Tensor, "chosen"]) -> RecurrentDecoderState:
        """Return the state of these rows of the batch, in this order."""
        return RecurrentDecoderState(
            cells=tuple(part.index_select(1, rows) for part in self.cells),
            memory=None if self.memory is None else self.memory.select(rows),
            handed=None if self.handed is None else self.handed.index_select(0, rows),
        )


class StartState(nn.Module):
    """The first state of all layers of a decoder: zero, or s_0 = tanh(W x + b).

    x is the mean of the memory (Firat & Cho 2015), or the last state of the encoder's top layer.
    """

    def __init__(
        self, stack: RecurrentStack, *, projection: nn.Linear | None, of_mean: bool = False
    ):
        super().__init__()
        self.shape = (stack.layers, stack.cell_hidden)
        self.states = CELLS[stack.kind].states
        self.projection = projection
        self.of_mean = of_mean

    def forward(self, encoded: Encoded) -> CellState:
        """Return the state before the first target token."""
        layers, hidden = self.shape
        if self.projection is None:
            empty = encoded.memory.new_zeros(layers, len(encoded.memory), hidden)
            return (empty,) * self.states
        summary = encoded.summary[0][-1]
        if self.of_mean:
            real = encoded.mask[:, :, None].to(encoded.memory.dtype)
            summary = (encoded.memory * real).sum(dim=1) / real.sum(dim=1)
        first = torch.tanh(self.projection(summary))
        return (first.expand(layers, -1, -1).contiguous(),) * self.states


class StackLoop:
    """A stack of one direction that reads [known; late]: the known part is multiplied beforehand.

    It lives for one pass over a sequence; the stack itself keeps no state.
    """

    def __init__(
        self,
        stack: RecurrentStack,
        known: Float[Tensor, "batch time known_dim"],
        state: CellState,
    ):
        first, *others = stack.cells
        known_dim = known.shape[-1]
        weights = first.input_weights
        self.projected = linear(known, weights[:, :known_dim], first.bias).unbind(dim=1)
        self.late_weights = shared(weights[:, known_dim:])
        self.upper = [(shared(cell.input_weights), cell.bias) for cell in others]
        self.recurrences = [cell.recurrence() for cell in stack.cells]
        self.states: list[StepState] = [
            tuple(part[layer] for part in state) for layer in range(stack.layers)
        ]
        self.dropout = stack.dropout if stack.training else 0.0
        self.residual = stack.residual

    def __len__(self) -> int:
        return len(self.projected)

    @property
    def hidden(self) -> Float[Tensor, "batch hidden"]:
        """What leaves the top layer: its visible state, with residuals the sum of all."""
        return self.sum if self.residual else self.states[-1][0]

    @property
    def sum(self) -> Float[Tensor, "batch hidden"]:
        """The visible states of all layers, added up."""
        return torch.stack([state[0] for state in self.states]).sum(dim=0)

    def step(
        self, time: int, late: Float[Tensor, "batch late_dim"]
    ) -> Float[Tensor, "batch hidden"]:
        """Read the input of this time with its late part; return the top layer's new state."""
        projected = shared_product(late, self.late_weights, self.projected[time])
        self.states[0] = cell_step(self.recurrences[0], projected, self.states[0])
        entering = self.states[0][0]
        for layer, (weights, bias) in enumerate(self.upper, start=1):
            below = self.states[layer - 1][0]
            if layer > 1 and self.residual:
                below = below + entering
            entering = below
            if self.dropout:
                below = F.dropout(below, self.dropout)
            projected = shared_product(below, weights)
            projected = projected if bias is None else projected + bias
            self.states[layer] = cell_step(self.recurrences[layer], projected, self.states[layer])
        return self.hidden

    def last(self) -> CellState:
        """Return the state after the last step, as stacks take it."""
        return tuple(torch.stack(parts) for parts in zip(*self.states, strict=True))


class LuongDecoder(nn.Module):
    """s_i = f(s_{i-1}, y_{i-1}), with features t_i = tanh(W [s_i; c_i]) (Luong et al. 2015, eq. 5).

    Without `combine` they are [s_i; c_i], without attention s_i. With input feeding (section 3.3)
    s_i = f(s_{i-1}, [y_{i-1}; t_{i-1}]), and the stack reads wider inputs.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        stack: RecurrentStack,
        lookup: Lookup | None,
        combine: nn.Linear | None,
        input_feeding: bool = False,
        dropout: float = 0.0,
        starter: StartState | None = None,
        query_sum: bool = False,
    ):
        """`query_sum`: attention is asked by the sum of all layers' states, not by the top one."""
        super().__init__()
        if input_feeding and (lookup is None or combine is None):
            raise ValueError("input feeding hands on attention's features: it needs attention")
        self.embedding = embedding
        self.stack = stack
        self.lookup = lookup
        self.combine = combine
        self.input_feeding = input_feeding
        self.dropout = Dropout(dropout)
        self.starter = starter
        self.query_sum = query_sum and stack.layers > 1

    def start(self, encoded: Encoded) -> RecurrentDecoderState:
        """Take over the encoder's last state and, for attention, its memory."""
        cells = encoded.summary if self.starter is None else self.starter(encoded)
        if self.lookup is None:
            return RecurrentDecoderState(cells=cells, memory=None)
        memory = self.lookup.prepare(encoded.memory, encoded.mask)
        fed = None
        if self.input_feeding and self.combine is not None:
            fed = cells[0].new_zeros(cells[0].shape[1], self.combine.out_features)
        return RecurrentDecoderState(cells=cells, memory=memory, handed=fed)

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: RecurrentDecoderState,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, RecurrentDecoderState]:
        """Read target tokens, one or many at once; return the features that predict the next."""
        embedded = self.dropout(self.embedding(tokens))
        if self.input_feeding:
            return self._feed(embedded, state, with_weights=with_weights, probe=probe)
        query = None
        if self.query_sum:
            hidden, query, cells = self._read(embedded, state.cells)
        else:
            hidden, cells = self.stack(embedded, state.cells)
        features, weights = self._look(
            hidden, state.memory, query=query, with_weights=with_weights, probe=probe
        )
        return Output(self.dropout(features), weights), RecurrentDecoderState(cells, state.memory)

    def formulas(self) -> dict[str, str]:
        """Return the equations of a step, as people read them."""
        fed = "[y_{i-1}; t_{i-1}]" if self.input_feeding else "y_{i-1}"
        found = {"decoder_state": f"s_i = f(s_{{i-1}}, {fed})"}
        if self.lookup is None:
            return found | {"features": "s_i"}
        joined = "[s_i; c_i]"
        features = joined if self.combine is None else f"tanh(W {joined})"
        query = "sum_l s_i^l" if self.query_sum else "s_i"
        return found | {"query": query, "features": features}

    def _read(
        self, embedded: Float[Tensor, "batch target embedding"], cells: CellState
    ) -> tuple[Tensor, Tensor, CellState]:
        """Read step by step; return the top layer's states, the sums of all, and the last ones."""
        loop = StackLoop(self.stack, embedded, cells)
        nothing = embedded.new_empty(len(embedded), 0)
        steps = [(loop.step(time, nothing), loop.sum) for time in range(len(loop))]
        hidden, sums = (torch.stack(part, dim=1) for part in zip(*steps, strict=True))
        return hidden, sums, loop.last()

    def _look(
        self,
        hidden: Float[Tensor, "batch target hidden"],
        memory: Memory | None,
        *,
        query: Float[Tensor, "batch target hidden"] | None,
        with_weights: bool,
        probe: Probe | None,
    ) -> tuple[Float[Tensor, "batch target width"], Float[Tensor, "batch target source"] | None]:
        if self.lookup is None or memory is None:
            return hidden, None
        asked = hidden if query is None else query
        context, weights = self.lookup(asked, memory, with_weights=with_weights, probe=probe)
        joined = torch.cat([hidden, context], dim=-1)
        return joined if self.combine is None else torch.tanh(self.combine(joined)), weights

    def _feed(
        self,
        embedded: Float[Tensor, "batch target embedding"],
        state: RecurrentDecoderState,
        *,
        with_weights: bool,
        probe: Probe | None,
    ) -> tuple[Output, RecurrentDecoderState]:
        """Read one token after the other, each with the features of the one before."""
        if self.lookup is None or self.combine is None:
            raise ValueError("input feeding needs attention")
        if state.memory is None or state.handed is None:
            raise ValueError("input feeding needs a state that `start` made with attention")
        loop = StackLoop(self.stack, embedded, state.cells)
        memory, fed = _in_a_loop(state.memory, probe), state.handed
        hidden_dim = self.stack.cell_hidden
        of_hidden = shared(self.combine.weight[:, :hidden_dim])
        of_context = shared(self.combine.weight[:, hidden_dim:])
        bias, width = self.combine.bias, self.combine.out_features
        # What dropout keeps, drawn for all steps at once.
        kept = self.dropout(embedded.new_ones(*embedded.shape[:2], width)).unbind(dim=1)
        features, weights = [], []
        for time in range(len(loop)):
            hidden = loop.step(time, fed)
            query = loop.sum if self.query_sum else hidden
            context, row = self.lookup(
                query[:, None], memory, with_weights=with_weights, probe=_at(probe, time)
            )
            joined = shared_product(context[:, 0], of_context, shared_product(hidden, of_hidden))
            fed = torch.tanh(joined if bias is None else joined + bias)
            fed = fed * kept[time] if self.dropout.training else fed
            features.append(fed)
            weights.append(row)
        attention = (
            torch.cat([w for w in weights if w is not None], dim=1) if with_weights else None
        )
        output = Output(torch.stack(features, dim=1), attention)
        return output, RecurrentDecoderState(loop.last(), state.memory, fed)

    def select(
        self, state: RecurrentDecoderState, rows: Int[Tensor, "chosen"]
    ) -> RecurrentDecoderState:
        """Return the state of these rows of the batch, in this order."""
        return state.select(rows)


class BahdanauDecoder(nn.Module):
    """s_i = f(s_{i-1}, y_{i-1}, c_i) with scores a(s_{i-1}, h_j) (Bahdanau et al. 2015, eq. 4-6).

    The features are g(y_{i-1}, s_i, c_i) = tanh(W [y_{i-1}; s_i; c_i]). Without a lookup the
    context is the constant c = h_T: the control that differs in nothing but attention.
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        stack: RecurrentStack,
        lookup: Lookup | None,
        readout: nn.Linear,
        dropout: float = 0.0,
        starter: StartState | None = None,
        query_sum: bool = False,
    ):
        """`query_sum`: attention is asked by the sum of all layers' states, not by the top one."""
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.lookup = lookup
        self.readout = readout
        self.dropout = Dropout(dropout)
        self.starter = starter
        self.query_sum = query_sum and stack.layers > 1

    def start(self, encoded: Encoded) -> RecurrentDecoderState:
        """Take over the encoder's last state, and its memory or else that last state as context."""
        cells = encoded.summary if self.starter is None else self.starter(encoded)
        if self.lookup is None:
            last = encoded.summary[0][-1]  # h_T
            return RecurrentDecoderState(cells=cells, memory=None, handed=last)
        return RecurrentDecoderState(
            cells=cells, memory=self.lookup.prepare(encoded.memory, encoded.mask)
        )

    def forward(
        self,
        tokens: Int[Tensor, "batch target"],
        state: RecurrentDecoderState,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, RecurrentDecoderState]:
        """Read target tokens, one or many; return the features that predict the next."""
        embedded = self.dropout(self.embedding(tokens))  # y_{i-1}
        hidden, context, weights, cells = (
            self._read(embedded, state)
            if self.lookup is None
            else self._look_and_read(
                embedded, state, self.lookup, with_weights=with_weights, probe=probe
            )
        )
        features = torch.tanh(self.readout(torch.cat([embedded, hidden, context], dim=-1)))
        return Output(self.dropout(features), weights), state._replace(cells=cells)

    def formulas(self) -> dict[str, str]:
        """Return the equations of a step, as people read them."""
        context = "h_T" if self.lookup is None else "c_i"
        return {
            "decoder_state": f"s_i = f(s_{{i-1}}, [y_{{i-1}}; {context}])",
            "query": "sum_l s_{i-1}^l" if self.query_sum else "s_{i-1}",
            "features": f"tanh(W [y_{{i-1}}; s_i; {context}])",
        }

    def _read(
        self, embedded: Float[Tensor, "batch target embedding"], state: RecurrentDecoderState
    ) -> tuple[Tensor, Tensor, None, CellState]:
        """Read all tokens at once, each with the same context."""
        if state.handed is None:
            raise ValueError("a decoder without attention needs a state that its `start` made")
        context = state.handed[:, None].expand(-1, embedded.shape[1], -1)
        hidden, cells = self.stack(torch.cat([embedded, context], dim=-1), state.cells)
        return hidden, context, None, cells

    def _look_and_read(
        self,
        embedded: Float[Tensor, "batch target embedding"],
        state: RecurrentDecoderState,
        lookup: Lookup,
        *,
        with_weights: bool,
        probe: Probe | None,
    ) -> tuple[Tensor, Tensor, Tensor | None, CellState]:
        """Attend with the state before, then read a token with the context; step by step."""
        if state.memory is None:
            raise ValueError("a decoder with attention needs a state that its `start` made")
        loop = StackLoop(self.stack, embedded, state.cells)
        memory = _in_a_loop(state.memory, probe)
        hidden, contexts, weights = [], [], []
        for time in range(len(loop)):
            query = loop.sum if self.query_sum else loop.hidden
            context, row = lookup(
                query[:, None], memory, with_weights=with_weights, probe=_at(probe, time)
            )
            hidden.append(loop.step(time, context[:, 0]))
            contexts.append(context)
            weights.append(row)
        attention = (
            torch.cat([w for w in weights if w is not None], dim=1) if with_weights else None
        )
        return torch.stack(hidden, dim=1), torch.cat(contexts, dim=1), attention, loop.last()

    def select(
        self, state: RecurrentDecoderState, rows: Int[Tensor, "chosen"]
    ) -> RecurrentDecoderState:
        """Return the state of these rows of the batch, in this order."""
        return state.select(rows)


def _at(probe: Probe | None, time: int) -> Probe | None:
    """Return the probe for the query of one step."""
    return None if probe is None else probe.at(start=time)


def _in_a_loop(memory: Memory, probe: Probe | None) -> Memory:
    """Return the memory for many lookups; what a probe changes is not the same in all of them."""
    return memory.as_shared() if probe is None else memory
