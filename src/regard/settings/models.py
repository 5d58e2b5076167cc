"""Settings of the model families."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from regard.settings.recipe import Settings


def by_family(default: str) -> Discriminator:
    """Return what tells a union's members apart: the `family` of a table, else the default."""

    def family_of(value: Any) -> str:
        if isinstance(value, dict):
            return str(value.get("family", default))
        return str(getattr(value, "family", default))

    return Discriminator(family_of)


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
    one_hot: bool = Field(False, description="one-hot tokens instead of word vectors")
    layers: int = Field(1, ge=1, description="stacked layers in encoder and decoder each")
    bidirectional: bool = Field(True, description="read the source from both ends")
    attention: str = Field(
        "dot",
        description='attention score: "dot", "scaled-dot", "bilinear", "additive", '
        '"parameterised", "multi-head", or "none"',
    )
    heads: int = Field(4, ge=1, description='heads of the attention "multi-head"')
    input_feeding: bool = Field(
        False, description="read the last step's features with each token (luong)"
    )
    dropout: float = Field(0.1, ge=0, lt=1)
    source_vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")
    target_vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")

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


def require_widths(model_dim: int, *, heads: int, positions: str) -> None:
    """Refuse a width that heads or positions cannot divide, before any data is read.

    Kinds of positions that are not named here are checked when the model is built.
    """
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
    decoder_layers: int | None = Field(
        None, ge=1, description="layers of the decoder, if not `layers`"
    )
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
    positions: str = Field(
        "sinusoidal",
        description='"sinusoidal", "learned", "relative", "rotary", "alibi" or "none"',
    )
    sinusoids: Literal["interleaved", "halves"] = Field(
        "interleaved", description="sine and cosine in turn, or all sines first"
    )
    sinusoid_offset: int = Field(0, ge=0, description="place of the first token")
    stretched_sinusoids: bool = Field(False, description="slowest wave 10000 exactly (fairseq)")
    max_length: int = Field(512, ge=1, description="positions in the table (positions learned)")
    reach: int = Field(
        16, ge=1, description="farthest distance with its own vector (positions relative)"
    )
    kernel: Literal["softmax", "linear"] = Field(
        "softmax", description="of self-attention; linear costs less on long input"
    )
    score: str = Field(
        "scaled-dot",
        description='attention score; another one ("dot", "bilinear", "additive") is slower',
    )
    window: int | None = Field(None, ge=1, description="farthest distance that self-attention sees")
    convolution_width: int = Field(3, ge=1, description="of the convolutional encoder")
    dropout: float = Field(0.1, ge=0, lt=1, description="on embeddings and every sublayer")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="on attention weights")
    activation_dropout: float = Field(0.0, ge=0, lt=1, description="inside feed-forward networks")
    tie: Literal["none", "target", "all"] = Field(
        "target", description="one table for target words and output, or for the source as well"
    )
    scaled_embeddings: bool = Field(True, description="embeddings times the root of model_dim")
    output_bias: bool = False
    alignment_layer: int = Field(
        -1, description="decoder layer shown as the attention; -1 is the last"
    )
    source_vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")
    target_vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")

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


TranslatorSettings = Annotated[
    Annotated[RecurrentSettings, Tag("recurrent")]
    | Annotated[TransformerSettings, Tag("transformer")],
    by_family("recurrent"),
]


class CausalTransformerSettings(Settings):
    """A decoder-only Transformer, with norms before each sublayer."""

    family: Literal["transformer"] = "transformer"
    layers: int = Field(4, ge=1)
    model_dim: int = Field(128, ge=1, description="width of the features")
    heads: int = Field(4, ge=1, description="attention heads a layer")
    feed_forward: int | None = Field(
        None, ge=1, description="width inside the feed-forward networks; 4 model_dim if not given"
    )
    context: int = Field(64, ge=1, description="tokens that are read at once")
    positions: str = Field(
        "learned", description='"learned", "sinusoidal", "relative", "rotary", "alibi" or "none"'
    )
    norm: Literal["layer", "rms"] = "layer"
    activation: Literal["relu", "gelu", "gelu-tanh", "swish", "swiglu"] = "gelu"
    window: int | None = Field(None, ge=1, description="farthest distance that attention sees")
    dropout: float = Field(0.0, ge=0, lt=1, description="on embeddings and every sublayer")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="on attention weights")
    tie: bool = Field(True, description="one table for tokens that are read and predicted")
    vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")

    @model_validator(mode="after")
    def _widths(self) -> CausalTransformerSettings:
        require_widths(self.model_dim, heads=self.heads, positions=self.positions)
        return self


class RecurrentLanguageModelSettings(Settings):
    """A recurrent language model, for comparison."""

    family: Literal["recurrent"] = "recurrent"
    cell: Literal["tanh", "gru", "lstm", "gated"] = "lstm"
    hidden: int = Field(256, ge=1, description="width of the recurrent state")
    embedding: int = Field(128, ge=1, description="width of the tokens' vectors")
    layers: int = Field(1, ge=1)
    context: int = Field(64, ge=1, description="tokens a training window")
    dropout: float = Field(0.0, ge=0, lt=1)
    tie: bool = Field(False, description="one table for tokens that are read and predicted")
    vocab: int | None = Field(None, ge=5, description="for summaries; training sets it")


LanguageModelSettings = Annotated[
    Annotated[CausalTransformerSettings, Tag("transformer")]
    | Annotated[RecurrentLanguageModelSettings, Tag("recurrent")],
    by_family("transformer"),
]


class ForecasterSettings(Settings):
    """A recurrent network that reads a window, with attention over its states or without."""

    cell: str = Field("tanh", description='recurrent cell: "tanh", "gru", "lstm"')
    hidden: int = Field(2, ge=1, description="width of the recurrent state")
    attention: str = Field("none", description='over the states: "none", "lecture" or "softmax"')
    output: Literal["linear", "tanh"] = "linear"


class GraphModelSettings(Settings):
    """A stack of graph layers; the last one gives the classes."""

    layer: Literal["attention", "convolution", "messages"] = "attention"
    score: str = Field("additive", description='on edges: "additive", "dynamic" or "scaled-dot"')
    layers: int = Field(2, ge=1)
    heads: int = Field(8, ge=1, description="heads of a hidden layer, concatenated")
    head_dim: int = Field(8, ge=1, description="width of one head")
    hidden: int = Field(16, ge=1, description="width where layers have no heads")
    output_heads: int = Field(1, ge=1, description="heads of the last layer, averaged")
    dropout: float = Field(0.6, ge=0, lt=1, description="of the features of each layer")
    attention_dropout: float = Field(0.6, ge=0, lt=1, description="of the edges")
    residual: bool = False
    features: int = Field(1_433, ge=1, description="for summaries; training sets it")
    classes: int = Field(7, ge=2, description="for summaries; training sets it")
