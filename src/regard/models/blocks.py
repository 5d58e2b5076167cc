"""The blocks of networks, with their parameters counted once; and those of Transformers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from torch import nn

from regard.attention.experts import MixtureOfExperts
from regard.attention.multihead import MultiHeadAttention
from regard.attention.places import Positions
from regard.attention.positions import POSITIONS
from regard.attention.scores import SCORES, AttentionScore
from regard.base.results import Block, Connection
from regard.transformer.encoder import BidirectionalTransformer, TransformerEncoder
from regard.transformer.layers import Embedded, FeedForward, RecurrentUnit, Residual

POSITION_NAMES = {kind: name for name, kind in POSITIONS.items()}
SCORE_NAMES = {kind: name for name, kind in SCORES.items()}


@dataclass
class BlockList:
    """Collects blocks; parameters that two of them share are counted in the first."""

    blocks: list[Block] = field(default_factory=list)
    owners: dict[int, str] = field(default_factory=dict)

    def add(self, block: Block, *parts: nn.Module | None) -> str:
        """Add a block that these modules compute; return its name."""
        modules = [part for part in parts if part is not None]
        every = list(dict.fromkeys(p for part in modules for p in part.parameters()))
        own = [p for p in every if id(p) not in self.owners]
        others = dict.fromkeys(self.owners[id(p)] for p in every if id(p) in self.owners)
        self.owners.update((id(p), block.name) for p in own)
        self.blocks.append(
            replace(
                block,
                kind=block.kind or (type(modules[0]).__name__ if modules else ""),
                parameters=sum(p.numel() for p in own),
                bytes=sum(p.numel() * p.element_size() for p in own),
                trainable=any(p.requires_grad for p in own) or not own,
                shared=", ".join(others),
            )
        )
        return block.name

    def add_rest(self, model: nn.Module) -> None:
        """Add what owns parameters that no block has, by its name in the model."""
        for name, part in model.named_modules():
            own = [p for p in part.parameters(recurse=False) if id(p) not in self.owners]
            if own:
                title = type(part).__name__
                weights = ", ".join("x".join(map(str, p.shape)) for p in own)
                self.blocks.append(
                    Block(
                        name,
                        title,
                        "other",
                        (),
                        kind=title,
                        note=weights,
                        parameters=sum(p.numel() for p in own),
                        bytes=sum(p.numel() * p.element_size() for p in own),
                        trainable=any(p.requires_grad for p in own),
                    )
                )
                self.owners.update((id(p), name) for p in own)


@dataclass(frozen=True)
class BlockPlace:
    """Where blocks are added: the name of their part, its half of the model, names of its axes."""

    blocks: BlockList
    name: str
    axes: tuple[str, ...]
    side: str = ""

    def add(
        self,
        name: str,
        title: str,
        role: str,
        width: int | str,
        *inputs: str | Connection,
        by: tuple[nn.Module | None, ...] = (),
        **more: Any,
    ) -> str:
        """Add a block that returns vectors of a width; return its full name."""
        links = tuple(Connection(one) if isinstance(one, str) else one for one in inputs)
        full = f"{self.name}.{name}".strip(".")
        block = Block(full, title, role, (*self.axes, width), links, side=self.side, **more)
        return self.blocks.add(block, *by)

    def begin(self, name: str, title: str, *shape: str | int) -> str:
        """Add an input of the model."""
        return self.blocks.add(Block(name, title, "input", shape or self.axes, side=self.side))

    def unknown(self, part: nn.Module, *inputs: str) -> str:
        """Add a network of the user as one block, whose shape is not known."""
        links = tuple(map(Connection, inputs))
        title = type(part).__name__
        return self.blocks.add(Block(self.name, title, "other", (), links, side=self.side), part)


def score_name(score: AttentionScore) -> str:
    """Return the name of a score in its registry, or its class."""
    return SCORE_NAMES.get(type(score), type(score).__name__)


def _position_name(positions: Positions) -> str:
    return POSITION_NAMES.get(type(positions), type(positions).__name__)


def embedded_tokens(embedded: Embedded, place: BlockPlace, tokens: str) -> str:
    """Add the embedding of a Transformer, and what is added to it; return the sum."""
    table, width = embedded.embedding, embedded.embedding.embedding_dim
    note = f"times {embedded.scale:.4g}" if embedded.scale != 1 else ""
    by: tuple[nn.Module, ...] = (table,)
    inputs = [place.add("embedding", "Embedding", "embedding", width, tokens, by=by, note=note)]
    if embedded.positions is not None:
        by = (embedded.positions,)
        title = f"{_position_name(embedded.positions).capitalize()} positions"
        inputs.append(
            replace(place, axes=place.axes[1:]).add("positions", title, "positions", width, by=by)
        )
    elif embedded.norm is None and embedded.segments is None:
        return inputs[0]
    title, role = ("+", "add") if embedded.norm is None else ("Add & norm", "norm")
    rest = embedded.norm if embedded.segments is None else embedded
    return place.add("embedded", title, role, width, *inputs, by=(rest,))


def transformer_blocks(
    network: Any, place: BlockPlace, tokens: str, *, memory: str | None = None
) -> str:
    """Add the embedding, layers and last norm of an encoder or decoder; return its top."""
    features = embedded_tokens(network.embedded, place, tokens)
    width = network.embedded.embedding.embedding_dim
    bias = _bias(network, place)
    masked = not isinstance(network, TransformerEncoder | BidirectionalTransformer)
    own = "self_" if memory is not None else "attention_"
    for number, layer in enumerate(network.layers):
        at = Sublayers(place, number, width)
        name = "attention" if memory is None else "self_attention"
        part = getattr(layer, name)
        last = number == len(network.layers) - 1
        window = network.window if last else getattr(network, "lower_window", network.window)
        shown = _attention_shown(part, masked=masked, window=window)
        if getattr(network, "segments", None) is not None:
            length, kept = network.segments.length, network.segments.memory
            shown = shown._replace(
                note=f"{shown.note}, memory of {kept} behind segments of {length}"
            )
        features = at.add(name, shown, part, (f"{own}residual", layer), features, *bias)
        if memory is not None:
            part = layer.cross_attention
            shown, keys = _attention_shown(part, across=True), Connection(memory, "K, V")
            of = ("cross_residual", layer)
            features = at.add("cross_attention", shown, part, of, features, keys)
        part, of = layer.feed_forward, ("feed_forward_residual", layer)
        features = at.add("feed_forward", _network_shown(part), part, of, features)
    if network.norm is not None:
        features = place.add("norm", "Norm", "norm", width, features, by=(network.norm,))
    return features


def _bias(network: Any, place: BlockPlace) -> tuple[Connection, ...]:
    """Add the bias by distance that all layers of a network share, if it has one."""
    if (positions := network.distance_bias) is None:
        return ()
    at = replace(place, axes=("heads", "query"))
    title = f"{_position_name(positions).capitalize()} bias"
    added = at.add("distance_bias", title, "positions", "key", by=(positions,))
    return (Connection(added, "bias"),)


class Shown(NamedTuple):
    """How a sublayer is shown."""

    title: str
    role: str
    note: str = ""


@dataclass(frozen=True)
class Sublayers:
    """Adds the sublayers of one Transformer layer with their residuals and norms."""

    place: BlockPlace
    layer: int
    width: int

    def add(
        self,
        name: str,
        shown: Shown,
        part: nn.Module,
        of: tuple[str, nn.Module],
        features: str,
        *others: Connection,
    ) -> str:
        """Add one sublayer and the residual `of` a layer; return what the residual returns."""
        residual: Residual = getattr(of[1], of[0])
        entered = features
        if residual.pre_norm:
            norm = Shown("Norm", "norm")
            entered = self._block(f"{name}.norm", norm, residual.norm, features)
        change = self._block(name, shown, part, entered, *others)
        around = Connection(features, "residual")
        if residual.pre_norm:
            return self._block(f"{name}.add", Shown("+", "add"), None, change, around)
        joined = Shown("Add & norm", "norm")
        return self._block(f"{name}.norm", joined, residual.norm, change, around)

    def _block(
        self, name: str, shown: Shown, part: nn.Module | None, *inputs: str | Connection
    ) -> str:
        return self.place.add(
            f"{self.layer}.{name}",
            shown.title,
            shown.role,
            self.width,
            *inputs,
            by=(part,),
            note=shown.note,
            layer=self.layer,
        )


def _attention_shown(
    part: nn.Module, *, masked: bool = False, across: bool = False, window: int | None = None
) -> Shown:
    if isinstance(part, RecurrentUnit):
        return Shown("SSRU", "recurrent", "in place of self-attention")
    if not isinstance(part, MultiHeadAttention):
        return Shown(type(part).__name__, "attention")
    heads = f"{part.heads} heads" if part.heads > 1 else "1 head"
    notes = [f"{heads} of {part.query_dim // part.heads}"]
    if part.groups != part.heads:
        notes.append(f"{part.groups} for keys and values")
    if part.positions is not None:
        notes.append(f"{_position_name(part.positions)} positions")
    if part.linear:
        notes.append("linear")
    if part.score is not None:
        notes.append(f"score {score_name(part.score)}")
    if window is not None:
        notes.append(f"window {window}")
    if part.pattern is not None:
        notes.append(part.pattern.note)
    kind = "Cross-attention" if across else "Masked self-attention" if masked else "Self-attention"
    return Shown(kind, "attention", ", ".join(notes))


def _network_shown(part: nn.Module) -> Shown:
    if isinstance(part, MixtureOfExperts):
        note = f"{len(part.experts)} experts, {part.gate.chosen} a token"
        return Shown("Mixture of experts", "feed-forward", note)
    if isinstance(part, FeedForward):
        wide, width = part.outer.in_features, part.outer.out_features
        return Shown("Feed-forward", "feed-forward", f"{width}, {wide}, {width}; {part.activation}")
    return Shown(type(part).__name__, "feed-forward")
