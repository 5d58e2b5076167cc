"""Settings of the model families."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from regard.settings.layers import (
    PAIRED,
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
from regard.settings.recipe import Settings

BIASED_SCORES = ("additive", "bilinear")


def by_family(default: str) -> Discriminator:
    """Return what tells a union's members apart: the `family` of a table, else the default."""

    def family_of(value: Any) -> str:
        if isinstance(value, dict):
            return str(value.get("family", default))
        return str(getattr(value, "family", default))

    return Discriminator(family_of)


class RecurrentSettings(CellSettings):
    """A recurrent encoder-decoder, with attention or without."""

    family: Literal["recurrent"] = Field("recurrent", description="family of the model")
    cell: Literal["tanh", "gru", "lstm", "gated"] = Field(
        "lstm", description="kind of recurrent cell"
    )
    decoder: Literal["luong", "bahdanau", "shared"] = Field(
        "luong",
        description='look back after the state update ("luong"), before it ("bahdanau"), or after '
        'it with one recurrent matrix for encoder and decoder ("shared")',
    )
    shared_inputs: bool = Field(
        False,
        description="let that one matrix read the input, too, without a bias: W^h [y(t-1); x(t)]",
    )
    hidden: Width = Field(256, description="width of the recurrent state")
    embedding: Width = Field(128, description="width of the word vectors")
    one_hot: bool = Field(False, description="one-hot tokens instead of word vectors")
    layers: Layers = Field(1, description="stacked layers in encoder and decoder each")
    bidirectional: bool = Field(True, description="read the source from both ends")
    upper_layers: Literal["alike", "forward"] = Field(
        "alike", description="encoder layers above the first: alike, or forward alone (GNMT)"
    )
    attention: str = Field(
        "dot",
        description='attention score: "dot", "scaled-dot", "bilinear", "additive", '
        '"parameterised", "multi-head", or "none"',
    )
    heads: Heads = Field(4, description='heads of the attention "multi-head"')
    input_feeding: bool = Field(
        False, description="read the last step's features with each token (luong)"
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="on embeddings, states and features")
    encoder_hidden: Width | None = Field(
        None, description="width of the encoder's states, if not `hidden`"
    )
    encoder_layers: Layers | None = Field(
        None, description="layers of the encoder, if not `layers`"
    )
    start: Literal["last", "zero", "mean", "bridge"] = Field(
        "last",
        description="the decoder's first state: the encoder's last, zero, or a tanh layer on the "
        "mean of the encoder's states or on the last one (bridge)",
    )
    query: Literal["top", "sum"] = Field(
        "top", description="what attention is asked with: the top layer's state, or the sum of all"
    )
    score_biases: bool = Field(False, description="biases in the attention score")
    combination_bias: bool = Field(False, description="a bias where state and context are joined")
    readout: Width | None = Field(
        None, description="width of the features before the output layer, if not `hidden`"
    )
    output_bias: bool = Field(True, description="a bias in the output layer")
    source_vocab: Entries | None = Field(None, ge=5, description="for summaries; training sets it")
    target_vocab: Entries | None = Field(None, ge=5, description="for summaries; training sets it")

    @property
    def encoder_width(self) -> int:
        """The width of the encoder's states."""
        return self.encoder_hidden or self.hidden

    @model_validator(mode="after")
    def _halves(self) -> RecurrentSettings:
        if self.bidirectional and self.encoder_width % 2:
            name = "hidden" if self.encoder_hidden is None else "encoder_hidden"
            raise ValueError(
                f"{name} ({self.encoder_width}) must be even when bidirectional is true"
            )
        return self

    @model_validator(mode="after")
    def _cells_fit(self) -> RecurrentSettings:
        states = {"hidden": self.hidden, "embedding": self.embedding}
        self.require_lstm(self.cell, **states, encoder_hidden=self.encoder_width)
        layers = self.encoder_layers or self.layers
        self.require_layers(max(self.layers, layers))
        if self.upper_layers == "forward":
            self.require_first_both_ways(
                bidirectional=self.bidirectional, layers=layers, decoder=self.decoder
            )
        if self.decoder == "shared" and (self.cell_rank is not None or self.cell_groups > 1):
            raise ValueError(
                'decoder = "shared" has one whole matrix for encoder and decoder; leave out '
                "cell_rank and cell_groups"
            )
        return self

    @model_validator(mode="after")
    def _encoder_fits(self) -> RecurrentSettings:
        own = self.encoder_width != self.hidden or (
            self.encoder_layers is not None and self.encoder_layers != self.layers
        )
        if own and self.start == "last":
            raise ValueError(
                "an encoder with a width or layers of its own cannot hand its last state to the "
                'decoder; use start = "zero", "mean" or "bridge"'
            )
        if self.encoder_width != self.hidden and self.attention in ("dot", "scaled-dot"):
            raise ValueError(
                f'attention = "{self.attention}" needs one width for encoder_hidden '
                f'({self.encoder_width}) and hidden ({self.hidden}); use "additive" or "bilinear"'
            )
        if self.score_biases and self.attention not in BIASED_SCORES:
            raise ValueError(
                f'attention = "{self.attention}" has no biases (score_biases); '
                f"{' and '.join(BIASED_SCORES)} have"
            )
        without_features = self.attention == "none" and self.decoder == "luong"
        if self.readout is not None and (self.decoder == "shared" or without_features):
            raise ValueError(
                "readout is the width where state and context are joined, which this model does "
                "not do; leave it out"
            )
        if self.decoder == "shared" and (own or self.output_bias is False):
            raise ValueError(
                'decoder = "shared" has one width and one number of layers for encoder and '
                "decoder, and no output bias to leave out"
            )
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
        if self.shared_inputs and (self.decoder != "shared" or self.cell in ("gru", "lstm")):
            raise ValueError(
                'shared_inputs = true needs decoder = "shared" and cell = "tanh" or "gated" '
                f'(given: decoder "{self.decoder}", cell "{self.cell}")'
            )
        if self.shared_inputs and self.one_hot:
            raise ValueError(
                "shared_inputs = true needs one width of inputs for both languages; leave out "
                "one_hot"
            )
        return self


