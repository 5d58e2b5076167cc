"""Llama, Qwen2 and Qwen3: decoder-only Transformers with rotary positions and gated networks."""

from __future__ import annotations

from dataclasses import dataclass
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
from regard.exchange.operations import Interleaved, Joined
from regard.exchange.sources import Options, Tensors, write_safetensors
from regard.models.language_model import build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.recipe import validate

PREFIX = "model."
BOTH = ("weight", "bias")
LEFTOVERS = {
    r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq": "rotations, which are computed here",
    r"model\.rotary_emb\.inv_freq": "rotations, which are computed here",
}
ACTIVATIONS = {"silu": "swiglu", "gelu": "geglu", "gelu_pytorch_tanh": "geglu-tanh"}
# What the model code does: the part of our settings that a configuration does not choose.
FIXED: dict[str, Any] = {
    "positions": "rotary",
    "norm": "rms",
    "window": None,
    "experts": 0,
    "pattern": "full",
    "span": None,
    "memory": 0,
    "embedding_norm": False,
}


@dataclass(frozen=True)
class LlamaKind:
    """How one of these architectures differs from the others."""

    model_type: str
    title: str
    model: str
    """The class of `transformers`."""
    attention_biases: str | None = None
    """Which biases attention always has; None where the configuration says."""
    head_norm: bool = False


KINDS = {
    kind.model_type: kind
    for kind in (
        LlamaKind("llama", "Llama", "LlamaForCausalLM"),
        LlamaKind("qwen2", "Qwen2", "Qwen2ForCausalLM", attention_biases="inputs"),
        LlamaKind("qwen3", "Qwen3", "Qwen3ForCausalLM", head_norm=True),
    )
}


def layout(settings: CausalTransformerSettings, *, prefix: str = PREFIX) -> WeightLayout:
    """Return where these models keep their weights."""
    head = settings.head_dim or settings.model_dim // settings.heads
    groups = settings.key_value_heads or settings.heads
    sizes = (settings.heads * head, groups * head, groups * head)
    parts = [f"self_attn.{name}_proj.{{kind}}" for name in "qkv"]
    projection = rule("attention.projection.{kind}", parts, Joined(sizes))
    output = rule("attention.output.{kind}", "self_attn.o_proj.{kind}")
    gates = [f"mlp.{name}_proj.{{kind}}" for name in ("gate", "up")]
    networks = [
        rule("feed_forward.inner.{kind}", gates, Interleaved()),
        rule("feed_forward.outer.{kind}", "mlp.down_proj.{kind}"),
    ]
    layers = [
        *spread([projection], kind=BOTH[:1] if settings.attention_biases == "none" else BOTH),
        *spread([output], kind=BOTH if settings.attention_biases == "all" else BOTH[:1]),
        *spread(networks, kind=BOTH if settings.feed_forward_biases else BOTH[:1]),
        rule("attention_residual.norm.weight", "input_layernorm.weight"),
        rule("feed_forward_residual.norm.weight", "post_attention_layernorm.weight"),
    ]
    if settings.head_norm:
        layers += [
            rule("attention.query_norm.weight", "self_attn.q_norm.weight"),
            rule("attention.key_norm.weight", "self_attn.k_norm.weight"),
        ]
    rules = [
        rule("backbone.embedded.embedding.weight", f"{prefix}embed_tokens.weight"),
        rule("backbone.norm.weight", f"{prefix}norm.weight"),
        *(
            one.inside(f"backbone.layers.{number}.", f"{prefix}layers.{number}.")
            for number in range(settings.layers)
            for one in layers
        ),
    ]
    if settings.tie:
        copies = {"lm_head.weight": f"{prefix}embed_tokens.weight"}
        return WeightLayout(rules=rules, copies=copies, leftovers=LEFTOVERS)
    rules.append(rule("projection.weight", "lm_head.weight"))
    return WeightLayout(rules=rules, leftovers=LEFTOVERS)


