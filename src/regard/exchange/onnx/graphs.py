"""The two graphs of a translator: its encoder, and one step of its decoder with the cache."""

from __future__ import annotations

from typing import Any

import onnx
import torch

from regard.attention.multihead import MultiHeadAttention
from regard.exchange.onnx.layers import FLOATS, IDS, TRUTHS, LayerGraph
from regard.models.translator import Translator
from regard.settings.models import TransformerSettings
from regard.transformer import layers as parts


@torch.no_grad()
def encoder_graph(
    model: Translator[Any],
    settings: TransformerSettings,
    *,
    weights: bool = False,
    int8: bool = False,
) -> onnx.ModelProto:
    """Return the graph that reads the source once.

    Inputs: `tokens` and `mask` [batch, source]. Outputs: `memory`, and the keys and values that
    each layer of the decoder looks at; on request `self_weights.N` of every layer and head.
    """
    encoder: Any = model.encoder
    decoder: Any = model.decoder
    graph = LayerGraph("encoder", settings, int8=int8)
    tokens = graph.input("tokens", IDS, "batch", "source")
    mask = graph.input("mask", TRUTHS, "batch", "source")
    graph.length = graph("Shape", tokens, start=1, end=2)
    features = graph.embedded(tokens, encoder.embedded)
    penalties = [graph.padding(mask)]
    if (table := graph.by_distance(encoder)) is not None:
        places = graph.count_to(graph("Squeeze", graph.length))
        rows, columns = (graph("Unsqueeze", places, graph.numbers(axis)) for axis in (1, 0))
        distance = graph("Add", graph("Sub", columns, rows), graph.numbers(graph.most - 1))
        penalties.append(graph("Gather", table, distance, axis=1))
    for number, layer in enumerate(encoder.layers):
        inputs = graph.enter(layer.attention_residual, features)
        split = graph.projected(layer.attention, inputs, "qkv")
        change, seen = graph.attended(layer.attention, split, penalties)
        features = graph.residual(layer.attention_residual, features, change)
        inputs = graph.enter(layer.feed_forward_residual, features)
        change = graph.feed_forward(inputs, layer.feed_forward)
        features = graph.residual(layer.feed_forward_residual, features, change)
        if weights:
            axes = ("batch", settings.heads, "source", "source")
            graph.output(f"self_weights.{number}", seen, *axes)
    if encoder.norm is not None:
        features = graph.norm(features, encoder.norm)
    graph.output("memory", features, "batch", "source", settings.model_dim)
    for number, layer in enumerate(decoder.layers):
        attention = layer.cross_attention
        axes = ("batch", attention.groups, "source", attention.query_dim // attention.heads)
        split = graph.projected(attention, features, "kv")
        for name, part in zip(("keys", "values"), split, strict=True):
            graph.output(f"memory_{name}.{number}", part, *axes)
    return graph.model()


@torch.no_grad()
def decoder_graph(
    model: Translator[Any],
    settings: TransformerSettings,
    *,
    weights: bool = False,
    int8: bool = False,
) -> onnx.ModelProto:
    """Return the graph of one step of the decoder.

    Inputs: `tokens` [batch], `position` (one number), `mask` and `memory_*.N` of the encoder, and
    `past_keys.N`, `past_values.N` [batch, heads, past, head_dim], with no rows before the first
    step (`past_cell.N` [batch, model_dim], zeros at first, for SSRU). Outputs: `logits`
    [batch, vocab], the past for the next step as `keys.N`, `values.N` or `cell.N`, and on request
    `self_weights.N` and `cross_weights.N`.
    """
    decoder: Any = model.decoder
    graph = LayerGraph("decoder", settings, int8=int8)
    tokens = graph.input("tokens", IDS, "batch")
    graph.position = graph.input("position", IDS)
    padding = graph.padding(graph.input("mask", TRUTHS, "batch", "source"))
    features = graph.embedded(graph("Unsqueeze", tokens, graph.numbers(1)), decoder.embedded)
    table = graph.by_distance(decoder)
    for number, layer in enumerate(decoder.layers):
        inputs = graph.enter(layer.self_residual, features)
        if isinstance(layer.self_attention, parts.RecurrentUnit):
            change = _recurrent(graph, layer.self_attention, inputs, number)
        else:
            change = _looking_back(graph, layer.self_attention, inputs, number, table, weights)
        features = graph.residual(layer.self_residual, features, change)
        attention = layer.cross_attention
        axes = ("batch", attention.groups, "source", attention.query_dim // attention.heads)
        memory = [
            graph.input(f"memory_{name}.{number}", FLOATS, *axes) for name in ("keys", "values")
        ]
        inputs = graph.enter(layer.cross_residual, features)
        (query,) = graph.projected(attention, inputs, "q")
        change, seen = graph.attended(attention, [query, *memory], [padding])
        if weights:
            graph.output(f"cross_weights.{number}", seen, "batch", settings.heads, 1, "source")
        features = graph.residual(layer.cross_residual, features, change)
        inputs = graph.enter(layer.feed_forward_residual, features)
        change = graph.feed_forward(inputs, layer.feed_forward)
        features = graph.residual(layer.feed_forward_residual, features, change)
    if decoder.norm is not None:
        features = graph.norm(features, decoder.norm)
    if decoder.output_scale != 1:
        features = graph("Mul", features, graph.number(decoder.output_scale))
    features = graph("Squeeze", features, graph.numbers(1))
    logits = graph.projected_words(features, model.projection)
    graph.output("logits", logits, "batch", model.projection.out_features)
    return graph.model()


def _looking_back(
    graph: LayerGraph,
    attention: MultiHeadAttention,
    inputs: str,
    number: int,
    table: str | None,
    weights: bool,
) -> str:
    """Add self-attention to the past and the new token; return the change of the features."""
    query, *new = graph.projected(attention, inputs, "qkv")
    head_dim = attention.query_dim // attention.heads
    whole = []
    for name, part in zip(("keys", "values"), new, strict=True):
        axes = ("batch", attention.groups, "past", head_dim)
        past = graph.input(f"past_{name}.{number}", FLOATS, *axes)
        whole.append(graph("Concat", past, part, axis=2))
        graph.output(f"{name}.{number}", whole[-1], "batch", attention.groups, "read", head_dim)
    penalties = []
    if table is not None:  # the last key is at distance 0
        read = graph.size(whole[0], 2)
        distance = graph("Sub", graph.count_to(read), read)
        place = graph("Add", distance, graph.numbers(graph.most))
        found = graph("Gather", table, place, axis=1)
        penalties = [graph("Unsqueeze", found, graph.numbers(1))]
    change, seen = graph.attended(attention, [query, *whole], penalties)
    if weights:
        graph.output(f"self_weights.{number}", seen, "batch", attention.heads, 1, "read")
    return change


def _recurrent(graph: LayerGraph, unit: parts.RecurrentUnit, inputs: str, number: int) -> str:
    """Add a step of SSRU; return the change of the features."""
    width = unit.projection.out_features
    past = graph.input(f"past_cell.{number}", FLOATS, "batch", width)
    forget = graph("Sigmoid", graph.linear(inputs, unit.forget.weight, unit.forget.bias))
    new = graph.linear(inputs, unit.projection.weight, None)
    added = graph("Mul", graph("Sub", graph.number(1.0), forget), new)
    kept = graph("Mul", forget, graph("Unsqueeze", past, graph.numbers(1)))
    cell = graph("Add", kept, added)
    graph.output(f"cell.{number}", graph("Squeeze", cell, graph.numbers(1)), "batch", width)
    return graph("Relu", cell)
