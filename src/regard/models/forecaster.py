"""The forecaster: a window of a series goes in, the values that follow it come out."""

from typing import NamedTuple

import torch
from torch import nn

from regard.attention.lookup import POOLINGS, Pooling, SoftmaxPooling
from regard.base.shapes import Float, Tensor
from regard.recurrent.cells import CELLS, RecurrentStack
from regard.settings.models import ForecasterSettings
from regard.settings.recipe import require_known


class Forecast(NamedTuple):
    """What a forecaster returns: the next values and, on request, the attention over the window."""

    values: Float[Tensor, "batch horizon"]
    weights: Float[Tensor, "batch time"] | None


class Forecaster(nn.Module):
    """y = W c + b or tanh(W c + b), where c is the last hidden state or attention over all."""

    def __init__(
        self,
        *,
        rnn: RecurrentStack,
        attention: Pooling | None,
        dense: nn.Linear,
        squash: bool = False,
        window: int,
        inputs: int = 1,
    ):
        super().__init__()
        self.rnn = rnn
        self.attention = attention
        self.dense = dense
        self.squash = squash
        self.window = window
        self.inputs = inputs

    def forward(
        self, window: Float[Tensor, "batch time *inputs"], *, with_weights: bool = False
    ) -> Forecast:
        """Read the window and return the values that should follow it."""
        states = self.read(window)
        if self.attention is None:
            return Forecast(self.predict(states[:, -1]), None)
        context, weights = self.attention(states, with_weights=with_weights)
        return Forecast(self.predict(context), weights)

    def read(
        self, window: Float[Tensor, "batch time *inputs"]
    ) -> Float[Tensor, "batch time hidden"]:
        """Return h_1 .. h_T of one value at each time, or of several."""
        states: Tensor
        values = window[:, :, None] if window.dim() == 2 else window
        states, _ = self.rnn(values, self.rnn.zero_state(len(window)))
        return states

    def predict(self, context: Float[Tensor, "batch hidden"]) -> Float[Tensor, "batch horizon"]:
        """Return W c + b, through tanh if the output is to be squashed."""
        values: Tensor = self.dense(context)
        return torch.tanh(values) if self.squash else values

    def explain(self, window: Float[Tensor, "batch time *inputs"]) -> dict[str, Tensor]:
        """Return every value on the way from the window to the forecast, by name."""
        states = self.read(window)
        found = {"input": window, "state": states}
        context = states[:, -1]
        if self.attention is not None:
            if isinstance(self.attention, SoftmaxPooling):
                found["score"] = self.attention.score(states)
            context, found["alpha"] = self.attention(states, with_weights=True)
            found["alpha_state"] = found["alpha"][:, :, None] * states
            if isinstance(bias := self.attention.offset(), torch.Tensor):
                found["bias"] = bias[None]
        return {**found, "context": context, "output": self.predict(context)}


def build_forecaster(
    settings: ForecasterSettings, *, window: int, horizon: int, inputs: int = 1
) -> Forecaster:
    """Return a fresh forecaster in double precision: what it reads may be as small as 1e-251."""
    require_known(settings.cell, CELLS, what="model.cell")
    require_known(settings.attention, ["none", *POOLINGS], what="model.attention")
    attends = settings.attention != "none"
    hidden = settings.hidden
    return Forecaster(
        rnn=RecurrentStack(kind=settings.cell, input_dim=inputs, hidden=hidden),
        attention=POOLINGS[settings.attention](time=window, hidden=hidden) if attends else None,
        dense=nn.Linear(hidden, horizon),
        squash=settings.output == "tanh",
        window=window,
        inputs=inputs,
    ).double()
