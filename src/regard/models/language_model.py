"""The language model: a network that reads text, and a projection onto tokens."""

import math
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from torch import nn

from regard.attention.masks import Segments
from regard.attention.places import DistanceBias, Positions
from regard.attention.probe import Probe
from regard.base.errors import RegardError
from regard.base.results import Output, Step
from regard.base.shapes import Float, Int, Tensor
from regard.compute.linear import Linear
from regard.models.build import TransformerPlan, positions_named
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.encoder import RecurrentBackbone
from regard.settings.language_models import (
    BidirectionalSettings,
    CausalTransformerSettings,
    RecurrentLanguageModelSettings,
)
from regard.settings.layers import LayerSettings
from regard.transformer.causal import CausalTransformer
from regard.transformer.encoder import BidirectionalTransformer, HiddenTokenLayer
from regard.transformer.layers import GATED, FeedForward, SelfAttentionLayer

State = TypeVar("State")


@runtime_checkable
class Backbone(Protocol[State]):
    """What a language model needs of its network; recurrent ones and Transformers provide it."""

    def start(self, batch: int) -> State:
        """Return the state before the first token."""
        ...

    def __call__(
        self, tokens: Tensor, state: State, *, with_weights: bool, probe: Probe | None = None
    ) -> tuple[Output, State]:
        """Read tokens and return features for the next ones, with the new state."""
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """Return the state of these rows."""
        ...


