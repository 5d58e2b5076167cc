"""Settings of the Transformer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from regard.settings.schema import Settings


def require_widths(model_dim: int, *, heads: int, positions: str) -> None:
    """Refuse a width that heads or positions cannot divide."""
    if model_dim % heads:
        raise ValueError(f"model_dim ({model_dim}) must be divisible by heads ({heads})")
    if positions == "sinusoidal" and model_dim % 2:
        raise ValueError(f"model_dim ({model_dim}) must be even for sinusoidal positions")
    if positions == "rotary" and model_dim // heads % 2:
        raise ValueError(
            f"model_dim / heads ({model_dim // heads}) must be even for rotary positions"
        )


class TransformerSettings(Settings):
    """A Transformer encoder-decoder; the defaults are the base model of Vaswani et al. 2017."""

    family: Literal["transformer"] = "transformer"
    layers: int = Field(6, ge=1, description="layers of the encoder, and of the decoder")
    decoder_layers: int | None = Field(None, ge=1, description="of the decoder, if others")
    model_dim: int = Field(512, ge=1, description="width of the features")
    heads: int = Field(8, ge=1, description="attention heads a layer")
    feed_forward: int = Field(2048, ge=1, description="width inside the feed-forward networks")
    encoder: Literal["attention", "convolutional"] = "attention"
    decoder: Literal["attention", "ssru"] = Field(
        "attention", description='how it sees the target so far: "ssru" is recurrent and fast'
    )
    norm_placement: Literal["pre", "post"] = Field(
        "post", description="norm before each sublayer, or after it as in the paper"
    )
    norm: Literal["layer", "rms"] = "layer"
    activation: Literal["relu", "gelu", "swish", "swiglu"] = "relu"
    positions: Literal["sinusoidal", "learned", "relative", "rotary", "alibi", "none"] = (
        "sinusoidal"
    )
    sinusoids: Literal["interleaved", "halves"] = Field(
        "interleaved", description="sine and cosine in turn, or all sines first"
    )
    sinusoid_offset: int = Field(0, ge=0, description="place of the first symbol")
    stretched_sinusoids: bool = Field(False, description="slowest wave 10000 exactly (fairseq)")
    max_length: int = Field(512, ge=1, description="positions in the table (positions learned)")
    reach: int = Field(16, ge=1, description="distances told apart (positions relative)")
    kernel: Literal["softmax", "linear"] = Field(
        "softmax", description="of self-attention; linear costs less on long input"
    )
    window: int | None = Field(None, ge=1, description="farthest distance that self-attention sees")
    convolution_width: int = Field(3, ge=1, description="of the convolutional encoder")
    dropout: float = Field(0.1, ge=0, lt=1, description="on embeddings and every sublayer")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="on attention weights")
    activation_dropout: float = Field(0.0, ge=0, lt=1, description="inside feed-forward networks")
    tie: Literal["none", "target", "all"] = Field(
        "target", description="one table for target words and output, or for the source as well"
    )
    scaled_embeddings: bool = Field(True, description="times the root of model_dim")
    output_bias: bool = False
    alignment_layer: int = Field(
        -1, description="decoder layer shown as the attention; -1 is the last"
    )
    source_vocab: int | None = Field(None, ge=5, description="for summaries; training finds it")
    target_vocab: int | None = Field(None, ge=5, description="for summaries; training finds it")

    @model_validator(mode="after")
    def _widths(self) -> TransformerSettings:
        require_widths(self.model_dim, heads=self.heads, positions=self.positions)
        if self.encoder == "convolutional" and self.convolution_width % 2 == 0:
            raise ValueError(f"convolution_width ({self.convolution_width}) must be odd")
        return self

    @model_validator(mode="after")
    def _fit_together(self) -> TransformerSettings:
        if self.kernel == "linear" and self.positions in ("relative", "alibi"):
            raise ValueError(
                f'kernel = "linear" has no scores that positions = "{self.positions}" could '
                "change; choose sinusoidal, learned, rotary or none"
            )
        if self.kernel == "linear" and self.window is not None:
            raise ValueError('kernel = "linear" and a window exclude each other; choose one')
        depth = self.decoder_layers or self.layers
        if not -depth <= self.alignment_layer < depth:
            raise ValueError(
                f"alignment_layer ({self.alignment_layer}) must lie between {-depth} and "
                f"{depth - 1}, for {depth} decoder layers"
            )
        return self
