"""T5, in its first version and from 1.1 on: relative biases, no scale, no biases, RMS norms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.exchange.formats import ForeignFiles, ForeignModel, ModelParts
from regard.exchange.hugging_face import CONFIG, WEIGHTS, Architecture, search_settings
from regard.exchange.hugging_face.tokenizers import (
    pair_ids,
    pair_tokenizers,
    write_pair_tokenizers,
)
from regard.exchange.layout import Rule, WeightLayout, built, fill, require_rows, rule, written
from regard.exchange.operations import Constant, Interleaved, Joined, Selected
from regard.exchange.sources import Options, Tensors, write_safetensors
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.text.imported import Numbering

SHARED = "shared.weight"
BIAS_TABLE = "{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "silu": "swish",
    "gated-gelu": "geglu-tanh",
    "gated-silu": "swiglu",
}
GATED = ("geglu-tanh", "swiglu")
FIXED: dict[str, Any] = {
    "encoder": "attention",
    "decoder": "attention",
    "norm_placement": "pre",
    "norm": "rms",
    "positions": "bucketed",
    "kernel": "softmax",
    "score": "dot",
    "window": None,
    "encoder_window": None,
    "experts": 0,
    "pattern": "full",
    "span": None,
    "key_value_heads": None,
    "head_norm": False,
    "embedding_norm": False,
    "attention_biases": "none",
    "feed_forward_biases": False,
    "scaled_embeddings": False,
}
LEFTOVERS = {
    r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight": (
        "a bias of cross-attention that no version of the code reads"
    ),
}


def _attention(ours: str, residual: str, layer: int, name: str) -> list[Rule]:
    parts = [f"layer.{layer}.{name}.{part}.weight" for part in "qkv"]
    return [
        rule(f"{ours}.projection.weight", parts, Joined(3)),
        rule(f"{ours}.output.weight", f"layer.{layer}.{name}.o.weight"),
        rule(f"{residual}.norm.weight", f"layer.{layer}.layer_norm.weight"),
    ]


def _feed_forward(layer: int, *, gated: bool) -> list[Rule]:
    place = f"layer.{layer}.DenseReluDense"
    inner = (
        rule("feed_forward.inner.weight", [f"{place}.wi_{n}.weight" for n in (0, 1)], Interleaved())
        if gated
        else rule("feed_forward.inner.weight", f"{place}.wi.weight")
    )
    return [
        inner,
        rule("feed_forward.outer.weight", f"{place}.wo.weight"),
        rule("feed_forward_residual.norm.weight", f"layer.{layer}.layer_norm.weight"),
    ]


def layout(settings: TransformerSettings, target: Numbering) -> WeightLayout:
    """Return where T5 keeps its weights."""
    gated = settings.activation in GATED
    tables = {
        "encoder": [
            *_attention("attention", "attention_residual", 0, "SelfAttention"),
            *_feed_forward(1, gated=gated),
        ],
        "decoder": [
            *_attention("self_attention", "self_residual", 0, "SelfAttention"),
            *_attention("cross_attention", "cross_residual", 1, "EncDecAttention"),
            *_feed_forward(2, gated=gated),
        ],
    }
    depths = {"encoder": settings.layers, "decoder": settings.decoder_layers or settings.layers}
    rules = [
        one.inside(f"{stack}.layers.{number}.", f"{stack}.block.{number}.")
        for stack, depth in depths.items()
        for number in range(depth)
        for one in tables[stack]
    ]
    for stack in depths:
        rules.append(rule(f"{stack}.norm.weight", f"{stack}.final_layer_norm.weight"))
        rules.append(rule(f"{stack}.distance_bias.table", BIAS_TABLE.format(stack=stack)))
    inputs = Selected(target.theirs, target.size)
    rules.append(rule("encoder.embedded.embedding.weight", SHARED, inputs))
    copies = {f"{stack}.embed_tokens.weight": SHARED for stack in depths}
    if settings.tie == "all":
        copies["lm_head.weight"] = SHARED
    else:
        output = Selected(target.chosen, target.size)
        rules.append(rule("projection.weight", "lm_head.weight", output))
    rules.append(rule("projection.bias", (), Constant(never=target.never)))
    return WeightLayout(rules=rules, copies=copies, leftovers=LEFTOVERS)


def settings_of(options: Options) -> TransformerSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    tied = bool(options.get("tie_word_embeddings", True))
    layers = options.number("num_layers", 6)
    table = FIXED | {
        "layers": layers,
        "decoder_layers": options.number("num_decoder_layers", layers),
        "model_dim": options.number("d_model", 512),
        "heads": options.number("num_heads", 8),
        "head_dim": options.number("d_kv", 64),
        "feed_forward": options.number("d_ff", 2048),
        "activation": options.among("feed_forward_proj", ACTIVATIONS, "relu"),
        "buckets": options.number("relative_attention_num_buckets", 32),
        "bucket_reach": options.number("relative_attention_max_distance", 128),
        "norm_epsilon": options.get("layer_norm_epsilon", 1e-6),
        "dropout": options.get("dropout_rate", 0.1),
        "tie": "all" if tied else "inputs",
        "scaled_output": bool(options.get("scale_decoder_outputs", tied)),
        "output_bias": True,
    }
    options.finish()
    try:
        return validate(table, TransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def read(options: Options, tensors: Tensors, files: ForeignFiles) -> ForeignModel:
    """Return the model with its tokenizer, which is one for source and target."""
    rows = options.number("vocab_size", 32_128)
    numbering = pair_ids(options, rows=rows)
    settings = settings_of(options)
    said_by = f"vocab_size in {options.origin}"
    require_rows(tensors, SHARED, rows, said_by=said_by, origin=files.weights)
    source, target = pair_tokenizers(options, files, numbering)
    table = layout(settings, target.numbering)
    model = built(
        lambda: build_translator(settings, source_vocab=source.size, target_vocab=target.size),
        tensors,
        origin=files.weights,
    )
    leftovers = fill(model, table, tensors, origin=files.weights)
    return ForeignModel(
        task="translate",
        model=model.eval(),
        settings=settings,
        tokenizers={"source": source, "target": target},
        layout=table,
        recipe={
            "tokenizer": {"kind": "imported", "shared": True},
            "decoding": search_settings(options),
        },
        leftovers=leftovers,
    )


def write(parts: ModelParts, folder: Path) -> None:
    """Write an imported model so that `transformers` loads it, with the ids that it had."""
    settings, target = parts.settings, parts.tokenizers["target"]
    numbering: Any = getattr(target, "numbering", None)
    if not fits(settings) or numbering is None or not isinstance(settings, TransformerSettings):
        raise SettingsError("T5 has not these settings, so this model cannot be written as one.")
    tensors = written(parts.model, layout(settings, numbering))
    folder.mkdir(parents=True, exist_ok=True)
    source = parts.tokenizers["source"]
    marks = write_pair_tokenizers(source, target, folder, model_type="t5")
    write_json(folder / CONFIG, config_of(settings, rows=numbering.size) | marks)
    write_safetensors(folder / WEIGHTS, tensors)


def fits(settings: object) -> bool:
    """Return whether T5 has these settings."""
    return (
        isinstance(settings, TransformerSettings)
        and settings.activation in ACTIVATIONS.values()
        and settings.tie in ("all", "inputs")
        and settings.output_bias
        and all(getattr(settings, name) == value for name, value in FIXED.items())
    )


def config_of(settings: TransformerSettings, *, rows: int) -> dict[str, Any]:
    """Return the configuration of a model."""
    activations = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    return {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "is_encoder_decoder": True,
        "vocab_size": rows,
        "d_model": settings.model_dim,
        "d_kv": settings.head_dim or settings.model_dim // settings.heads,
        "d_ff": settings.feed_forward,
        "num_layers": settings.layers,
        "num_decoder_layers": settings.decoder_layers or settings.layers,
        "num_heads": settings.heads,
        "relative_attention_num_buckets": settings.buckets,
        "relative_attention_max_distance": settings.bucket_reach,
        "dropout_rate": settings.dropout,
        "layer_norm_epsilon": settings.norm_epsilon or 1e-6,
        "feed_forward_proj": activations[settings.activation],
        "tie_word_embeddings": settings.tie == "all",
        "scale_decoder_outputs": settings.scaled_output,
    }


ARCHITECTURE = Architecture(read=read, write=write)
