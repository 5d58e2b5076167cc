"""Transformers of fairseq, whose names of layers Hugging Face's MarianMT, BART and M2M100 share.

A folder holds the weights as npz or safetensors, the options as JSON, the dictionaries of both
languages and BPE codes or a SentencePiece model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from regard.base.errors import RunError, SettingsError
from regard.exchange.formats import ForeignFiles, ForeignModel, Format
from regard.exchange.layout import (
    Rule,
    WeightLayout,
    built,
    fill,
    rule,
    sinusoid_settings,
    spread,
)
from regard.exchange.operations import Constant, Joined, Selected
from regard.exchange.sources import Options, Tensors, npz_names, read_config, read_tensors
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.text.imported import (
    FAIRSEQ_SPECIALS,
    CodesSplitter,
    ImportedTokenizer,
    Numbering,
    vocabulary_of_dictionary,
)
from regard.text.splitters import ListedPieces, Splitter, read_splitter


def attention_rules(ours: str, theirs: str) -> list[Rule]:
    """Return the rules of one attention: ours has one matrix for queries, keys and values."""
    parts = [f"{theirs}.{part}_proj.{{kind}}" for part in "qkv"]
    return [
        rule(f"{ours}.projection.{{kind}}", parts, Joined(3)),
        rule(f"{ours}.output.{{kind}}", f"{theirs}.out_proj.{{kind}}"),
    ]


FEED_FORWARD = [
    rule("feed_forward.inner.{kind}", "fc1.{kind}"),
    rule("feed_forward.outer.{kind}", "fc2.{kind}"),
    rule("feed_forward_residual.norm.{kind}", "final_layer_norm.{kind}"),
]
ENCODER_LAYER = [
    *attention_rules("attention", "self_attn"),
    rule("attention_residual.norm.{kind}", "self_attn_layer_norm.{kind}"),
    *FEED_FORWARD,
]
DECODER_LAYER = [
    *attention_rules("self_attention", "self_attn"),
    rule("self_residual.norm.{kind}", "self_attn_layer_norm.{kind}"),
    *attention_rules("cross_attention", "encoder_attn"),
    rule("cross_residual.norm.{kind}", "encoder_attn_layer_norm.{kind}"),
    *FEED_FORWARD,
]
LEFTOVERS = {
    r"(en|de)coder\.version": "the version of the format",
    r"(en|de)coder\.embed_positions\._float_tensor": "an empty mark of the positions' type",
}
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "swish": "swish",
    "silu": "swish",
}
# Options that change the arithmetic, and the only value that is supported.
EXPECTED = {
    "encoder_learned_pos": False,
    "decoder_learned_pos": False,
    "no_token_positional_embeddings": False,
    "no_cross_attention": False,
    "cross_self_attention": False,
    "layernorm_embedding": False,
    "adaptive_softmax_cutoff": None,
    "adaptive_input": False,
    "normformer": False,
}


def stack_rules(settings: TransformerSettings, *, prefix: str = "") -> list[Rule]:
    """Return the rules of all layers, and of the last norms where a model has them."""
    depths = {"encoder": settings.layers, "decoder": settings.decoder_layers or settings.layers}
    tables = {"encoder": ENCODER_LAYER, "decoder": DECODER_LAYER}
    rules = [
        one.inside(f"{stack}.layers.{number}.", f"{prefix}{stack}.layers.{number}.")
        for stack, depth in depths.items()
        for number in range(depth)
        for one in tables[stack]
    ]
    if settings.norm_placement == "pre":
        rules += [
            rule(f"{stack}.norm.{{kind}}", f"{prefix}{stack}.layer_norm.{{kind}}")
            for stack in depths
        ]
    return spread(rules, kind=("weight", "bias"))


POSITIONS = "model.{stack}.embed_positions.weight"


def with_positions(settings: TransformerSettings, tensors: Tensors) -> TransformerSettings:
    """Return the settings with the positions that a file holds in tables, if it holds any.

    `transformers` reads the tables of MarianMT and Pegasus, so they need not be their usual waves.
    """
    names = [POSITIONS.format(stack=stack) for stack in ("encoder", "decoder")]
    tables = [tensors[name] for name in names if name in tensors]
    if settings.positions != "sinusoidal" or not tables:
        return settings
    found = [sinusoid_settings(table) for table in tables]
    changes: dict[str, Any] = {"positions": "learned", "max_length": len(tables[0])}
    if found[0] is not None and all(one == found[0] for one in found):
        changes = found[0]
    elif not any(bool(table.any()) for table in tables):
        changes = {"positions": "none"}
    return settings.model_copy(update=changes)


def layout(settings: TransformerSettings, source: Numbering, target: Numbering) -> WeightLayout:
    """Return where fairseq keeps the weights of such a model; it has no output bias."""
    inputs = Selected(target.theirs, target.size)
    encoder, decoder = (f"{stack}.embed_tokens.weight" for stack in ("encoder", "decoder"))
    output = "decoder.output_projection.weight"
    rules = [
        *stack_rules(settings),
        rule("decoder.embedded.embedding.weight", decoder, inputs),
        rule("projection.bias", (), Constant(never=target.never)),
    ]
    copies = {output: decoder}
    if settings.tie == "all":
        copies[encoder] = decoder
    else:
        table = Selected(source.theirs, source.size)
        rules.append(rule("encoder.embedded.embedding.weight", encoder, table))
    if settings.tie == "none":
        del copies[output]
        rules.append(rule("projection.weight", output, Selected(target.chosen, target.size)))
    return WeightLayout(rules=rules, copies=copies, leftovers=LEFTOVERS)


def settings_of(options: Options) -> TransformerSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    options.expect(**EXPECTED)
    for name in ("embed_dim", "ffn_embed_dim", "attention_heads", "normalize_before"):
        options.same(f"encoder_{name}", f"decoder_{name}")
    width = options.number("encoder_embed_dim", 512)
    options.expect(decoder_output_dim=width, decoder_input_dim=width)
    shared = bool(options.get("share_all_embeddings", False))
    tied = shared or bool(options.get("share_decoder_input_output_embed", False))
    table: dict[str, Any] = {
        "layers": options.number("encoder_layers", 6),
        "decoder_layers": options.number("decoder_layers", 6),
        "model_dim": width,
        "heads": options.number("encoder_attention_heads", 8),
        "feed_forward": options.number("encoder_ffn_embed_dim", 2048),
        "norm_placement": "pre" if options.get("encoder_normalize_before", False) else "post",
        "activation": options.among("activation_fn", ACTIVATIONS, "relu"),
        "sinusoids": "halves",
        "sinusoid_offset": FAIRSEQ_SPECIALS.index("<pad>") + 1,
        "stretched_sinusoids": True,
        "scaled_embeddings": not options.get("no_scale_embedding", False),
        "dropout": options.get("dropout", 0.1),
        "attention_dropout": options.get("attention_dropout", 0.0),
        "activation_dropout": options.get("activation_dropout", 0.0),
        "tie": "all" if shared else "target" if tied else "none",
        "output_bias": True,  # zero, but for the begin mark, which must not be chosen
    }
    options.finish()
    try:
        return validate(table, TransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def detect(weights: Path) -> bool:
    """Return whether a file has the names of a fairseq Transformer, and its folder options."""
    names: Iterable[str] = ()
    if weights.suffix == ".npz":
        names = npz_names(weights)
    elif weights.suffix == ".safetensors":
        try:
            with safe_open(weights, framework="pt") as file:
                names = list(file.keys())
        except (OSError, SafetensorError):
            return False
    return "encoder.embed_tokens.weight" in names and "decoder.embed_tokens.weight" in names


def read(files: ForeignFiles) -> ForeignModel:
    """Return the model of a file, with the dictionaries that its folder holds."""
    options = _options(files.folder)
    settings = settings_of(options)
    tensors = read_tensors(files.weights)
    pair = files.languages or (options.get("source_lang"), options.get("target_lang"))
    rows = [len(tensors[f"{stack}.embed_tokens.weight"]) for stack in ("encoder", "decoder")]
    tokenizers = []
    for path, size in zip(_dictionaries(files.folder, pair, rows), rows, strict=True):
        splitter = _splitter(files.folder, path)
        if splitter.size != size:
            raise RunError(
                f"{path} has {splitter.size} entries with the special ones, but the model has rows "
                f"for {size}: the files belong to different models."
            )
        places = {name: FAIRSEQ_SPECIALS.index(name) for name in FAIRSEQ_SPECIALS}
        numbering = Numbering(
            size=size,
            pad=places["<pad>"],
            unknown=places["<unk>"],
            begin=places["</s>"],  # their decoder begins with the end mark
            end=places["</s>"],
        )
        tokenizers.append(ImportedTokenizer(splitter, numbering))
    source, target = tokenizers
    table = layout(settings, source.numbering, target.numbering)
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
        recipe={"tokenizer": {"kind": "imported", "shared": settings.tie == "all"}},
        leftovers=leftovers,
    )


def _options(folder: Path) -> Options:
    """Return the options of the one JSON file that describes a model."""
    found = []
    for path in sorted(folder.glob("*.json")):
        table = read_config(path)
        if "encoder_embed_dim" in table:
            found.append(Options(table, path))
    if len(found) != 1:
        raise RunError(
            f"{folder} holds {len(found) or 'no'} JSON files with encoder_embed_dim: exactly one "
            "must describe the model, with the options that it was trained with."
        )
    return found[0]


def _dictionaries(folder: Path, pair: tuple[Any, Any], rows: list[int]) -> list[Path]:
    """Return the dictionaries of source and target: by language, else by their sizes."""
    if all(pair):
        for language in pair:
            if not re.fullmatch(r"\w[\w.@-]*", str(language)):
                raise RunError(f"{folder}: {language!r} is not the name of a language.")
        return [folder / f"dict.{language}.txt" for language in pair]
    files = sorted(folder.glob("dict.*.txt"))
    sizes = {path: len(path.read_bytes().splitlines()) + len(FAIRSEQ_SPECIALS) for path in files}
    found = [[path for path in files if sizes[path] == count] for count in rows]
    if any(len(fitting) != 1 for fitting in found):
        listed = ", ".join(path.name for path in files) or "none"
        raise RunError(
            f"{folder}: which dictionary is of which language is not clear (found: {listed}; the "
            f"model has rows for {rows[0]} and {rows[1]} entries). Name the languages of source "
            "and target with --languages."
        )
    return [fitting[0] for fitting in found]


def _splitter(folder: Path, dictionary: Path) -> Splitter:
    """Return what splits text: BPE codes, or a SentencePiece model whose pieces are listed."""
    codes = [path for path in sorted(folder.iterdir()) if "code" in path.name.lower()]
    models = sorted(folder.glob("*.model"))
    if len(codes) == 1:
        files = {"codes": codes[0], "dict.txt": dictionary}
        return read_splitter(CodesSplitter, files, origin=dictionary)
    if len(models) == 1:
        try:
            vocabulary = vocabulary_of_dictionary(dictionary.read_bytes())
            return ListedPieces(models[0].read_bytes(), vocabulary)
        except (OSError, ValueError) as error:
            raise RunError(f"{dictionary}: {error}.") from None
    raise RunError(
        f"{folder} must hold one file of BPE codes (as bpe.code) or one SentencePiece model "
        "(as sentencepiece.bpe.model), which split the text."
    )


FORMAT = Format(
    name="fairseq",
    title="fairseq (.npz or .safetensors with options as .json and dict.*.txt)",
    detect=detect,
    read=read,
)
