"""BERT: an encoder that was trained to guess hidden tokens (`BertForMaskedLM`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.exchange.formats import ForeignFiles, ForeignModel, ModelParts
from regard.exchange.hugging_face import CONFIG, WEIGHTS, Architecture
from regard.exchange.hugging_face.tokenizers import (
    text_ids,
    text_tokenizer,
    write_text_tokenizer,
)
from regard.exchange.layout import (
    WeightLayout,
    built,
    fill,
    require_rows,
    rule,
    spread,
    written,
)
from regard.exchange.operations import Joined
from regard.exchange.sources import Options, Tensors, write_safetensors
from regard.models.language_model import build_language_model
from regard.settings.language_models import BidirectionalSettings
from regard.settings.recipe import validate

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "swish",
}
FIXED: dict[str, Any] = {
    "positions": "learned",
    "norm": "layer",
    "norm_placement": "post",
    "embedding_norm": True,
    "window": None,
    "experts": 0,
    "pattern": "full",
    "span": None,
    "head_dim": None,
    "key_value_heads": None,
    "head_norm": False,
    "attention_biases": "all",
    "feed_forward_biases": True,
    "learned_offset": 0,
}
LEFTOVERS = {
    r"bert\.embeddings\.position_ids": "the numbers 0, 1, 2 ...",
    r"bert\.pooler\.dense\.(weight|bias)": "a layer for whole texts, which guesses do not use",
    r"cls\.seq_relationship\.(weight|bias)": "a layer that tells whether two sentences follow",
}
WORDS = "bert.embeddings.word_embeddings.weight"
PARTS = [f"attention.self.{name}.{{kind}}" for name in ("query", "key", "value")]
LAYER = (
    rule("attention.projection.{kind}", PARTS, Joined(3)),
    rule("attention.output.{kind}", "attention.output.dense.{kind}"),
    rule("attention_residual.norm.{kind}", "attention.output.LayerNorm.{kind}"),
    rule("feed_forward.inner.{kind}", "intermediate.dense.{kind}"),
    rule("feed_forward.outer.{kind}", "output.dense.{kind}"),
    rule("feed_forward_residual.norm.{kind}", "output.LayerNorm.{kind}"),
)


def layout(settings: BidirectionalSettings) -> WeightLayout:
    """Return where BERT keeps its weights."""
    embedded, guess = "backbone.embedded", "cls.predictions"
    layers = [
        one.inside(f"backbone.layers.{number}.", f"bert.encoder.layer.{number}.")
        for number in range(settings.layers)
        for one in LAYER
    ]
    norms = [
        rule(f"{embedded}.norm.{{kind}}", "bert.embeddings.LayerNorm.{kind}"),
        rule("transform.linear.{kind}", f"{guess}.transform.dense.{{kind}}"),
        rule("transform.norm.{kind}", f"{guess}.transform.LayerNorm.{{kind}}"),
    ]
    rules = [
        *spread([*layers, *norms], kind=("weight", "bias")),
        rule(f"{embedded}.embedding.weight", WORDS),
        rule(f"{embedded}.positions.vectors", "bert.embeddings.position_embeddings.weight"),
        rule(f"{embedded}.segments", "bert.embeddings.token_type_embeddings.weight"),
        rule("projection.bias", f"{guess}.bias"),
    ]
    copies = {f"{guess}.decoder.bias": f"{guess}.bias"}
    if settings.tie:
        copies[f"{guess}.decoder.weight"] = WORDS
    else:
        rules.append(rule("projection.weight", f"{guess}.decoder.weight"))
    return WeightLayout(rules=rules, copies=copies, leftovers=LEFTOVERS)


def settings_of(options: Options) -> BidirectionalSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    options.expect(position_embedding_type="absolute", is_decoder=False, add_cross_attention=False)
    table = FIXED | {
        "family": "bidirectional",
        "layers": options.number("num_hidden_layers", 12),
        "model_dim": options.number("hidden_size", 768),
        "heads": options.number("num_attention_heads", 12),
        "feed_forward": options.number("intermediate_size", 3072),
        "context": options.number("max_position_embeddings", 512),
        "activation": options.among("hidden_act", ACTIVATIONS, "gelu"),
        "norm_epsilon": options.get("layer_norm_eps", 1e-12),
        "segments": options.number("type_vocab_size", 2),
        "dropout": options.get("hidden_dropout_prob", 0.1),
        "attention_dropout": options.get("attention_probs_dropout_prob", 0.1),
        "tie": bool(options.get("tie_word_embeddings", True)),
    }
    options.finish()
    try:
        return validate(table, BidirectionalSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def read(options: Options, tensors: Tensors, files: ForeignFiles) -> ForeignModel:
    """Return the model, whose texts begin with [CLS]."""
    rows = options.number("vocab_size", 30_522)
    numbering = text_ids(options, rows=rows)
    settings = settings_of(options)
    said_by = f"vocab_size in {options.origin}"
    require_rows(tensors, WORDS, rows, said_by=said_by, origin=files.weights)
    tokenizer = text_tokenizer(options, files, numbering, closed=True)
    mark = tokenizer.splitter.find("[MASK]")
    settings = settings.model_copy(update={"mask_token": mark})
    if "cls.predictions.bias" not in tensors:
        raise RunError(
            f"{files.weights} has no layer that guesses hidden tokens (cls.predictions): import a "
            "BertForMaskedLM or BertForPreTraining."
        )
    table = layout(settings)
    model = built(lambda: build_language_model(settings, vocab=rows), tensors, origin=files.weights)
    leftovers = fill(model, table, tensors, origin=files.weights)
    return ForeignModel(
        task="language-model",
        model=model.eval(),
        settings=settings,
        tokenizers={"text": tokenizer},
        layout=table,
        recipe={"tokenizer": {"kind": "imported"}},
        leftovers=leftovers,
    )


def write(parts: ModelParts, folder: Path) -> None:
    """Write a model so that `transformers` loads it as BertForMaskedLM."""
    settings, tokenizer = parts.settings, parts.tokenizers["text"]
    if not isinstance(settings, BidirectionalSettings):
        raise SettingsError('BERT reads both ways: model.family = "bidirectional" is needed.')
    wrong = [
        f"model.{name} = {getattr(settings, name)!r}"
        for name, value in FIXED.items()
        if getattr(settings, name) != value
    ]
    if not settings.segments:
        wrong.append("model.segments = 0")
    if settings.activation not in ACTIVATIONS.values():
        wrong.append(f"model.activation = {settings.activation!r}")
    if wrong:
        raise SettingsError(
            f"BERT has no {', '.join(wrong)}, so this model cannot be written in its layout."
        )
    tensors = written(parts.model, layout(settings))
    folder.mkdir(parents=True, exist_ok=True)
    special = write_text_tokenizer(tokenizer, folder)
    write_json(folder / CONFIG, config_of(settings, rows=tokenizer.size) | special)
    write_safetensors(folder / WEIGHTS, tensors)


def config_of(settings: BidirectionalSettings, *, rows: int) -> dict[str, Any]:
    """Return the configuration of a model."""
    activations = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    return {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "vocab_size": rows,
        "hidden_size": settings.model_dim,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "intermediate_size": settings.feed_forward or 4 * settings.model_dim,
        "hidden_act": activations[settings.activation],
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.attention_dropout,
        "max_position_embeddings": settings.context,
        "type_vocab_size": settings.segments,
        "layer_norm_eps": 1e-5 if settings.norm_epsilon is None else settings.norm_epsilon,
        "tie_word_embeddings": settings.tie,
    }


ARCHITECTURE = Architecture(read=read, write=write)