class TransformerSettings(LayerSettings):
    """A Transformer encoder-decoder; the defaults are the base model of Vaswani et al. 2017."""

    family: Literal["transformer"] = Field("transformer", description="family of the model")
    layers: Layers = Field(6, description="layers of the encoder, and of the decoder")
    decoder_layers: Layers | None = Field(
        None, description="layers of the decoder, if not `layers`"
    )
    model_dim: Width = Field(512, description="width of the features")
    heads: Heads = Field(8, description="attention heads a layer")
    feed_forward: Width = Field(2048, description="width inside the feed-forward networks")
    encoder: Literal["attention", "convolutional"] = Field(
        "attention", description="how the encoder relates positions"
    )
    decoder: Literal["attention", "ssru"] = Field(
        "attention", description='how it sees the target so far: "ssru" is recurrent and fast'
    )
    norm_placement: Literal["pre", "post"] = Field(
        "post", description="norm before each sublayer, or after it as in the paper"
    )
    norm: Literal["layer", "rms"] = Field("layer", description="kind of norm")
    activation: Activation = Field("relu", description="inside the feed-forward networks")
    positions: str = Field(
        "sinusoidal",
        description='"sinusoidal", "learned", "relative", "rotary", "segment", "alibi", "bucketed" '
        'or "none"',
    )
    sinusoids: Literal["interleaved", "halves"] = Field(
        "interleaved", description="sine and cosine in turn, or all sines first"
    )
    sinusoid_offset: LengthLimit = Field(0, ge=0, description="position of the first token")
    stretched_sinusoids: bool = Field(False, description="slowest wave 10000 exactly (fairseq)")
    max_length: LengthLimit = Field(
        512, ge=1, description="positions in the table (positions learned)"
    )
    reach: LengthLimit = Field(
        16, ge=1, description="farthest distance with its own vector (positions relative)"
    )
    kernel: Literal["softmax", "linear"] = Field(
        "softmax", description="of self-attention; a linear one costs less on long input"
    )
    score: str = Field(
        "scaled-dot",
        description='attention score; another one ("dot", "bilinear", "additive") is slower',
    )
    window: int | None = Field(None, ge=1, description="farthest distance that self-attention sees")
    encoder_window: int | None = Field(
        None,
        ge=1,
        description="farthest distance that the layers of the encoder see, all but the last",
    )
    convolution_width: LengthLimit = Field(3, ge=1, description="of the convolutional encoder")
    dropout: float = Field(0.1, ge=0, lt=1, description="on embeddings and every sublayer")
    attention_dropout: float = Field(0.0, ge=0, lt=1, description="on attention weights")
    activation_dropout: float = Field(0.0, ge=0, lt=1, description="inside feed-forward networks")
    tie: Literal["none", "target", "inputs", "all"] = Field(
        "target",
        description="one table for target words and output, for source and target words, or for "
        "all three",
    )
    scaled_embeddings: bool = Field(True, description="embeddings times the root of model_dim")
    output_bias: bool = Field(False, description="a bias in the output layer")
    scaled_output: bool = Field(
        False, description="features divided by the root of model_dim before the output layer"
    )
    alignment_layer: int = Field(
        -1, description="decoder layer shown as the attention; -1 is the last"
    )
    alignment_head: int | None = Field(
        None,
        ge=0,
        description="head of alignment_layer that is taught to align (training.alignment_loss) and "
        "then shown; none: the mean of all heads",
    )
    source_vocab: Entries | None = Field(None, ge=5, description="for summaries; training sets it")
    target_vocab: Entries | None = Field(None, ge=5, description="for summaries; training sets it")

    @model_validator(mode="after")
    def _widths(self) -> TransformerSettings:
        require_widths(
            self.model_dim, heads=self.heads, positions=self.positions, head_dim=self.head_dim
        )
        self.require_groups(self.heads)
        self.require_span("max_length", self.max_length)
        self.require_pairs(
            positions=self.positions, window=self.window, kernel=self.kernel, score=self.score
        )
        if self.encoder == "convolutional" and self.convolution_width % 2 == 0:
            raise ValueError(f"convolution_width ({self.convolution_width}) must be odd")
        return self

    @model_validator(mode="after")
    def _fit_together(self) -> TransformerSettings:
        if self.kernel == "linear" and self.positions in PAIRED:
            raise ValueError(
                f'kernel = "linear" has no scores that positions = "{self.positions}" could '
                "change; choose sinusoidal, learned, rotary or none"
            )
        windows = (self.window, self.encoder_window)
        if self.kernel == "linear" and windows != (None, None):
            raise ValueError('kernel = "linear" and a window exclude each other; choose one')
        if self.alignment_head is not None and self.alignment_head >= self.heads:
            raise ValueError(
                f"alignment_head ({self.alignment_head}) must be one of the {self.heads} heads, "
                "counted from 0"
            )
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


