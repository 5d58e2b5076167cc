"""Settings of the model families."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from regard.settings.schema import Settings


class RecurrentSettings(Settings):
    """A recurrent encoder-decoder, with attention or without."""

    family: Literal["recurrent"] = "recurrent"
    cell: Literal["tanh", "gru", "lstm"] = Field("lstm", description="kind of recurrent cell")
    hidden: int = Field(256, ge=1, description="width of the recurrent state")
    embedding: int = Field(128, ge=1, description="width of the word vectors")
    layers: int = Field(1, ge=1, description="stacked layers in encoder and decoder each")
    bidirectional: bool = Field(True, description="read the source from both ends")
    attention: str = Field("dot", description='attention score: "dot", "additive", or "none"')
    dropout: float = Field(0.1, ge=0, lt=1)
    source_vocab: int | None = Field(None, ge=5, description="for summaries; training finds it")
    target_vocab: int | None = Field(None, ge=5, description="for summaries; training finds it")

    @model_validator(mode="after")
    def _halves(self) -> RecurrentSettings:
        if self.bidirectional and self.hidden % 2:
            raise ValueError(f"hidden ({self.hidden}) must be even when bidirectional is true")
        return self
