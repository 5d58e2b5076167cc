"""BART, mBART, Pegasus and M2M100 (NLLB too): encoder-decoders with the layer names of fairseq."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_json
from regard.exchange.fairseq import ACTIVATIONS, POSITIONS, stack_rules, with_positions
from regard.exchange.formats import ForeignFiles, ForeignModel, ModelParts
from regard.exchange.hugging_face import CONFIG, WEIGHTS, Architecture, search_settings
from regard.exchange.hugging_face.tokenizers import (
    language_notes,
    pair_ids,
    pair_tokenizers,
    write_pair_tokenizers,
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
from regard.exchange.operations import NEVER, Constant, Flattened, Selected
from regard.exchange.sources import Options, Tensors, write_safetensors
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.text.imported import Numbering

SHARED, BIAS = "model.shared.weight", "final_logits_bias"
MOST_POSITIONS = 1_024  # of a table; ours may have no end
# What all of them do: the part of our settings that no configuration chooses.
COMMON: dict[str, Any] = {
    "encoder": "attention",
    "decoder": "attention",
    "norm": "layer",
    "norm_epsilon": None,
    "kernel": "softmax",
    "score": "scaled-dot",
    "window": None,
    "encoder_window": None,
    "experts": 0,
    "pattern": "full",
    "span": None,
    "head_dim": None,
    "key_value_heads": None,
    "head_norm": False,
    "attention_biases": "all",
    "feed_forward_biases": True,
    "scaled_output": False,
    "tie": "all",
}


@dataclass(frozen=True)
class BartKind:
    """How one of these architectures differs from the others."""

    model_type: str
    model: str
    """The class of `transformers`."""
    fixed: dict[str, Any] = field(default_factory=dict)
    biased: bool = True
    """Whether it has an output bias."""
    scaled: bool = False
    """Whether embeddings are scaled if the configuration does not say."""


LEARNED = {"positions": "learned", "learned_offset": 2, "embedding_norm": True}
SINUSOIDS = {"positions": "sinusoidal", "sinusoids": "halves", "embedding_norm": False}
KINDS = {
    kind.model_type: kind
    for kind in (
        BartKind("bart", "BartForConditionalGeneration", {"norm_placement": "post", **LEARNED}),
        BartKind("mbart", "MBartForConditionalGeneration", {"norm_placement": "pre", **LEARNED}),
        BartKind(
            "pegasus",
            "PegasusForConditionalGeneration",
            {"norm_placement": "pre", "sinusoid_offset": 0, **SINUSOIDS},
        ),
        BartKind(
            "m2m_100",
            "M2M100ForConditionalGeneration",
            {
                "norm_placement": "pre",
                "sinusoid_offset": 2,
                "stretched_sinusoids": True,
                **SINUSOIDS,
            },
            biased=False,
            scaled=True,
        ),
    )
}


PEGASUS = KINDS["pegasus"]
# What a table of positions in the file can replace.
WAVES = ("positions", "sinusoids", "sinusoid_offset", "stretched_sinusoids")


def layout(
    settings: TransformerSettings, source: Numbering, target: Numbering, *, biased: bool
) -> WeightLayout:
    """Return where these models keep their weights; source and target share one table."""
    rules = stack_rules(settings, prefix="model.")
    rules.append(
        rule("encoder.embedded.embedding.weight", SHARED, Selected(target.theirs, target.size))
    )
    stacks = ("encoder", "decoder")
    copies = {f"model.{stack}.embed_tokens.weight": SHARED for stack in stacks}
    leftovers = {}
    if settings.positions == "learned":
        rules += [
            rule(f"{stack}.embedded.positions.vectors", POSITIONS.format(stack=stack))
            for stack in stacks
        ]
    else:
        name = r"model\.(en|de)coder\.embed_positions\.weights?"
        leftovers[name] = "sinusoids, which are computed here"
    if settings.embedding_norm:
        norms = [
            rule(f"{stack}.embedded.norm.{{kind}}", f"model.{stack}.layernorm_embedding.{{kind}}")
            for stack in stacks
        ]
        rules += spread(norms, kind=("weight", "bias"))
    copies["lm_head.weight"] = SHARED
    bias = Selected(target.chosen, target.size, NEVER, exact=False)
    if settings.output_bias:
        rules.append(
            rule("projection.bias", BIAS, Flattened().then(bias))
            if biased
            else rule("projection.bias", (), Constant(never=target.never))
        )
    return WeightLayout(rules=rules, copies=copies, leftovers=leftovers)


def settings_of(options: Options) -> TransformerSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    kind = KINDS[options.get("model_type")]
    for name in ("attention_heads", "ffn_dim"):
        options.same(f"encoder_{name}", f"decoder_{name}")
    options.expect(tie_word_embeddings=True)
    table = COMMON | {
        "layers": options.number("encoder_layers", 12),
        "decoder_layers": options.number("decoder_layers", 12),
        "model_dim": options.number("d_model", 1024),
        "heads": options.number("encoder_attention_heads", 16),
        "feed_forward": options.number("encoder_ffn_dim", 4096),
        "activation": options.among("activation_function", ACTIVATIONS, "gelu"),
        "scaled_embeddings": bool(options.get("scale_embedding", kind.scaled)),
        "max_length": options.number("max_position_embeddings", 1024),
        "dropout": options.get("dropout", 0.1),
        "attention_dropout": options.get("attention_dropout", 0.0),
        "activation_dropout": options.get("activation_dropout", 0.0),
        "output_bias": True,
        **kind.fixed,
    }
    options.finish()
    try:
        return validate(table, TransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def read(options: Options, tensors: Tensors, files: ForeignFiles) -> ForeignModel:
    """Return the model with its tokenizers, which differ in nothing but the language marks."""
    rows = options.number("vocab_size", 50_265)
    numbering = pair_ids(options, rows=rows)
    settings = settings_of(options)
    said_by = f"vocab_size in {options.origin}"
    require_rows(tensors, SHARED, rows, said_by=said_by, origin=files.weights)
    source, target = pair_tokenizers(options, files, numbering)
    settings = with_positions(settings, tensors)
    table = layout(settings, source.numbering, target.numbering, biased=BIAS in tensors)
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
        notes=language_notes(target, files),
        leftovers=leftovers,
    )


def kind_of(settings: TransformerSettings) -> BartKind | None:
    """Return the architecture that has these settings; None if none has."""
    for kind in KINDS.values():
        if _fits(settings, COMMON | kind.fixed):
            return kind
    others = {name: value for name, value in PEGASUS.fixed.items() if name not in WAVES}
    return PEGASUS if _fits(settings, COMMON | others) else None


def _fits(settings: TransformerSettings, wanted: dict[str, Any]) -> bool:
    return all(getattr(settings, name) == value for name, value in wanted.items())


def write(parts: ModelParts, folder: Path) -> None:
    """Write an imported model so that `transformers` loads it, with the ids that it had."""
    settings = parts.settings
    kind = kind_of(settings) if isinstance(settings, TransformerSettings) else None
    if kind is None or not isinstance(settings, TransformerSettings):
        raise SettingsError("No model of the BART family has these settings.")
    source, target = parts.tokenizers["source"], parts.tokenizers["target"]
    numbering: Any = getattr(target, "numbering", None)
    if numbering is None:
        raise SettingsError("Only a model with an imported tokenizer has this form.")
    table = layout(settings, numbering, numbering, biased=kind.biased)
    tensors = written(parts.model, table)
    if not _fits(settings, kind.fixed):  # waves of its own, which a table in the file holds
        tensors |= position_tables(parts.model, settings)
    folder.mkdir(parents=True, exist_ok=True)
    marks = write_pair_tokenizers(source, target, folder, model_type=kind.model_type)
    config = config_of(settings, kind, rows=numbering.size)
    if (table_of := tensors.get(POSITIONS.format(stack="decoder"))) is not None:
        config["max_position_embeddings"] = len(table_of) - settings.learned_offset
    write_json(folder / CONFIG, config | marks)
    write_safetensors(folder / WEIGHTS, tensors)


@torch.no_grad()
def position_tables(model: Any, settings: TransformerSettings) -> Tensors:
    """Return the positions that are added to embeddings, as tables of encoder and decoder."""
    tables: Tensors = {}
    for stack in ("encoder", "decoder"):
        positions = getattr(model, stack).embedded.positions
        if positions is None:
            table = torch.zeros(MOST_POSITIONS, settings.model_dim)
        else:
            table = positions(positions.max_length or MOST_POSITIONS).detach().clone()
        tables[POSITIONS.format(stack=stack)] = table
    return tables


def config_of(settings: TransformerSettings, kind: BartKind, *, rows: int) -> dict[str, Any]:
    """Return the configuration of a model."""
    activations = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    sizes = {"attention_heads": settings.heads, "ffn_dim": settings.feed_forward}
    return {
        "model_type": kind.model_type,
        "architectures": [kind.model],
        "is_encoder_decoder": True,
        "vocab_size": rows,
        "d_model": settings.model_dim,
        "encoder_layers": settings.layers,
        "decoder_layers": settings.decoder_layers or settings.layers,
        **{f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in sizes.items()},
        "activation_function": activations[settings.activation],
        "scale_embedding": settings.scaled_embeddings,
        "max_position_embeddings": settings.max_length,
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "activation_dropout": settings.activation_dropout,
        "tie_word_embeddings": True,
    }


ARCHITECTURE = Architecture(read=read, write=write)
