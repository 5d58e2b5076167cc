"""Result types: small frozen records of one form, whatever was requested."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from regard.base.shapes import Bool, Float, Tensor

State = TypeVar("State")


class Attended(NamedTuple):
    """What attention returns: the context, and the weights behind it on request."""

    context: Float[Tensor, "*batch value_dim"]
    weights: Float[Tensor, "*batch source"] | None


@dataclass(frozen=True)
class Encoded:
    """What an encoder returns: a memory of every source position, and a summary to start from."""

    memory: Float[Tensor, "batch source hidden"]
    mask: Bool[Tensor, "batch source"]
    summary: Any = None


@dataclass(frozen=True)
class Step(Generic[State]):
    """What a decoder's step returns: logits over the next token, the new state, the weights."""

    logits: Float[Tensor, "batch vocab"]
    state: State
    weights: Float[Tensor, "batch source"] | None


@dataclass(frozen=True)
class Output:
    """What a model returns in training: features to project, and attention on request."""

    features: Float[Tensor, "batch target model_dim"]
    attention: Float[Tensor, "batch target source"] | None


@dataclass(frozen=True)
class HeadMaps:
    """The weights of every layer and head; None where a part of the model has no heads."""

    encoder: Float[Tensor, "layers batch heads source source"] | None
    decoder: Float[Tensor, "decoder_layers batch heads target target"] | None
    cross: Float[Tensor, "decoder_layers batch heads target source"]


@dataclass(frozen=True)
class Hypothesis:
    """One finished output of a search: ids without end mark, total log-probability, rank score.

    `attention` has one row for each token and one for the end mark, on request; the
    log-probability and the score may be NaN unless they were requested.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    attention: Float[Tensor, "target source"] | None


@dataclass(frozen=True)
class Connection:
    """What feeds a block: another block, with a name for what is handed on.

    `earlier` says that it comes from the step before, as the state of a decoder.
    """

    block: str
    label: str = ""
    earlier: bool = False


@dataclass(frozen=True)
class Block:
    """A layer in the plan of a model: what it is, what it returns, and what feeds it."""

    name: str
    title: str
    role: str
    """What it is for, by which pictures colour it: "input", "attention", "norm", ..."""
    shape: tuple[str | int, ...]
    """Of its output, with names for the sizes that depend on the input; () if unknown."""
    inputs: tuple[Connection, ...] = ()
    kind: str = ""
    """The class that computes it; empty for what has no class, as a sum."""
    note: str = ""
    side: str = ""
    """Which half of an encoder-decoder it belongs to."""
    layer: int | None = None
    """The number of the layer in a stack of like ones."""
    parameters: int = 0
    """Those of others that it shares are not counted again."""
    bytes: int = 0
    trainable: bool = True
    shared: str = ""
    """What it takes from another block, as "W^h"; the parameters are counted there."""

    @property
    def output_shape(self) -> str:
        """The shape as text."""
        return f"({', '.join(map(str, self.shape))})" if self.shape else ""


@dataclass(frozen=True)
class BlockDiagram:
    """The plan of a model: its blocks, in the order in which data passes them."""

    blocks: tuple[Block, ...]

    def __getitem__(self, name: str) -> Block:
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(name)

    @property
    def layers(self) -> tuple[Block, ...]:
        """All blocks but the inputs."""
        return tuple(block for block in self.blocks if block.role != "input")

    @property
    def parameters(self) -> int:
        """How many numbers the model has learned or will learn."""
        return sum(block.parameters for block in self.blocks)

    @property
    def bytes(self) -> int:
        """What they take."""
        return sum(block.bytes for block in self.blocks)

    @property
    def trainable(self) -> int:
        """How many of them a training changes."""
        return sum(block.parameters for block in self.blocks if block.trainable)
