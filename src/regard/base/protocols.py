"""The Protocols through which packages work together without knowing each other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from regard.base.results import Encoded, Step
from regard.base.shapes import Bool, Float, Int, Tensor

State = TypeVar("State")


@runtime_checkable
class Tokenizer(Protocol):
    """Text to ids and back; ids 0 to 3 are the special tokens of `base.special_tokens`."""

    @property
    def size(self) -> int:
        """How many entries the vocabulary has, special tokens included."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end marks."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, leaving out special tokens other than the unknown one."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return a readable label for each id, as a heat map shows it."""
        ...

    def word_of_piece(self, ids: Sequence[int]) -> list[int]:
        """Return for each id the index of the whitespace-separated word that it belongs to."""
        ...

    def save(self, folder: Path, name: str) -> None:
        """Write the tokenizer as plain files `folder/name.*`."""
        ...


@runtime_checkable
class StepDecoder(Protocol[State]):
    """A decoder is a step: state goes in and comes out, and no module remembers a call."""

    def encode(
        self, source: Int[Tensor, "batch source"], mask: Bool[Tensor, "batch source"]
    ) -> Encoded:
        """Read the source sentences once."""
        ...

    def start(self, encoded: Encoded) -> State:
        """Return the decoder's state before the first target token."""
        ...

    def step(
        self, tokens: Int[Tensor, "batch"], state: State, *, with_weights: bool = False
    ) -> Step[State]:
        """Read one token a row and return logits over the next one, with the new state."""
        ...

    def select(self, state: State, rows: Int[Tensor, "chosen"]) -> State:
        """Return the state with these rows of the batch, in this order, as beams are re-ordered."""
        ...


@runtime_checkable
class Projector(Protocol):
    """Turns features into logits over the vocabulary; the loss may do so in chunks."""

    def __call__(
        self, features: Float[Tensor, "positions model_dim"]
    ) -> Float[Tensor, "positions vocab"]:
        """Return the logits of each position."""
        ...
