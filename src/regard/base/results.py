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
