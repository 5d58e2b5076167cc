"""The trace of a sentence through a translator: every value, with its formula."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from regard.attention.probe import Probe, Recorder
from regard.base.errors import RegardError
from regard.base.shapes import Tensor
from regard.base.special_tokens import BEGIN, END, SPECIALS
from regard.batching.batch import padded
from regard.compute.device import beside, placed
from regard.decoding.search import length_limits
from regard.models.build import build_translator
from regard.models.inspection import Trace, TracedArray, join_calls, recorded, traced_parts
from regard.models.layer_traces import (
    Sides,
    attention_arrays,
    feed_forward_arrays,
    gate_arrays,
    lookup_arrays,
)
from regard.models.translator import Translator
from regard.recurrent.decoders import BahdanauDecoder, LuongDecoder
from regard.recurrent.encoder import RecurrentEncoder
from regard.tasks.attention import END_MARK
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.settings import TranslationRecipe
from regard.text.tokenizers import train_tokenizer
from regard.transformer.decoder import TransformerDecoder
from regard.transformer.encoder import TransformerEncoder


def trace_translator(
    loaded: LoadedTranslator, text: str, *, target: Sequence[int] | None = None
) -> Trace:
    """Trace a sentence: the source is read once, then the most probable tokens are written.

    With a `target`, its tokens are written, end mark included.
    """
    _require_text(text)
    ids = loaded.source_tokenizer.encode(text)
    source, mask = beside(loaded.model, padded([ids], after=END))
    limits = length_limits(
        mask.sum(dim=1),
        ratio=loaded.recipe.decoding.max_ratio,
        extra=loaded.recipe.decoding.max_extra,
    )
    model: Any = loaded.model
    model.eval()
    with torch.no_grad(), recorded(model) as outputs:
        encoded = model.encode(source, mask)
        limit = int(limits[0]) if target is None else len(target)
        tokens, steps, states = _write(model, encoded, limit=limit, target=target)
    scores = _scores(outputs)
    written = loaded.target_tokenizer.pieces([token for token in tokens if token != END])
    given = {
        "embedding": _output_of(outputs, "encoder.embedding"),
        "encoder_state": encoded.memory[0],
        "target_embedding": _output_of(outputs, "decoder.embedding"),
        "decoder_state": torch.stack(states) if states else None,
        "score": scores,
        "weight": _stacked([step.weights for step in steps]),
        "context": _output_of(outputs, "decoder.lookup.context"),
        "probability": torch.cat([torch.softmax(step.logits, dim=-1) for step in steps]),
    }
    heads = scores is not None and scores.dim() == 3
    axes = {**TRANSLATION_AXES, **({"score": ("target", "head", "source")} if heads else {})}
    formulas = translation_formulas(model, heads=heads)
    arrays = [
        TracedArray(name, axes[name], value.cpu().numpy(), formulas[name])
        for name, value in given.items()
        if value is not None
    ]
    ended = tokens[-1] == END
    return Trace(
        family="translator",
        source=text,
        output=loaded.target_tokenizer.decode([token for token in tokens if token != END]),
        arrays=arrays,
        labels={
            "source": [*loaded.source_tokenizer.pieces(ids), END_MARK],
            "target": [*written, END_MARK] if ended else written,
            "vocab": _names(loaded),
            "read": [SPECIALS[BEGIN], *written][: len(tokens)],
        },
        parts=traced_parts(outputs),
        inside=_inside(model, source, mask, tokens),
    )


@torch.no_grad()
def _inside(model: Any, source: Tensor, mask: Tensor, tokens: list[int]) -> list[TracedArray]:
    """Return what happens inside each layer, in one pass over what was written."""
    recorder = Recorder()
    read = torch.tensor([[BEGIN, *tokens[:-1]]], device=source.device)
    try:
        model(source, mask, read, probe=Probe(recorder))
    except TypeError:  # a network of the user's own, which knows no probe
        return []
    encoder, decoder, found = model.encoder, model.decoder, []
    if isinstance(encoder, TransformerEncoder):
        for number, layer in enumerate(encoder.layers):
            sides = Sides("source", "source")
            found += attention_arrays(recorder, layer, "encoder", number, sides)
            found += feed_forward_arrays(recorder, layer, "encoder", number, "source")
    elif isinstance(encoder, RecurrentEncoder):
        embedded = encoder.embedding(source)[0]
        if encoder.first is not None:
            start = encoder.first.zero_state(1)
            found += gate_arrays(
                encoder.first, embedded, start, name="encoder.first", axis="source"
            )
            embedded = encoder.first.read_packed(embedded[None], mask.sum(dim=1))[0][0]
        start = encoder.stack.zero_state(1)
        found += gate_arrays(encoder.stack, embedded, start, name="encoder", axis="source")
    if isinstance(decoder, TransformerDecoder):
        for number, layer in enumerate(decoder.layers):
            for part, sides in (
                ("decoder", Sides("target", "read")),
                ("cross", Sides("target", "source", "R")),
            ):
                found += attention_arrays(recorder, layer, part, number, sides)
            found += feed_forward_arrays(recorder, layer, "decoder", number, "target")
    elif isinstance(decoder, LuongDecoder | BahdanauDecoder):
        found += _decoder_gates(model, recorder, source, mask, read)
        if decoder.lookup is not None:
            memory = model.encode(source, mask).memory
            query = decoder.formulas()["query"]
            found += lookup_arrays(recorder, decoder.lookup.score, memory, query=query)
    return found


def _decoder_gates(
    model: Any, recorder: Recorder, source: Tensor, mask: Tensor, read: Tensor
) -> list[TracedArray]:
    """Return the gates of a recurrent decoder, which reads contexts or features with its tokens."""
    decoder = model.decoder
    state = model.start(model.encode(source, mask))
    inputs = decoder.embedding(read)[0]
    if isinstance(decoder, BahdanauDecoder):
        if decoder.lookup is None:
            late = state.handed.expand(len(inputs), -1)
        else:
            contexts = recorder.values["cross", 0, "context"]
            late = torch.cat([each.transpose(1, 2).flatten(2)[0] for each in contexts])
        inputs = torch.cat([inputs, late], dim=-1)
    elif decoder.input_feeding:
        features = decoder(read, state)[0].features[0]
        fed = torch.cat([torch.zeros_like(features[:1]), features[:-1]])
        inputs = torch.cat([inputs, fed], dim=-1)
    return gate_arrays(decoder.stack, inputs, state.cells, name="decoder", axis="target")


def _write(
    model: Any, encoded: Any, *, limit: int, target: Sequence[int] | None
) -> tuple[list[int], list[Any], list[Tensor]]:
    """Write a target, or greedily to the end mark; return tokens, steps and recurrent states."""
    state, here = model.start(encoded), encoded.memory.device
    token = BEGIN
    tokens: list[int] = []
    steps: list[Any] = []
    states: list[Tensor] = []
    while token != END and len(tokens) < limit:
        step = model.step(torch.tensor([token], device=here), state, with_weights=True)
        state = step.state
        token = int(step.logits[0].argmax()) if target is None else target[len(tokens)]
        tokens.append(token)
        steps.append(step)
        if hasattr(state, "cells"):  # a Transformer's state is a cache instead
            states.append(state.cells[0][-1, 0])
    return tokens, steps, states


def untrained(recipe: TranslationRecipe, text: str) -> LoadedTranslator:
    """Return an untrained translator, whose vocabulary is what the text itself has."""
    _require_text(text)
    kind = "word" if recipe.tokenizer.kind == "word" else "character"
    tokenizer = train_tokenizer([text], kind=kind)  # type: ignore[arg-type]
    torch.manual_seed(recipe.training.seed)
    model = build_translator(recipe.model, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    return LoadedTranslator(
        model=placed(model), source_tokenizer=tokenizer, target_tokenizer=tokenizer, recipe=recipe
    )


def _require_text(text: str) -> None:
    if not text.strip():
        raise RegardError("There is nothing to trace: the text is empty.")


def _names(loaded: LoadedTranslator) -> list[str]:
    """Return every entry of the target vocabulary as a person reads it."""
    tokenizer = loaded.target_tokenizer
    return [*SPECIALS, *tokenizer.pieces(list(range(len(SPECIALS), tokenizer.size)))]


def _output_of(outputs: Mapping[str, list[Tensor]], name: str) -> Tensor | None:
    return join_calls(outputs[name])[0][0] if name in outputs else None


def _scores(outputs: Mapping[str, list[Tensor]]) -> Tensor | None:
    """Return the scores of every step as [target, source], or as [target, heads, source]."""
    calls = outputs.get("decoder.lookup.score")
    if calls is None:
        return None
    steps = torch.cat(calls, dim=-2)[0]  # [*heads, target, source]
    return steps.transpose(0, 1) if steps.dim() == 3 else steps


def _stacked(weights: list[Tensor | None]) -> Tensor | None:
    rows = [row for row in weights if row is not None]
    return torch.cat(rows) if rows else None


TRANSLATION_AXES = {
    "embedding": ("source", "embedding"),
    "encoder_state": ("source", "hidden"),
    "target_embedding": ("target", "embedding"),
    "decoder_state": ("target", "hidden"),
    "score": ("target", "source"),
    "weight": ("target", "source"),
    "context": ("target", "hidden"),
    "probability": ("target", "vocab"),
}


def translation_formulas(model: Translator[Any], *, heads: bool) -> dict[str, str]:
    """Return the formula of every value on the way through this model."""
    decoder: Any = model.decoder
    found = {
        "embedding": "x_j",
        "encoder_state": "h_j",
        "target_embedding": "y_{i-1}",
        "decoder_state": "s_i",
        "weight": "alpha_ij, mean of the heads of one layer",
        "probability": "p(y_i | y_<i, x)",
    }
    if not isinstance(decoder, LuongDecoder | BahdanauDecoder):
        return found
    step = decoder.formulas()
    bias = "" if model.projection.bias is None else " + b"
    found["decoder_state"] = step["decoder_state"]
    found["probability"] += f" = softmax(W^o {step['features']}{bias})"
    if decoder.lookup is None:
        return found
    score = decoder.lookup.score
    weight, context = "alpha_ij = softmax_j(e_ij)", f"c_i = sum_j alpha_ij {score.value_formula}"
    if heads:
        weight = "alpha_ij = mean_m softmax_j(e_mij)"
        context = f"c_i = [c_1i; c_2i; ...], c_mi = sum_j softmax_j(e_mij) {score.value_formula}"
    formula = score.formula.format(s=step["query"])
    return found | {"score": formula, "weight": weight, "context": context}
