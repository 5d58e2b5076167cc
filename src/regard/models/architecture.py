"""The plan of a model, read from the model itself: its layers, what they return, what feeds them.

Pictures and summaries are made from it. A kind of model is described by one function here; of a
model that nobody described, every part that owns parameters is a block without connections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn

from regard.attention.graph import GraphAttention
from regard.base.results import BlockDiagram, Connection
from regard.models.blocks import (
    BlockList,
    BlockPlace,
    embedded_tokens,
    score_name,
    transformer_blocks,
)
from regard.models.forecaster import Forecaster
from regard.models.graph_classifier import GraphClassifier, GraphConvolution
from regard.models.language_model import LanguageModel
from regard.models.text_classifier import TextClassifier
from regard.models.translator import Translator
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.decoders import BahdanauDecoder, LuongDecoder, StartState
from regard.recurrent.encoder import OneHot, RecurrentBackbone, RecurrentEncoder
from regard.transformer.causal import CausalTransformer
from regard.transformer.decoder import TransformerDecoder
from regard.transformer.encoder import (
    BidirectionalTransformer,
    ConvolutionalEncoder,
    TransformerEncoder,
)

CELL_TITLES = {"tanh": "RNN", "gru": "GRU", "lstm": "LSTM", "gated": "Single-gate unit"}


def architecture(model: nn.Module) -> BlockDiagram:
    """Return the plan of a model."""
    found = BlockList()
    for kind, describe in DESCRIBED.items():
        if isinstance(model, kind):
            describe(model, found)
            break
    found.add_rest(model)
    return BlockDiagram(tuple(found.blocks))


def _translator(model: Translator[Any], blocks: BlockList) -> None:
    reads = BlockPlace(blocks, "encoder", ("batch", "source"), "encoder")
    source = reads.begin("source", "source tokens")
    memory = _encoder(model.encoder, reads, source)
    writes = BlockPlace(blocks, "decoder", ("batch", "target"), "decoder")
    target = writes.begin("target", "target tokens, shifted right")
    decoder: Any = model.decoder
    if isinstance(decoder, TransformerDecoder):
        features = transformer_blocks(decoder, writes, target, memory=memory)
    elif isinstance(decoder, LuongDecoder):
        features = _luong(decoder, writes, target, memory)
    elif isinstance(decoder, BahdanauDecoder):
        features = _bahdanau(decoder, writes, target, memory)
    else:
        features = writes.unknown(decoder, target, memory)
    _output(replace(writes, name=""), model.projection, features, "the next target token")


def _output(place: BlockPlace, projection: nn.Linear, features: str, what: str) -> None:
    width = projection.out_features
    logits = place.add("projection", "Linear", "linear", width, features, by=(projection,))
    place.add("softmax", "Softmax", "softmax", width, logits, note=f"of {what}")


def _encoder(encoder: nn.Module, place: BlockPlace, source: str) -> str:
    if isinstance(encoder, TransformerEncoder):
        return transformer_blocks(encoder, place, source)
    if isinstance(encoder, ConvolutionalEncoder):
        features = embedded_tokens(encoder.embedded, place, source)
        for number, layer in enumerate(encoder.layers):
            convolution: nn.Conv1d = layer.convolution  # type: ignore[assignment]
            features = place.add(
                f"{number}.convolution", "Convolution", "convolution", convolution.in_channels,
                features, by=(layer,), layer=number,
                note=f"width {convolution.kernel_size[0]}, gated, with residual",
            )  # fmt: skip
        return features
    if isinstance(encoder, RecurrentEncoder):
        embedded = _table(encoder.embedding, place, source)
        if encoder.first is not None:
            embedded = _stack(encoder.first, place, embedded, name="first")
        return _stack(encoder.stack, place, embedded)
    return place.unknown(encoder, source)


def _table(embedding: nn.Module, place: BlockPlace, tokens: str) -> str:
    title = "One-hot" if isinstance(embedding, OneHot) else "Embedding"
    width = int(embedding.embedding_dim)  # type: ignore[arg-type]
    return place.add("embedding", title, "embedding", width, tokens, by=(embedding,))


def _stack(
    stack: RecurrentStack, place: BlockPlace, *inputs: str | Connection, name: str = ""
) -> str:
    """Add the layers of a recurrent network; return the name of the top one."""
    directions = 2 if stack.bidirectional else 1
    title = CELL_TITLES[stack.kind]
    units = f"{stack.cell_hidden} units"
    if directions == 2:
        title, units = f"Bidirectional {title}", f"{units} in each direction"
    if stack.residual and stack.layers > 1:
        units = f"{units}, residual from the second layer"
    below: tuple[str | Connection, ...] = inputs
    for layer in range(stack.layers):
        weights = stack.weights[layer * directions : (layer + 1) * directions]
        top = place.add(
            _layer_name(stack, layer, name), title, "recurrent",
            directions * stack.cell_hidden, *below, by=tuple(weights), kind=title,
            note=units, layer=layer if stack.layers > 1 else None,
        )  # fmt: skip
        below = (top,)
    return top


def _layer_name(stack: RecurrentStack, layer: int, name: str = "") -> str:
    """Return the name of one layer: that of the cell, and its number if there are several."""
    name = name or CELL_TITLES[stack.kind].split()[0].lower()
    return name if stack.layers == 1 else f"{layer}.{name}"


def _start(starter: StartState | None, place: BlockPlace, memory: str) -> tuple[Connection, ...]:
    """Return what gives a decoder its first state."""
    if starter is None:
        return (Connection(memory, "last state"),)
    if starter.projection is None:
        return ()
    seen = "mean of the states" if starter.of_mean else "last state"
    projection = starter.projection
    beginning = replace(place, axes=("batch",)).add(
        "starter", "Start state", "linear", projection.out_features, Connection(memory, seen),
        by=(starter,), note="s_0 = tanh(W x + b)",
    )  # fmt: skip
    return (Connection(beginning, "s_0"),)


def _lookup(decoder: LuongDecoder | BahdanauDecoder, place: BlockPlace, *inputs: Connection) -> str:
    """Add the attention of a recurrent decoder: scores, weights, context."""
    lookup = decoder.lookup
    if lookup is None:
        raise ValueError("this decoder has no attention")
    title = f"Attention ({score_name(lookup.score)})"
    note = lookup.score.formula.format(s=decoder.formulas()["query"])
    width, by = lookup.context_dim, (lookup,)
    return place.add("attention", title, "attention", width, *inputs, by=by, note=note)


def _luong(decoder: LuongDecoder, place: BlockPlace, target: str, memory: str) -> str:
    embedded = _table(decoder.embedding, place, target)
    fed = (
        (Connection(f"{place.name}.combine", "t_{i-1}", earlier=True),)
        if decoder.input_feeding
        else ()
    )
    first = _start(decoder.starter, place, memory)
    state = _stack(decoder.stack, place, embedded, *first, *fed)
    if decoder.lookup is None:
        return state
    context = _lookup(decoder, place, Connection(state, "s_i"), Connection(memory, "h_1 ... h_T"))
    joined = (Connection(state, "s_i"), Connection(context, "c_i"))
    if decoder.combine is None:
        width = decoder.stack.cell_hidden + decoder.lookup.context_dim
        return place.add("join", "[s_i; c_i]", "add", width, *joined)
    width = decoder.combine.out_features
    by = (decoder.combine,)
    note = "tanh(W [s_i; c_i])"
    return place.add("combine", "Combination", "linear", width, *joined, by=by, note=note)


def _bahdanau(decoder: BahdanauDecoder, place: BlockPlace, target: str, memory: str) -> str:
    embedded = _table(decoder.embedding, place, target)
    first = _start(decoder.starter, place, memory)
    if decoder.lookup is None:
        context = Connection(memory, "c = h_T")
    else:
        top = _layer_name(decoder.stack, decoder.stack.layers - 1)
        asked = Connection(f"{place.name}.{top}", "s_{i-1}", earlier=True)
        context = Connection(
            _lookup(decoder, place, asked, Connection(memory, "h_1 ... h_T")), "c_i"
        )
    state = _stack(decoder.stack, place, embedded, context, *first)
    width = decoder.readout.out_features
    inputs = (Connection(embedded, "y_{i-1}"), Connection(state, "s_i"), context)
    note = f"tanh(W [y_{{i-1}}; s_i; {context.label.split()[0]}])"
    by = (decoder.readout,)
    return place.add("readout", "Readout", "linear", width, *inputs, by=by, note=note)


def _backbone(backbone: nn.Module, place: BlockPlace, tokens: str) -> str:
    if isinstance(backbone, CausalTransformer | BidirectionalTransformer):
        return transformer_blocks(backbone, place, tokens)
    if isinstance(backbone, RecurrentBackbone):
        features = _stack(backbone.stack, place, _table(backbone.embedding, place, tokens))
        if (narrow := backbone.narrow) is not None:
            width = narrow.out_features
            features = place.add("narrow", "Linear", "linear", width, features, by=(narrow,))
        return features
    return place.unknown(backbone, tokens)


def _language_model(model: LanguageModel[Any], blocks: BlockList) -> None:
    place = BlockPlace(blocks, "backbone", ("batch", "time"))
    tokens = place.begin("tokens", "tokens")
    features = _backbone(model.backbone, place, tokens)
    place = replace(place, name="")
    if (transform := model.transform) is not None:
        width, by = model.projection.in_features, (transform,)
        note = f"norm({transform.activation}(W x + b))"
        features = place.add(
            "transform", "Linear & norm", "linear", width, features, by=by, note=note
        )
    _output(
        place,
        model.projection,
        features,
        "the next token" if transform is None else "each hidden token",
    )


def _text_classifier(model: TextClassifier, blocks: BlockList) -> None:
    place = BlockPlace(blocks, "backbone", ("batch", "time"))
    features = _backbone(model.backbone, place, place.begin("tokens", "tokens"))
    place = BlockPlace(blocks, "", ("batch",))
    mean = place.add("mean", "Mean over the tokens", "add", model.head.in_features, features)
    labels = model.head.out_features
    logits = place.add("head", "Linear", "linear", labels, mean, by=(model.head,))
    place.add("softmax", "Softmax", "softmax", labels, logits, note="of the labels")


def _forecaster(model: Forecaster, blocks: BlockList) -> None:
    place = BlockPlace(blocks, "", ("batch",))
    window = place.begin("window", "window", "batch", model.window, model.inputs)
    hidden, horizon = model.dense.in_features, model.dense.out_features
    attends = model.attention is not None
    steps = replace(place, axes=("batch", str(model.window))) if attends else place
    context = _stack(model.rnn, steps, window, name="rnn")
    if (attention := model.attention) is not None:
        note = attention.context_formula
        context = place.add(
            "attention", "Attention", "attention", hidden, Connection(context, "h_1 ... h_T"),
            by=(attention,), note=note,
        )  # fmt: skip
    note = "tanh" if model.squash else ""
    place.add("dense", "Dense", "linear", horizon, context, by=(model.dense,), note=note)


def _graph_classifier(model: GraphClassifier, blocks: BlockList) -> None:
    place = BlockPlace(blocks, "", ("nodes",))
    first: Any = model.layers[0]
    maps = [part for part in first.modules() if hasattr(part, "weight") and part is not first]
    width = maps[0].weight.shape[0] if maps else 0
    features = place.begin("features", "node features", "nodes", width)
    edges = place.begin("edges", "edges", "edges", 2)
    for number, layer in enumerate(model.layers):
        title, role, note, width = _graph_layer(layer)
        note += ", then ELU" if number + 1 < len(model.layers) else ""
        links = (features, Connection(edges, "neighbours"))
        features = place.add(f"layers.{number}", title, role, width, *links, by=(layer,), note=note)
    place.add("softmax", "Softmax", "softmax", width, features, note="of the classes")


def _graph_layer(layer: Any) -> tuple[str, str, str, int]:
    """Return the title, the role, the details and the width of a graph layer."""
    if isinstance(layer, GraphAttention):
        joined = "concatenated" if layer.concatenate else "averaged"
        heads = f"{layer.heads} heads" if layer.heads > 1 else "1 head"
        note = f"{heads} of {layer.head_dim}, {joined}"
        return "Graph attention", "attention", note, len(layer.bias)
    if isinstance(layer, GraphConvolution):
        return "Graph convolution", "convolution", "weights by degrees", len(layer.bias)
    width = layer.self_update.weight.shape[1]
    return "Message passing", "convolution", "edge types have vectors", width


DESCRIBED: dict[type[nn.Module], Callable[..., None]] = {
    Translator: _translator,
    LanguageModel: _language_model,
    TextClassifier: _text_classifier,
    Forecaster: _forecaster,
    GraphClassifier: _graph_classifier,
}