def settings_of(options: Options) -> CausalTransformerSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    kind = KINDS[options.get("model_type")]
    options.expect(use_sliding_window=False, pretraining_tp=1)
    biased = options.get("attention_bias", False)
    heads = options.number("num_attention_heads", 32)
    table = FIXED | {
        "layers": options.number("num_hidden_layers", 32),
        "model_dim": options.number("hidden_size", 4096),
        "heads": heads,
        "key_value_heads": options.number("num_key_value_heads", heads),
        "feed_forward": options.number("intermediate_size", 11_008),
        "context": options.number("max_position_embeddings", 2048),
        "norm_epsilon": options.get("rms_norm_eps", 1e-6),
        "activation": options.among("hidden_act", ACTIVATIONS, "silu"),
        "attention_biases": kind.attention_biases or ("all" if biased else "none"),
        "feed_forward_biases": bool(options.get("mlp_bias", False)),
        "head_norm": kind.head_norm,
        "attention_dropout": options.get("attention_dropout", 0.0),
        "tie": bool(options.get("tie_word_embeddings", False)),
        **_rotations(options),
    }
    head_dim = options.get("head_dim")
    if head_dim is not None and options.number("head_dim") * heads != table["model_dim"]:
        table["head_dim"] = head_dim
    options.finish()
    try:
        return validate(table, CausalTransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def _rotations(options: Options) -> dict[str, Any]:
    """Return the settings of the rotations, which older configurations keep in two places."""
    given = options.get("rope_parameters") or options.get("rope_scaling") or {}
    if not isinstance(given, dict):
        options.problems.append(f"rope_parameters = {given!r} (a table is expected)")
        return {}
    if given.get("partial_rotary_factor", options.get("partial_rotary_factor", 1)) != 1:
        options.problems.append("partial_rotary_factor (only whole heads are rotated)")
    kind = given.get("rope_type", given.get("type", "default"))
    found = {"rotary_base": given.get("rope_theta") or options.get("rope_theta", 10_000.0)}
    if kind == "llama3":
        names = {
            "rotary_factor": "factor",
            "rotary_low": "low_freq_factor",
            "rotary_high": "high_freq_factor",
            "rotary_length": "original_max_position_embeddings",
        }
        found |= {ours: given.get(theirs) for ours, theirs in names.items()}
    elif kind != "default":
        options.problems.append(f"rope_type = {kind!r} (known: 'default', 'llama3')")
    return found


def read(options: Options, tensors: Tensors, files: ForeignFiles) -> ForeignModel:
    """Return the model; what is missing, misshapen or different is a RunError that names it."""
    rows = options.number("vocab_size", 32_000)
    numbering = text_ids(options, rows=rows)
    settings = settings_of(options)
    prefix = PREFIX if f"{PREFIX}embed_tokens.weight" in tensors else ""
    said_by, embedding = f"vocab_size in {options.origin}", f"{prefix}embed_tokens.weight"
    require_rows(tensors, embedding, rows, said_by=said_by, origin=files.weights)
    tokenizer = text_tokenizer(options, files, numbering)
    table = layout(settings, prefix=prefix)
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
    """Write a model so that `transformers` loads it."""
    settings = require_llama(parts)
    tokenizer = parts.tokenizers["text"]
    kind = _kind_of(settings)
    tensors = written(parts.model, layout(settings))
    folder.mkdir(parents=True, exist_ok=True)
    special = write_text_tokenizer(tokenizer, folder)
    write_json(folder / CONFIG, config_of(settings, kind, rows=tokenizer.size) | special)
    write_safetensors(folder / WEIGHTS, tensors)


def require_llama(parts: ModelParts) -> CausalTransformerSettings:
    """Return the settings, or raise an error that names all that these models do not have."""
    settings = parts.settings
    if not isinstance(settings, CausalTransformerSettings):
        raise SettingsError("Llama is a Transformer: a recurrent model cannot be written as one.")
    wrong = [
        f"model.{name} = {getattr(settings, name)!r}"
        for name, value in FIXED.items()
        if getattr(settings, name) != value
    ]
    if settings.activation not in ACTIVATIONS.values():
        wrong.append(f"model.activation = {settings.activation!r}")
    if settings.head_norm and settings.attention_biases == "inputs":
        wrong.append("model.head_norm with model.attention_biases = 'inputs'")
    if settings.head_norm and settings.feed_forward_biases:
        wrong.append("model.head_norm with model.feed_forward_biases")
    if settings.attention_biases == "inputs" and settings.feed_forward_biases:
        wrong.append("model.attention_biases = 'inputs' with model.feed_forward_biases")
    if wrong:
        raise SettingsError(
            f"Llama has no {', '.join(wrong)}, so this model cannot be written in its layout."
        )
    return settings


def _kind_of(settings: CausalTransformerSettings) -> LlamaKind:
    if settings.head_norm:
        return KINDS["qwen3"]
    return KINDS["qwen2" if settings.attention_biases == "inputs" else "llama"]


def config_of(settings: CausalTransformerSettings, kind: LlamaKind, *, rows: int) -> dict[str, Any]:
    """Return the configuration of a model."""
    rotations: dict[str, Any] = {"rope_theta": settings.rotary_base, "rope_type": "default"}
    if settings.rotary_factor != 1:
        rotations |= {
            "rope_type": "llama3",
            "factor": settings.rotary_factor,
            "low_freq_factor": settings.rotary_low,
            "high_freq_factor": settings.rotary_high,
            "original_max_position_embeddings": settings.rotary_length,
        }
    head_dim = settings.head_dim or settings.model_dim // settings.heads
    activations = {ours: theirs for theirs, ours in ACTIVATIONS.items()}
    return {
        "model_type": kind.model_type,
        "architectures": [kind.model],
        "vocab_size": rows,
        "hidden_size": settings.model_dim,
        "intermediate_size": settings.feed_forward or 4 * settings.model_dim,
        "num_hidden_layers": settings.layers,
        "num_attention_heads": settings.heads,
        "num_key_value_heads": settings.key_value_heads or settings.heads,
        "head_dim": head_dim,
        "hidden_act": activations[settings.activation],
        "max_position_embeddings": settings.context,
        "rms_norm_eps": 1e-6 if settings.norm_epsilon is None else settings.norm_epsilon,
        "rope_parameters": rotations,
        "rope_theta": settings.rotary_base,
        "attention_bias": settings.attention_biases == "all",
        "mlp_bias": settings.feed_forward_biases,
        "attention_dropout": settings.attention_dropout,
        "tie_word_embeddings": settings.tie,
    }


ARCHITECTURE = Architecture(read=read, write=write)