class ForecasterSettings(Settings):
    """A recurrent network that reads a window, with attention over its states or without."""

    cell: str = Field("tanh", description='recurrent cell: "tanh", "gru", "lstm"')
    hidden: Width = Field(2, description="width of the recurrent state")
    attention: str = Field("none", description='over the states: "none", "lecture" or "softmax"')
    output: Literal["linear", "tanh"] = Field("linear", description="function of the output layer")


class GraphModelSettings(Settings):
    """A stack of graph layers; the last one gives the classes."""

    layer: Literal["attention", "convolution", "messages"] = Field(
        "attention", description="kind of graph layer"
    )
    score: str = Field(
        "additive",
        description='on edges: "additive", "dynamic", "scaled-dot", "distance" or "gaussian"',
    )
    edge_vectors: Literal["types", "learned", "given"] = Field(
        "types", description="vectors of edges (layer messages): of types, of each edge, or data"
    )
    layers: Layers = Field(2, description="stacked layers, the last one included")
    heads: Heads = Field(8, description="heads of a hidden layer, concatenated")
    head_dim: Width = Field(8, description="width of one head")
    hidden: Width = Field(16, description="width where layers have no heads")
    output_heads: Heads = Field(1, description="heads of the last layer, averaged")
    dropout: float = Field(0.6, ge=0, lt=1, description="of the features of each layer")
    attention_dropout: float = Field(0.6, ge=0, lt=1, description="of the edges")
    residual: bool = Field(False, description="add the inputs of each layer to its outputs")
    features: Entries = Field(1_433, ge=1, description="for summaries; training sets it")
    classes: Entries = Field(7, ge=2, description="for summaries; training sets it")

    @model_validator(mode="after")
    def _vectors_fit(self) -> GraphModelSettings:
        if self.edge_vectors != "types" and self.layer != "messages":
            raise ValueError(f'edge_vectors = "{self.edge_vectors}" needs layer = "messages"')
        return self
