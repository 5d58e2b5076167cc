"""Settings of the language models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from regard.settings.layers import (
    Activation,
    CellSettings,
    Entries,
    Heads,
    Layers,
    LayerSettings,
    LengthLimit,
    Width,
    require_widths,
)
from regard.settings.models import by_family


class CausalTransformerSettings(LayerSettings):
    """A decoder-only Transformer, with norms before each sublayer."""

    family: Literal["transformer"] = Field("transformer", description="family of the model")
    layers: Layers = Field(4, description="stacked layers")
    model_dim: Width = Field(128, description="width of the features")
    heads: Heads = Field(4, description="attention heads a layer")
    feed_forward: Width | None = Field(
        None, description="width inside the feed-forward networks; 4 model_dim if not given"
    )
    context: LengthLimit = Field(64, ge=1, description="tokens that are read at once")
    positions: str = Field(
        "learned",
        description='"learned", "sinusoidal", "relative", "rotary", "segment", "alibi", "bucketed" '
        'or "none"',
    )
    norm: Literal["layer", "rms"] = Field("layer", description="kind of norm")
    activation: Activation = Field("gelu", description="inside the feed-forward networks")
    window: int | None = Field(None, ge=1, description="farthest distance that attention sees")
    memory: LengthLimit = Field(
        0, ge=0, description="positions before a segment that it remembers (Transformer-XL)"
    )
    segment: LengthLimit | None = Field(
        None, ge=1, description="tokens of a segment, if there is a memory; as many if not given"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="on embeddings and every sublayer")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="on attention weights")
    tie: bool = Field(True, description="one table for tokens that are read and predicted")
    vocab: Entries | None = Field(None, ge=5, description="for summaries; training sets it")

    @model_validator(mode="after")
    def _widths(self) -> CausalTransformerSettings:
        require_widths(
            self.model_dim, heads=self.heads, positions=self.positions, head_dim=self.head_dim
        )
        self.require_groups(self.heads)
        self.require_span("context", self.context)
        self.require_pairs(positions=self.positions, window=self.window)
        return self

    @model_validator(mode="after")
    def _memory_fits(self) -> CausalTransformerSettings:
        if self.segment is not None and not self.memory:
            raise ValueError(f"segment ({self.segment}) needs a memory; set memory")
        if not self.memory:
            return self
        if self.segment_length > self.context:
            raise ValueError(
                f"a segment ({self.segment_length}) must not exceed context ({self.context})"
            )
        if self.positions in ("learned", "sinusoidal"):
            raise ValueError(
                f'a memory needs positions by distance, not positions = "{self.positions}"; use '
                'positions = "segment"'
            )
        if self.window is not None or self.pattern != "full":
            raise ValueError("a memory excludes window and pattern; choose one of them")
        return self

    @property
    def segment_length(self) -> int:
        """The tokens of a segment."""
        return self.segment or self.memory


class RecurrentLanguageModelSettings(CellSettings):
    """A recurrent language model, for comparison."""

    family: Literal["recurrent"] = Field("recurrent", description="family of the model")
    cell: Literal["tanh", "gru", "lstm", "gated"] = Field(
        "lstm", description="kind of recurrent cell"
    )
    hidden: int = Field(256, ge=1, description="width of the recurrent state")
    embedding: int = Field(128, ge=1, description="width of the tokens' vectors")
    layers: int = Field(1, ge=1, description="stacked layers")
    context: int = Field(64, ge=1, description="tokens in a training window")
    dropout: float = Field(0.0, ge=0, lt=1, description="on embeddings and states")
    tie: bool = Field(False, description="one table for tokens that are read and predicted")
    vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")

    @model_validator(mode="after")
    def _cells_fit(self) -> RecurrentLanguageModelSettings:
        self.require_lstm(self.cell, hidden=self.hidden, embedding=self.embedding)
        self.require_layers(self.layers)
        return self


class BidirectionalSettings(LayerSettings):
    """An encoder that learns to guess hidden tokens; the defaults are BERT's, but for the size."""

    family: Literal["bidirectional"] = Field("bidirectional", description="family of the model")
    layers: int = Field(4, ge=1, description="stacked layers")
    model_dim: int = Field(128, ge=1, description="width of the features")
    heads: int = Field(4, ge=1, description="attention heads a layer")
    feed_forward: int | None = Field(
        None, ge=1, description="width inside the feed-forward networks; 4 model_dim if not given"
    )
    context: int = Field(64, ge=1, description="tokens that are read at once")
    positions: str = Field(
        "learned",
        description='"learned", "sinusoidal", "relative", "rotary", "segment", "alibi", "bucketed" '
        'or "none"',
    )
    norm_placement: Literal["pre", "post"] = Field(
        "post", description="norm before each sublayer, or after it as in the paper"
    )
    norm: Literal["layer", "rms"] = Field("layer", description="kind of norm")
    embedding_norm: bool = Field(True, description="a norm after the embeddings")
    activation: Activation = Field("gelu", description="inside the feed-forward networks")
    window: int | None = Field(None, ge=1, description="farthest distance that attention sees")
    segments: int = Field(
        0, ge=0, description="kinds of segments that have vectors (BERT: 2); the first is used"
    )
    hidden_share: float = Field(
        0.15, gt=0, lt=1, description="share of the tokens that are hidden in training"
    )
    mask_token: int | None = Field(
        None, ge=0, description="id that stands for a hidden token; none: the begin mark"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="on embeddings and every sublayer")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="on attention weights")
    tie: bool = Field(True, description="one table for tokens that are read and predicted")
    vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")

    @model_validator(mode="after")
    def _widths(self) -> BidirectionalSettings:
        require_widths(
            self.model_dim, heads=self.heads, positions=self.positions, head_dim=self.head_dim
        )
        self.require_groups(self.heads)
        self.require_span("context", self.context)
        self.require_pairs(positions=self.positions, window=self.window)
        return self


LanguageModelSettings = Annotated[
    Annotated[CausalTransformerSettings, Tag("transformer")]
    | Annotated[BidirectionalSettings, Tag("bidirectional")]
    | Annotated[RecurrentLanguageModelSettings, Tag("recurrent")],
    by_family("transformer"),
]