class LanguageModel(nn.Module, Generic[State]):
    """p(x) = prod_t p(x_t | x_<t), from any network that reads from left to right.

    `context` is the number of tokens that it reads at once; None if there is no limit. With a
    network that reads both ways, features are those of hidden tokens; `transform` prepares them.
    """

    def __init__(
        self,
        *,
        backbone: nn.Module,
        projection: nn.Linear,
        context: int | None,
        transform: HiddenTokenLayer | None = None,
    ):
        super().__init__()
        self.backbone = backbone
        self.transform = transform
        self.projection = projection
        self.context = context

    @property
    def reads_both_ways(self) -> bool:
        """Whether it guesses hidden tokens, and cannot write on."""
        return self.transform is not None

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Output:
        """Return the features behind the token after each position, or at it if it was hidden."""
        start = self._backbone.start(len(tokens))
        output, _ = self._backbone(tokens, start, with_weights=with_weights, probe=probe)
        if self.transform is None:
            return output
        return Output(self.transform(output.features), output.attention)

    def project(
        self, features: Float[Tensor, "*positions model_dim"]
    ) -> Float[Tensor, "*positions vocab"]:
        """Return logits over the vocabulary."""
        logits: Tensor = self.projection(features)
        return logits

    def start(self, batch: int) -> State:
        """Return the state of `batch` rows before the first token."""
        if self.reads_both_ways:
            raise RegardError(
                "This model reads texts both ways and guesses hidden tokens (model.family = "
                '"bidirectional"): it cannot write on. Fine-tune a classifier on it, or train with '
                'model.family = "transformer".'
            )
        return self._backbone.start(batch)

    def read(
        self,
        tokens: Int[Tensor, "batch time"],
        state: State,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Step[State]:
        """Read more tokens and return logits over the one that follows the last of them."""
        output, state = self._backbone(tokens, state, with_weights=with_weights, probe=probe)
        weights = None if output.attention is None else output.attention[:, -1]
        return Step(self.project(output.features[:, -1]), state, weights)

    def step(
        self, tokens: Int[Tensor, "batch"], state: State, *, with_weights: bool = False
    ) -> Step[State]:
        """Read one token a row and return logits over the next one."""
        return self.read(tokens[:, None], state, with_weights=with_weights)

    def select(self, state: State, rows: Int[Tensor, "chosen"]) -> State:
        """Return the state of these rows of the batch, in this order."""
        return self._backbone.select(state, rows)

    def head_maps(
        self, tokens: Int[Tensor, "batch time"]
    ) -> Float[Tensor, "layers batch heads time time"]:
        """Return the weights of every layer and head."""
        backbone: Any = self.backbone
        if not hasattr(backbone, "look"):
            raise RegardError("This model has no attention heads; only a Transformer has them.")
        maps: Tensor = backbone.look(tokens)
        return maps

    @property
    def _backbone(self) -> Backbone[State]:
        backbone: Any = self.backbone
        return backbone  # type: ignore[no-any-return]


SPREAD, SPREAD_WIDTH = 0.02, 768  # of fresh weights, and for which width (Radford et al. 2018, 4.1)


def build_language_model(
    settings: CausalTransformerSettings | BidirectionalSettings | RecurrentLanguageModelSettings,
    *,
    vocab: int,
) -> LanguageModel[Any]:
    """Return a fresh language model; the one place where its family is chosen."""
    return LANGUAGE_MODELS[settings.family](settings, vocab=vocab)


class LanguageModelPlan(TransformerPlan):
    """The plan of a Transformer that has no encoder."""

    def language_model(self, *, vocab: int, segments: Segments | None = None) -> LanguageModel[Any]:
        """Return a fresh decoder-only Transformer; what has a memory reads texts of any length."""
        table = nn.Embedding(vocab, self.model_dim)
        model: LanguageModel[Any] = LanguageModel(
            backbone=CausalTransformer(
                embedded=self._embedded(table),
                layers=[self._self_layer(number) for number in range(self.layers)],
                norm=self._last_norm(),
                window=self.window,
                distance_bias=self._positions(DistanceBias, causal=True),
                segments=segments,
            ),
            projection=self._projection(table),
            context=self.max_length if segments is None else None,
        )
        _spread_weights(model, layers=self.layers, width=self.model_dim)
        return model

    def hidden_token_model(self, *, vocab: int) -> LanguageModel[Any]:
        """Return a fresh encoder that guesses hidden tokens (Devlin et al. 2019, figure 1)."""
        table = nn.Embedding(vocab, self.model_dim)
        model: LanguageModel[Any] = LanguageModel(
            backbone=BidirectionalTransformer(
                embedded=self._embedded(table),
                layers=[self._self_layer(number) for number in range(self.layers)],
                norm=self._last_norm(),
                window=self.window,
                distance_bias=self._positions(DistanceBias),
            ),
            transform=HiddenTokenLayer(
                self.model_dim,
                activation="gelu" if self.activation in GATED else self.activation,
                norm=self._norm(),
            ),
            projection=self._projection(table),
            context=self.max_length,
        )
        _spread_weights(model, layers=self.layers, width=self.model_dim)
        return model


def _plan(
    settings: CausalTransformerSettings | BidirectionalSettings, **more: Any
) -> LanguageModelPlan:
    return LanguageModelPlan(
        layers=settings.layers,
        model_dim=settings.model_dim,
        heads=settings.heads,
        feed_forward=settings.feed_forward or 4 * settings.model_dim,
        norm=settings.norm,
        activation=settings.activation,
        positions=settings.positions,
        max_length=settings.context,
        window=settings.window,
        dropout=settings.dropout,
        attention_dropout=settings.attention_dropout,
        activation_dropout=0.0,
        tie="target" if settings.tie else "none",
        scaled_embeddings=positions_named(settings.positions).wants_large_embeddings,
        **layer_options(settings),
        **more,
    )


def _build_transformer(settings: CausalTransformerSettings, *, vocab: int) -> LanguageModel[Any]:
    segments = None
    if settings.memory:
        segments = Segments(settings.segment_length, settings.memory)
    return _plan(settings, norm_placement="pre").language_model(vocab=vocab, segments=segments)


def _build_bidirectional(settings: BidirectionalSettings, *, vocab: int) -> LanguageModel[Any]:
    plan = _plan(
        settings,
        norm_placement=settings.norm_placement,
        segments=settings.segments,
        output_bias=True,
    )
    return plan.hidden_token_model(vocab=vocab)


def layer_options(settings: LayerSettings) -> dict[str, Any]:
    """Return the options that all Transformers share, which have the same names in a plan."""
    return {name: getattr(settings, name) for name in LayerSettings.model_fields}


def _build_recurrent(settings: RecurrentLanguageModelSettings, *, vocab: int) -> LanguageModel[Any]:
    table = nn.Embedding(vocab, settings.embedding)
    nn.init.normal_(table.weight, std=settings.embedding**-0.5)
    narrows = settings.tie and settings.embedding != settings.hidden
    width = settings.embedding if narrows else settings.hidden
    projection = Linear(width, vocab)
    if settings.tie:  # Press & Wolf 2017
        projection.weight = table.weight
    return LanguageModel(
        backbone=RecurrentBackbone(
            embedding=table,
            stack=RecurrentStack(
                kind=settings.cell,
                input_dim=settings.embedding,
                hidden=settings.hidden,
                layers=settings.layers,
                dropout=settings.dropout,
                residual=settings.residual,
                rank=settings.cell_rank,
                groups=settings.cell_groups,
            ),
            narrow=Linear(settings.hidden, width) if narrows else None,
            dropout=settings.dropout,
        ),
        projection=projection,
        context=None,
    )


def _spread_weights(model: nn.Module, *, layers: int, width: int) -> None:
    """Draw all matrices from one narrow normal distribution, as GPT-2 does.

    Narrower models sum fewer products, so their distribution is wider by the square root, and all
    models begin with activations of the size of GPT-2's. The output of each sublayer is scaled down
    by the root of the number of residuals, so that the size does not grow with depth (Radford et
    al. 2019, section 2.3).
    """
    spread = SPREAD * math.sqrt(SPREAD_WIDTH / width)
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=spread)
        elif isinstance(part, Positions):
            part.redraw(spread)
    for part in model.modules():
        if isinstance(part, SelfAttentionLayer):
            networks = [one for one in part.feed_forward.modules() if isinstance(one, FeedForward)]
            for last in (part.attention.output, *(one.outer for one in networks)):
                nn.init.normal_(last.weight, std=spread / math.sqrt(2 * layers))


LANGUAGE_MODELS: dict[str, Callable[..., LanguageModel[Any]]] = {
    "transformer": _build_transformer,
    "bidirectional": _build_bidirectional,
    "recurrent": _build_recurrent,
}
