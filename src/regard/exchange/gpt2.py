"""GPT-2 in the layout of Hugging Face: config.json, model.safetensors, vocab.json, merges.txt."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.base.shapes import Tensor
from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.models import CausalTransformerSettings
from regard.settings.recipe import validate
from regard.text.byte_bpe import ByteBpeTokenizer

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
VOCABULARY, MERGES = "vocab.json", "merges.txt"
PREFIX = "transformer."

# Ours to theirs.
PARTS = {
    "backbone.embedded.embedding": "wte",
    "backbone.embedded.positions": "wpe",
    "backbone.norm": "ln_f",
    "projection": "lm_head",
}
LAYER_PARTS = {
    "attention_residual.norm": "ln_1",
    "attention.projection": "attn.c_attn",
    "attention.output": "attn.c_proj",
    "feed_forward_residual.norm": "ln_2",
    "feed_forward.inner": "mlp.c_fc",
    "feed_forward.outer": "mlp.c_proj",
}
ACTIVATIONS = {
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "swish",
}
# Values that a configuration must have, if it has these keys.
EXPECTED = {
    "model_type": "gpt2",
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}


class Gpt2(NamedTuple):
    """A GPT-2 model with its settings and its tokenizer."""

    model: LanguageModel[Any]
    settings: CausalTransformerSettings
    tokenizer: ByteBpeTokenizer


def read_gpt2(folder: Path) -> Gpt2:
    """Read a GPT-2 model; what is missing, misshapen or different is a RunError that names it."""
    if not folder.is_dir():
        raise RunError(f"There is no folder {folder}.")
    config = _read_config(folder / CONFIG)
    tokenizer = ByteBpeTokenizer.read_files(folder / VOCABULARY, folder / MERGES)
    settings = _settings_of(config, path=folder / CONFIG)
    rows = config.get("vocab_size", 50_257)
    if rows < tokenizer.size:
        raise RunError(
            f"{folder / VOCABULARY} has {tokenizer.size} entries, but the model has rows for "
            f"{rows} only: the files belong to different models."
        )
    model = build_language_model(settings, vocab=tokenizer.size)
    _fill(model, _read_tensors(folder), path=folder / WEIGHTS)
    return Gpt2(model.eval(), settings, tokenizer)


def write_gpt2(found: Gpt2, folder: Path) -> None:
    """Write a model so that `transformers` loads it."""
    config = config_of(found)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, config)
    tensors = {}
    for name, parameter in found.model.named_parameters():
        theirs = name_of(name)
        prefix = "" if theirs.startswith("lm_head") else PREFIX
        tensors[prefix + theirs] = _transposed(name, parameter.detach()).contiguous()
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    found.tokenizer.write_files(folder / VOCABULARY, folder / MERGES)


def config_of(found: Gpt2) -> dict[str, Any]:
    """Return a model's configuration; raise an error for a setting that GPT-2 does not have."""
    settings = found.settings
    activations = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    for name, fits in {
        "positions": settings.positions == "learned",
        "norm": settings.norm == "layer",
        "activation": settings.activation in activations,
        "window": settings.window is None,
    }.items():
        if not fits:
            raise SettingsError(
                f"GPT-2 has no model.{name} = {getattr(settings, name)!r}, so this model cannot "
                "be written in its layout."
            )
    return EXPECTED | {
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": found.tokenizer.size,
        "n_positions": settings.context,
        "n_embd": settings.model_dim,
        "n_layer": settings.layers,
        "n_head": settings.heads,
        "n_inner": settings.feed_forward,
        "activation_function": activations[settings.activation],
        "resid_pdrop": settings.dropout,
        "embd_pdrop": settings.dropout,
        "attn_pdrop": settings.attention_dropout,
        "tie_word_embeddings": settings.tie,
        "bos_token_id": found.tokenizer.end,
        "eos_token_id": found.tokenizer.end,
    }


def name_of(ours: str) -> str:
    """Return GPT-2's name of a parameter."""
    part, _, kind = ours.rpartition(".")
    if part.startswith("backbone.layers."):
        number, _, inner = part.removeprefix("backbone.layers.").partition(".")
        return f"h.{number}.{LAYER_PARTS[inner]}.{kind}"
    return f"{PARTS[part]}.{'weight' if kind == 'vectors' else kind}"


def _settings_of(config: Mapping[str, Any], *, path: Path) -> CausalTransformerSettings:
    for name, expected in EXPECTED.items():
        if config.get(name, expected) != expected:
            raise RunError(
                f"{path}: {name} is {config[name]!r}, and only {expected!r} can be imported."
            )
    activation = config.get("activation_function", "gelu_new")
    if activation not in ACTIVATIONS:
        raise RunError(f"{path}: activation_function {activation!r} is not known here.")
    table = {
        "layers": config.get("n_layer", 12),
        "model_dim": config.get("n_embd", 768),
        "heads": config.get("n_head", 12),
        "feed_forward": config.get("n_inner"),
        "context": config.get("n_positions", 1024),
        "activation": ACTIVATIONS[activation],
        "dropout": config.get("resid_pdrop", 0.1),
        "attention_dropout": config.get("attn_pdrop", 0.1),
        "tie": config.get("tie_word_embeddings", True),
    }
    try:
        return validate(table, CausalTransformerSettings, origin=str(path))
    except SettingsError as error:
        raise RunError(str(error)) from None


@torch.no_grad()
def _fill(model: LanguageModel[Any], tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Copy the tensors into the model; extra rows of an embedding table are ignored."""
    for ours, parameter in model.named_parameters():
        theirs = name_of(ours)
        # Some files hold the bare model, others the one with the output on top.
        found = tensors.get(theirs, tensors.get(PREFIX + theirs))
        if found is None:
            raise RunError(f"{path} has no tensor {theirs!r}.")
        wanted = _transposed(ours, parameter)
        if theirs in ("wte.weight", "lm_head.weight") and len(found) > len(wanted):
            found = found[: len(wanted)]
        if found.shape != wanted.shape:
            raise RunError(
                f"{path}: tensor {theirs!r} has shape {tuple(found.shape)}, but {CONFIG} describes "
                f"{tuple(wanted.shape)}."
            )
        wanted.copy_(found)


def _transposed(ours: str, tensor: Tensor) -> Tensor:
    """Return a matrix as GPT-2 has it: those of its layers are [from, to], not [to, from]."""
    return tensor.T if ours.startswith("backbone.layers.") and tensor.dim() == 2 else tensor


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise RunError(f"{path} is cut short or is not JSON.") from None
    if not isinstance(config, dict):
        raise RunError(f"{path} does not describe a model.")
    return config


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    """Read the weights from one file, or from the several that an index names."""
    files = [WEIGHTS]
    if not (folder / WEIGHTS).exists() and (folder / INDEX).exists():
        files = sorted(set(_read_config(folder / INDEX).get("weight_map", {}).values()))
    tensors: dict[str, Tensor] = {}
    for file in files:
        path = folder / file
        if not path.exists():
            raise RunError(
                f"{path} is missing. Only safetensors are read, never pickle: save the model "
                "with `save_pretrained(folder, safe_serialization=True)` where it was made."
            )
        try:
            tensors |= load_file(path)
        except (OSError, SafetensorError):
            raise RunError(f"{path} is damaged (was it cut short?).") from None
    return tensors
