"""Settings of the model families."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from regard.settings.schema import Settings


class RecurrentSettings(Settings):
    """A recurrent encoder-decoder, with attention or without."""

    family: Literal["recurrent"] = "recurrent"
    cell: Literal["tanh", "gru", "lstm", "gated"] = Field(
        "lstm", description="kind of recurrent cell"
    )
    decoder: Literal["luong", "bahdanau", "shared"] = Field(
        "luong",
        description='look back after the state update ("luong"), before it ("bahdanau"), or after '
        'it with one recurrent matrix for encoder and decoder ("shared")',
    )
    hidden: int = Field(256, ge=1, description="width of the recurrent state")
    embedding: int = Field(128, ge=1, description="width of the word vectors")
    one_hot: bool = Field(False, description="one-hot symbols instead of word vectors")
    layers: int = Field(1, ge=1, description="stacked layers in encoder and decoder each")
    bidirectional: bool = Field(True, description="read the source from both ends")
    attention: str = Field(
        "dot",
        description='attention score: "dot", "scaled-dot", "bilinear", "additive", '
        '"parameterised", "multi-head", or "none"',
    )
    heads: int = Field(4, ge=1, description='heads of the attention "multi-head"')
    input_feeding: bool = Field(
        False, description="read the last step's features beside each symbol (luong)"
    )
    dropout: float = Field(0.1, ge=0, lt=1)
    source_vocab: int | None = Field(None, ge=5, description="for summaries; training finds it")
    target_vocab: int | None = Field(None, ge=5, description="for summaries; training finds it")

    @model_validator(mode="after")
    def _halves(self) -> RecurrentSettings:
        if self.bidirectional and self.hidden % 2:
            raise ValueError(f"hidden ({self.hidden}) must be even when bidirectional is true")
        return self

    @model_validator(mode="after")
    def _fit_together(self) -> RecurrentSettings:
        if self.attention == "multi-head" and self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be divisible by heads ({self.heads})")
        if self.input_feeding and (self.decoder != "luong" or self.attention == "none"):
            raise ValueError(
                'input_feeding needs decoder = "luong" and an attention '
                f'(given: decoder "{self.decoder}", attention "{self.attention}")'
            )
        if self.decoder == "shared" and self.bidirectional:
            raise ValueError('decoder = "shared" needs bidirectional = false')
        return self
