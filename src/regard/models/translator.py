"""The translator: an encoder, a decoder and a projection onto the target vocabulary."""

from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from torch import nn

from regard.attention.probe import Probe
from regard.base.errors import RegardError
from regard.base.results import Encoded, HeadMaps, Output, Step
from regard.base.shapes import Bool, Float, Int, Tensor

State = TypeVar("State")


@runtime_checkable
class Decoder(Protocol[State]):
    """What a translator needs of its decoder; recurrent and Transformer decoders provide it."""

    def start(self, encoded: Encoded) -> State:
        """Return the state before the first target token."""
        ...

    def __call__(
        self, tokens: Tensor, state: State, *, with_weights: bool, probe: Probe | None = None
    ) -> tuple[Output, State]:
        """Read target tokens and return features for the next ones, with the new state."""
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """Return the state of these rows."""
        ...


class Translator(nn.Module, Generic[State]):
    """p(y | x) = prod_i p(y_i | y_<i, x), from any encoder and any decoder."""

    def __init__(self, *, encoder: nn.Module, decoder: nn.Module, projection: nn.Linear):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.projection = projection

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Output:
        """Return the features behind every target position, given the tokens before it."""
        state = self.start(self.encode(source, source_mask, probe=probe))
        output, _ = self._decoder(target, state, with_weights=with_weights, **_given(probe))
        return output

    def project(
        self, features: Float[Tensor, "*positions model_dim"]
    ) -> Float[Tensor, "*positions vocab"]:
        """Return logits over the target vocabulary."""
        logits: Tensor = self.projection(features)
        return logits

    def encode(
        self,
        source: Int[Tensor, "batch source"],
        mask: Bool[Tensor, "batch source"],
        *,
        probe: Probe | None = None,
    ) -> Encoded:
        """Read the source sentences once."""
        encoded: Encoded = self.encoder(source, mask, **_given(probe))
        return encoded

    def start(self, encoded: Encoded) -> State:
        """Return the decoder's state before the first target token."""
        return self._decoder.start(encoded)

    def step(
        self,
        tokens: Int[Tensor, "batch"],
        state: State,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Step[State]:
        """Read one token a row and return logits over the next one."""
        given = _given(probe)
        output, state = self._decoder(tokens[:, None], state, with_weights=with_weights, **given)
        weights = None if output.attention is None else output.attention[:, 0]
        return Step(self.project(output.features[:, 0]), state, weights)

    def select(self, state: State, rows: Int[Tensor, "chosen"]) -> State:
        """Return the state of these rows of the batch, in this order."""
        return self._decoder.select(state, rows)

    def head_maps(
        self,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
    ) -> HeadMaps:
        """Return the weights of every layer and head, for sentence pairs that are known."""
        encoder: Any = self.encoder
        decoder: Any = self.decoder
        if not hasattr(decoder, "look"):
            raise RegardError("This model has no attention heads; only a Transformer has them.")
        if hasattr(encoder, "look"):
            encoded, maps = encoder.look(source, source_mask)
        else:
            encoded, maps = self.encode(source, source_mask), None
        target_maps, cross = decoder.look(target, encoded)
        return HeadMaps(encoder=maps, decoder=target_maps, cross=cross)

    @property
    def taught_head(self) -> tuple[int, int] | None:
        """The layer and the head of the decoder that were taught to align; None if none was.

        They align what the decoder has read, so their rows come one step late.
        """
        head = getattr(self.decoder, "alignment_head", None)
        return None if head is None else (int(self.decoder.alignment_layer), int(head))  # type: ignore[arg-type]

    @property
    def longest_target(self) -> int | None:
        """Return the largest number of target tokens, end mark included; None for no limit."""
        longest: int | None = getattr(self.decoder, "longest", None)
        return longest

    @property
    def _decoder(self) -> Decoder[State]:
        decoder: Any = self.decoder
        return decoder  # type: ignore[no-any-return]


def _given(probe: Probe | None) -> dict[str, Probe]:
    """Return a probe as an argument; networks of users need not know that there are any."""
    return {} if probe is None else {"probe": probe}
