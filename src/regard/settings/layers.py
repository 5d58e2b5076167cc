"""Settings of the layers that all Transformers share, and the bounds of sizes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.settings.recipe import Settings

Activation = Literal["relu", "gelu", "gelu-tanh", "swish", "swiglu", "geglu", "geglu-tanh"]

# No model is larger; a recipe from a stranger may ask for it, and nobody should wait for that.
Layers = Annotated[int, Field(ge=1, le=512)]
Heads = Annotated[int, Field(ge=1, le=1_024)]
Experts = Annotated[int, Field(le=1_024)]
Width = Annotated[int, Field(ge=1, le=131_072)]
Entries = Annotated[int, Field(le=10_000_000)]
LengthLimit = Annotated[int, Field(le=1_000_000)]

SCALED = "scaled-dot"
PAIRED = ("relative", "segment", "alibi", "bucketed")  # positions that change every pair's score


def require_widths(
    model_dim: int, *, heads: int, positions: str, head_dim: int | None = None
) -> None:
    """Refuse a width that heads or positions cannot divide, before any data is read.

    Kinds of positions that are not named here are checked when the model is built.
    """
    if head_dim is None and model_dim % heads:
        raise ValueError(f"model_dim ({model_dim}) must be divisible by heads ({heads})")
    if positions == "sinusoidal" and model_dim % 2:
        raise ValueError(f"model_dim ({model_dim}) must be even for sinusoidal positions")
    if positions == "rotary" and head_dim is not None and head_dim % 2:
        raise ValueError(f"head_dim ({head_dim}) must be even for rotary positions")
    if positions == "rotary" and head_dim is None and model_dim // heads % 2:
        raise ValueError(
            f"model_dim / heads ({model_dim // heads}) must be even for rotary positions"
        )


class LayerSettings(Settings):
    """Options of the layers that all Transformers share; published models need one or another."""

    head_dim: Width | None = Field(None, description="width of one head, if not model_dim / heads")
    key_value_heads: Heads | None = Field(
        None, description="heads of keys and values, if neighbouring heads share them"
    )
    head_norm: bool = Field(False, description="a norm for the queries and keys of each head")
    norm_epsilon: float | None = Field(
        None, gt=0, description="added to the variance; 1e-5, or 1e-6 for RMS, if not given"
    )
    embedding_norm: bool = Field(False, description="a norm after the embeddings")
    attention_biases: Literal["all", "inputs", "none"] = Field(
        "all", description="biases of attention: all, those of queries, keys and values, or none"
    )
    feed_forward_biases: bool = Field(True, description="biases in the feed-forward networks")
    rotary_base: float = Field(10_000.0, gt=1, description="slowest wave (positions rotary)")
    rotary_factor: float = Field(
        1.0, ge=1, description="how much slow waves are slowed for longer texts (Llama 3)"
    )
    rotary_low: float = Field(
        1.0, gt=0, description="waves that fit less often are slowed in full (rotary_factor)"
    )
    rotary_high: float = Field(
        4.0, gt=0, description="waves that fit more often stay as they are (rotary_factor)"
    )
    rotary_length: LengthLimit = Field(
        8_192, ge=1, description="tokens that waves are fitted into (rotary_factor)"
    )
    buckets: LengthLimit = Field(32, ge=4, description="classes of distances (positions bucketed)")
    bucket_reach: LengthLimit = Field(
        128, ge=3, description="distance from which all share one class (positions bucketed)"
    )
    learned_offset: LengthLimit = Field(
        0, ge=0, description="rows before that of the first position (positions learned)"
    )
    experts: Experts = Field(
        0, ge=0, description="experts in place of a feed-forward network; 0: the one network"
    )
    experts_per_token: Experts = Field(1, ge=1, description="experts that compute each token")
    expert_every: Layers = Field(1, description="experts in every so manieth layer")
    expert_gate: Literal["softmax", "noisy"] = Field(
        "softmax", description="how the gate weighs experts: by probability, or with noise"
    )
    expert_bias: bool = Field(
        False, description="a bias by which overloaded experts are chosen less"
    )
    expert_capacity: float | None = Field(
        None, gt=0, description="most tokens of an expert in training, in fair shares; none: all"
    )
    pattern: Literal["full", "strided", "fixed", "hashed"] = Field(
        "full",
        description="pairs that self-attention scores: all, a sparse pattern (Child et al. 2019), "
        "or those with the same hash (Kitaev et al. 2020)",
    )
    stride: LengthLimit = Field(
        32, ge=1, description="positions of a block (pattern strided or fixed)"
    )
    summary: LengthLimit = Field(
        1, ge=1, description="last positions of a block that all others see (pattern fixed)"
    )
    hash_buckets: Annotated[int, Field(le=4_096)] = Field(
        8, ge=2, description="values of a hash, an even number (pattern hashed)"
    )
    hash_rounds: Annotated[int, Field(le=64)] = Field(
        2, ge=1, description="hashes of each position (pattern hashed)"
    )
    hash_chunk: LengthLimit = Field(
        32, ge=1, description="positions with one hash that are computed at once (pattern hashed)"
    )
    span: LengthLimit | None = Field(
        None,
        ge=1,
        description="longest distance that heads may learn to see (Sukhbaatar et al. 2019); none: "
        "nothing is learned",
    )
    span_ramp: LengthLimit = Field(
        16, ge=1, description="positions in which the weights behind a learned span fall to zero"
    )
    span_loss: float = Field(
        1e-4, ge=0, description="what a position of a learned span costs, in nats a token"
    )
    balance_loss: float = Field(0.01, ge=0, description="weight of the loss of unequal loads")
    gate_z_loss: float = Field(0.0, ge=0, description="weight of the loss of large gate scores")

    @model_validator(mode="after")
    def _options_fit(self) -> LayerSettings:
        if self.rotary_high <= self.rotary_low:
            raise ValueError(
                f"rotary_high ({self.rotary_high}) must be above rotary_low ({self.rotary_low})"
            )
        if self.buckets % 4 or self.bucket_reach <= self.buckets // 2:
            raise ValueError(
                f"buckets ({self.buckets}) must be divisible by 4, and bucket_reach "
                f"({self.bucket_reach}) larger than half of them"
            )
        if self.experts and self.experts_per_token > self.experts:
            raise ValueError(
                f"experts_per_token ({self.experts_per_token}) must not exceed experts "
                f"({self.experts})"
            )
        if self.experts > 1 and self.expert_gate == "noisy" and self.experts_per_token == 1:
            raise ValueError(
                'expert_gate = "noisy" needs experts_per_token of at least 2: the weight of a '
                'single expert is always 1, from which the gate learns nothing; use "softmax"'
            )
        return self

    @model_validator(mode="after")
    def _pattern_fits(self) -> LayerSettings:
        if self.pattern == "fixed" and self.summary > self.stride:
            raise ValueError(f"summary ({self.summary}) must not exceed stride ({self.stride})")
        if self.hash_buckets % 2:
            raise ValueError(f"hash_buckets ({self.hash_buckets}) must be even")
        if self.pattern != "full" and self.span is not None:
            raise ValueError(
                f'pattern = "{self.pattern}" and a span exclude each other; choose one'
            )
        if self.pattern == "hashed" and self.key_value_heads is not None:
            raise ValueError(
                'pattern = "hashed" makes its keys of the queries; leave out key_value_heads'
            )
        return self

    def require_span(self, text: str, length: int) -> None:
        """Refuse a span, stride or chunk that is longer than the texts that are read."""
        named = {"span": self.span} if self.span is not None else {}
        if self.pattern in ("strided", "fixed"):
            named = {"stride": self.stride}
        for name, value in named.items():
            if value > length:
                raise ValueError(f"{name} ({value}) must not exceed {text} ({length})")

    def require_pairs(
        self, *, positions: str, window: int | None, kernel: str = "softmax", score: str = SCALED
    ) -> None:
        """Refuse what does not go together with a pattern or a learned span."""
        if positions == "segment" and self.key_value_heads is not None:
            raise ValueError(
                'positions = "segment" have a vector a head; leave out key_value_heads'
            )
        chosen = f'pattern = "{self.pattern}"' if self.pattern != "full" else "a span"
        if self.pattern == "full" and self.span is None:
            return
        if window is not None:
            raise ValueError(f"{chosen} and a window exclude each other; choose one")
        if kernel != "softmax" or score != SCALED:
            raise ValueError(f'{chosen} needs kernel = "softmax" and score = "{SCALED}"')
        if self.pattern != "full" and positions in PAIRED:
            raise ValueError(
                f'{chosen} has no place for what positions = "{positions}" add to every pair; use '
                "learned, sinusoidal, rotary or none"
            )

    def require_groups(self, heads: int) -> None:
        """Refuse heads that cannot be divided among those of keys and values."""
        if self.key_value_heads is not None and heads % self.key_value_heads:
            raise ValueError(
                f"heads ({heads}) must be divisible by key_value_heads ({self.key_value_heads})"
            )


class CellSettings(Settings):
    """How the matrices of an LSTM are made; for all recurrent models."""

    cell_rank: Width | None = Field(
        None, description="rank of the LSTM's matrices, as two factors (F-LSTM); none: whole"
    )
    cell_groups: Width = Field(
        1, description="independent groups of the LSTM's units (G-LSTM); 1: all together"
    )

    residual: bool = Field(
        False, description="add what enters a layer to what leaves it, from the second on (GNMT)"
    )

    def require_layers(self, layers: int) -> None:
        """Refuse residual connections where there is one layer only."""
        if self.residual and layers < 2:
            raise ValueError(f"residual = true needs at least 2 layers (given: {layers})")

    def require_first_both_ways(self, *, bidirectional: bool, layers: int, decoder: str) -> None:
        """Refuse an encoder that reads from both ends with its first layer, if it has one only."""
        if not bidirectional or layers < 2 or decoder == "shared":
            raise ValueError(
                'upper_layers = "forward" needs bidirectional = true, at least 2 layers in the '
                f'encoder and decoder "luong" or "bahdanau" (given: bidirectional '
                f'{str(bidirectional).lower()}, {layers} layers, decoder "{decoder}")'
            )

    def require_lstm(self, cell: str, **widths: int) -> None:
        """Refuse divided matrices of other cells, and widths that the groups cannot divide."""
        divided = self.cell_rank is not None or self.cell_groups > 1
        if divided and cell != "lstm":
            raise ValueError(f'cell_rank and cell_groups are for cell = "lstm" (given: "{cell}")')
        if self.cell_rank is not None and self.cell_groups > 1:
            raise ValueError("cell_rank and cell_groups exclude each other; choose one")
        for name, width in widths.items():
            if width % self.cell_groups:
                raise ValueError(
                    f"{name} ({width}) must be divisible by cell_groups ({self.cell_groups})"
                )
