"""The language model: a network that reads from left to right, and a projection onto symbols."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from torch import nn

from regard.base.errors import RegardError
from regard.base.results import Output, Step
from regard.base.shapes import Float, Int, Tensor

State = TypeVar("State")


@runtime_checkable
class Reader(Protocol[State]):
    """What a language model asks of its network; recurrent and Transformer ones both answer."""

    def start(self, batch: int) -> State:
        """Return the state before the first symbol."""
        ...

    def __call__(self, tokens: Tensor, state: State, *, with_weights: bool) -> tuple[Output, State]:
        """Read symbols and return features for the next ones, with the new state."""
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """Return the state of these rows."""
        ...


class LanguageModel(nn.Module, Generic[State]):
    """p(x) = prod_t p(x_t | x_<t), from any network that reads from left to right.

    `context` is how many symbols it was made to read at once; None if there is no such limit.
    """

    def __init__(self, *, reader: nn.Module, projection: nn.Linear, context: int | None):
        super().__init__()
        self.reader = reader
        self.projection = projection
        self.context = context

    def forward(self, tokens: Int[Tensor, "batch time"], *, with_weights: bool = False) -> Output:
        """Return the features behind the symbol after each position."""
        output, _ = self._reader(tokens, self.start(len(tokens)), with_weights=with_weights)
        return output

    def project(
        self, features: Float[Tensor, "*positions model_dim"]
    ) -> Float[Tensor, "*positions vocab"]:
        """Return logits over the vocabulary."""
        logits: Tensor = self.projection(features)
        return logits

    def start(self, batch: int) -> State:
        """Return the state of so many rows before the first symbol."""
        return self._reader.start(batch)

    def read(
        self, tokens: Int[Tensor, "batch time"], state: State, *, with_weights: bool = False
    ) -> Step[State]:
        """Read more symbols and return logits over the one that follows the last of them."""
        output, state = self._reader(tokens, state, with_weights=with_weights)
        weights = None if output.attention is None else output.attention[:, -1]
        return Step(self.project(output.features[:, -1]), state, weights)

    def step(
        self, tokens: Int[Tensor, "batch"], state: State, *, with_weights: bool = False
    ) -> Step[State]:
        """Read one symbol a row and return logits over the next one."""
        return self.read(tokens[:, None], state, with_weights=with_weights)

    def select(self, state: State, rows: Int[Tensor, "chosen"]) -> State:
        """Return the state of these rows of the batch, in this order."""
        return self._reader.select(state, rows)

    def head_maps(
        self, tokens: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "layers batch heads time time"]:
        """Return the weights of every layer and head."""
        reader: Any = self.reader
        if not hasattr(reader, "look"):
            raise RegardError("This model has no attention heads; only a Transformer has them.")
        maps: Tensor = reader.look(tokens)
        return maps

    @property
    def _reader(self) -> Reader[State]:
        reader: Any = self.reader
        return reader  # type: ignore[no-any-return]
