"""GPT-2 in the layout of Hugging Face: config.json, model.safetensors, vocab.json, merges.txt."""

from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.exchange.formats import ForeignFiles, ForeignModel, ModelParts
from regard.exchange.hugging_face import CONFIG, WEIGHTS, Architecture
from regard.exchange.hugging_face.tokenizers import (
    LIBRARY,
    MERGES,
    VOCABULARY,
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
from regard.exchange.operations import TRANSPOSED
from regard.exchange.sources import Options, Tensors, write_safetensors
from regard.models.language_model import build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.recipe import validate
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.imported import ImportedTokenizer, Numbering
from regard.text.splitters import LibrarySplitter

USUAL_EPSILON = 1e-5  # of our norms too
PREFIX = "transformer."  # some files hold the bare model without it

# Matrices of the layers are [from, to].
LAYER = (
    rule("attention_residual.norm.{kind}", "ln_1.{kind}"),
    rule("attention.projection.{kind}", "attn.c_attn.{kind}", TRANSPOSED),
    rule("attention.output.{kind}", "attn.c_proj.{kind}", TRANSPOSED),
    rule("feed_forward_residual.norm.{kind}", "ln_2.{kind}"),
    rule("feed_forward.inner.{kind}", "mlp.c_fc.{kind}", TRANSPOSED),
    rule("feed_forward.outer.{kind}", "mlp.c_proj.{kind}", TRANSPOSED),
)
LEFTOVERS = {
    r"(transformer\.)?h\.\d+\.attn\.(masked_)?bias": "the causal mask, which is computed here",
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
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
}
# What the model code does: the part of our settings that a configuration does not choose.
FIXED: dict[str, Any] = {
    "positions": "learned",
    "norm": "layer",
    "activation": None,  # one of several
    "window": None,
    "experts": 0,
    "pattern": "full",
    "span": None,
    "memory": 0,
    "learned_offset": 0,
    "embedding_norm": False,
    "head_dim": None,
    "key_value_heads": None,
    "head_norm": False,
    "attention_biases": "all",
    "feed_forward_biases": True,
}


def layout(settings: CausalTransformerSettings, *, prefix: str = PREFIX) -> WeightLayout:
    """Return where GPT-2 keeps its weights."""
    layers = spread(LAYER, kind=("weight", "bias"))
    rules = [
        rule("backbone.embedded.embedding.weight", f"{prefix}wte.weight"),
        rule("backbone.embedded.positions.vectors", f"{prefix}wpe.weight"),
        *spread([rule("backbone.norm.{kind}", prefix + "ln_f.{kind}")], kind=("weight", "bias")),
        *(
            one.inside(f"backbone.layers.{number}.", f"{prefix}h.{number}.")
            for number in range(settings.layers)
            for one in layers
        ),
    ]
    if settings.tie:
        return WeightLayout(
            rules=rules, copies={"lm_head.weight": f"{prefix}wte.weight"}, leftovers=LEFTOVERS
        )
    rules.append(rule("projection.weight", "lm_head.weight"))
    return WeightLayout(rules=rules, leftovers=LEFTOVERS)


def read(options: Options, tensors: Tensors, files: ForeignFiles) -> ForeignModel:
    """Return the model; what is missing, misshapen or different is a RunError that names it."""
    rows = options.number("vocab_size", 50_257)
    numbering = text_ids(options, rows=rows)
    tokenizer = _tokenizer(options, files, numbering)
    settings = _settings_of(options)
    prefix = PREFIX if f"{PREFIX}wte.weight" in tensors else ""
    said_by, embedding = f"vocab_size in {options.origin}", f"{prefix}wte.weight"
    require_rows(tensors, embedding, rows, said_by=said_by, origin=files.weights)
    table = layout(settings, prefix=prefix)
    model = built(lambda: build_language_model(settings, vocab=rows), tensors, origin=files.weights)
    leftovers = fill(model, table, tensors, origin=files.weights)
    return ForeignModel(
        task="language-model",
        model=model.eval(),
        settings=settings,
        tokenizers={"text": tokenizer},
        layout=table,
        recipe={
            "tokenizer": {"kind": "imported"}
            if isinstance(tokenizer, ImportedTokenizer)
            else {"kind": "byte-bpe", "size": tokenizer.size}
        },
        leftovers=leftovers,
    )


def _tokenizer(
    options: Options, files: ForeignFiles, numbering: Numbering
) -> ByteBpeTokenizer | ImportedTokenizer:
    """Return the tokenizer of the two files of GPT-2, or of a `tokenizer.json`.

    A model with more rows than tokens keeps them, so its tokenizer is an imported one.
    """
    vocabulary, merges = files.folder / VOCABULARY, files.folder / MERGES
    if (files.folder / LIBRARY).is_file() and not (vocabulary.is_file() and merges.is_file()):
        return text_tokenizer(options, files, numbering)
    tokenizer = ByteBpeTokenizer.read_files(vocabulary, merges)
    if numbering.size < tokenizer.size:
        raise RunError(
            f"{vocabulary} has {tokenizer.size} entries, but the model has rows for "
            f"{numbering.size} only: the files belong to different models."
        )
    if numbering.size == tokenizer.size:
        return tokenizer
    return ImportedTokenizer(LibrarySplitter(tokenizer.description().encode()), numbering)


def write(parts: ModelParts, folder: Path) -> None:
    """Write a model so that `transformers` loads it."""
    settings, tokenizer = parts.settings, parts.tokenizers["text"]
    if not isinstance(settings, CausalTransformerSettings):
        raise SettingsError("GPT-2 is a Transformer: a recurrent model cannot be written as one.")
    if not isinstance(tokenizer, ByteBpeTokenizer | ImportedTokenizer):
        raise SettingsError(
            'GPT-2 reads byte-level BPE: train with tokenizer.kind="byte-bpe" to export a model.'
        )
    config = config_of(settings, tokenizer)
    tensors = written(parts.model, layout(settings))
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(tokenizer, ByteBpeTokenizer):
        tokenizer.write_files(folder / VOCABULARY, folder / MERGES)
    else:
        config |= write_text_tokenizer(tokenizer, folder)
    write_json(folder / CONFIG, config)
    write_safetensors(folder / WEIGHTS, tensors)


def config_of(
    settings: CausalTransformerSettings, tokenizer: ByteBpeTokenizer | ImportedTokenizer
) -> dict[str, Any]:
    """Return a model's configuration; raise an error for a setting that GPT-2 does not have."""
    activations = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    for name, value in FIXED.items():
        fits = getattr(settings, name) == value
        if name == "activation":
            fits = settings.activation in activations
        if not fits:
            raise SettingsError(
                f"GPT-2 has no model.{name} = {getattr(settings, name)!r}, so this model cannot "
                "be written in its layout."
            )
    return EXPECTED | {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": tokenizer.size,
        "n_positions": settings.context,
        "n_embd": settings.model_dim,
        "n_layer": settings.layers,
        "n_head": settings.heads,
        "n_inner": settings.feed_forward,
        "layer_norm_epsilon": settings.norm_epsilon or USUAL_EPSILON,
        "activation_function": activations[settings.activation],
        "resid_pdrop": settings.dropout,
        "embd_pdrop": settings.dropout,
        "attn_pdrop": settings.attention_dropout,
        "tie_word_embeddings": settings.tie,
        "bos_token_id": tokenizer.end,
        "eos_token_id": tokenizer.end,
    }


def _settings_of(options: Options) -> CausalTransformerSettings:
    options.expect(**EXPECTED)
    epsilon = options.get("layer_norm_epsilon", USUAL_EPSILON)
    table = {
        "layers": options.number("n_layer", 12),
        "model_dim": options.number("n_embd", 768),
        "heads": options.number("n_head", 12),
        "feed_forward": options.get("n_inner"),
        "context": options.number("n_positions", 1024),
        "norm_epsilon": None if epsilon == USUAL_EPSILON else epsilon,
        "activation": options.among("activation_function", ACTIVATIONS, "gelu_new"),
        "dropout": options.get("resid_pdrop", 0.1),
        "attention_dropout": options.get("attn_pdrop", 0.1),
        "tie": options.get("tie_word_embeddings", True),
    }
    options.finish()
    try:
        return validate(table, CausalTransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


ARCHITECTURE = Architecture(read=read, write=write)
