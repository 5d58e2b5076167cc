"""Recurrent networks that read: the encoder of a translator, and the backbone of a text model."""

import torch
from torch import nn

from regard.attention.probe import Probe, seen
from regard.base.results import Encoded, Output
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.dropout import Dropout
from regard.recurrent.cells import CellState, RecurrentStack


class OneHot(nn.Module):
    """x = (0, ..., 1, ..., 0), with the one at the index of the token."""

    def __init__(self, *, vocab: int):
        super().__init__()
        self.embedding_dim = vocab
        self.identity: Tensor
        self.register_buffer("identity", torch.eye(vocab), persistent=False)

    def forward(
        self, tokens: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time {self.embedding_dim}"]:
        """Return a row of the identity for each token."""
        return self.identity[tokens]


class RecurrentEncoder(nn.Module):
    """Reads the source in both directions (Bahdanau et al. 2015, section 3.2) or in one.

    With `first`, that layer reads in both directions and the stack above it in one, which is faster
    where layers compute side by side (Wu et al. 2016, section 3.2).
    """

    def __init__(
        self,
        *,
        embedding: nn.Module,
        stack: RecurrentStack,
        first: RecurrentStack | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.first = first
        self.embedding = embedding
        self.stack = stack
        self.dropout = Dropout(dropout)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        mask: Bool[Tensor, "batch source"],
        *,
        probe: Probe | None = None,
    ) -> Encoded:
        """Return the hidden states of all positions and, as summary, the last of each layer."""
        probe = None if probe is None else probe.at(part="encoder")
        embedded = self.dropout(seen(probe, "embedding", self.embedding(source)))
        lengths = mask.sum(dim=1)
        below: CellState | None = None
        if self.first is not None:
            embedded, ends = self.first.read_packed(embedded, lengths)
            embedded, below = self.dropout(embedded), _join(self.first, ends)
        memory, last = self.stack.read_packed(embedded, lengths)
        memory = seen(probe, "memory", self.dropout(memory))
        summary = _join(self.stack, last)
        if below is not None:
            summary = tuple(torch.cat(parts) for parts in zip(below, summary, strict=True))
        return Encoded(memory=memory, mask=mask, summary=summary)


def _join(stack: RecurrentStack, state: CellState) -> CellState:
    """Concatenate the last states of both directions: [layers, batch, hidden]."""
    if not stack.bidirectional:
        return state
    return tuple(
        part.view(stack.layers, 2, *part.shape[1:])
        .transpose(1, 2)
        .flatten(2)  # [layers, batch, hidden]
        for part in state
    )


class RecurrentBackbone(nn.Module):
    """h_t = f(x_t, h_{t-1}); what was read is all in the state (Mikolov et al. 2010)."""

    def __init__(
        self,
        *,
        embedding: nn.Embedding,
        stack: RecurrentStack,
        narrow: nn.Linear | None = None,
        dropout: float = 0.0,
    ):
        """`narrow` brings the states to another width, as a shared table of tokens needs it."""
        super().__init__()
        self.embedding = embedding
        self.stack = stack
        self.narrow = narrow
        self.dropout = Dropout(dropout)

    def start(self, batch: int) -> CellState:
        """Return the state before the first token."""
        return self.stack.zero_state(batch)

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        state: CellState,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Output, CellState]:
        """Read tokens; there are no weights to return."""
        probe = None if probe is None else probe.at(part="decoder")
        embedded = seen(probe, "embedding", self.embedding(tokens))
        states, after = self.stack(self.dropout(embedded), state)
        features = self.dropout(states)
        if self.narrow is not None:
            features = self.narrow(features)
        return Output(features, None), after

    def select(self, state: CellState, rows: Int[Tensor, "chosen"]) -> CellState:
        """Return the state of these rows of the batch, in this order."""
        return tuple(part.index_select(1, rows) for part in state)


def share_recurrence(
    encoder: RecurrentStack, decoder: RecurrentStack, *, inputs: bool = False
) -> None:
    """Let the decoder use the encoder's recurrent matrices, layer by layer.

    With `inputs` each layer has one matrix W^h for both, which reads state and input together and
    has no bias: y^e(t) = tanh(W^h [y^e(t-1); x(t)]), y^d(t) = tanh(W^h [y^d(t-1); y(t-1)]).
    """
    if encoder.bidirectional or encoder.cell_hidden != decoder.cell_hidden:
        raise ValueError(
            "encoder and decoder can share a recurrent matrix only if both read in one direction "
            f"with one width (encoder {encoder.cell_hidden}, decoder {decoder.cell_hidden})"
        )
    for reading, writing in zip(encoder.cells, decoder.cells, strict=True):
        writing.state_weights = reading.state_weights
        if inputs:
            writing.input_weights = reading.input_weights
            reading.bias = writing.bias = None
