"""Settings of the language models besides the one that reads from left to right."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from regard.settings.layers import Activation, CellSettings, LayerSettings, require_widths
from regard.settings.models import CausalTransformerSettings, by_family


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
