"""MarianMT, as the OPUS-MT models are published: two SentencePiece models and vocab.json."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.base.errors import RunError, SettingsError
from regard.base.files import write_file, write_json
from regard.exchange.fairseq import ACTIVATIONS, POSITIONS, stack_rules, with_positions
from regard.exchange.formats import ForeignFiles, ForeignModel, ModelParts
from regard.exchange.hugging_face import CONFIG, WEIGHTS, Architecture, search_settings
from regard.exchange.hugging_face.bart import WAVES, position_tables
from regard.exchange.hugging_face.pieces import SOURCE, TARGET
from regard.exchange.layout import WeightLayout, built, fill, require_rows, rule, written
from regard.exchange.operations import NEVER, Constant, Flattened, Selected
from regard.exchange.sources import Options, Tensors, write_safetensors
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.text.imported import ImportedTokenizer, Numbering
from regard.text.splitters import SentencePieceSplitter, read_splitter

VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
BIAS = "final_logits_bias"
# Old configurations have options of BART, which their code does not read.
EXPECTED = {"static_position_embeddings": True, "is_encoder_decoder": True}
LEFTOVERS = {
    r"model\.(en|de)coder\.embed_positions\.weight": "sinusoids, which are computed here",
}
# What the model code does: the part of our settings that a configuration does not choose.
FIXED: dict[str, Any] = {
    "encoder": "attention",
    "decoder": "attention",
    "norm_placement": "post",
    "norm": "layer",
    "positions": "sinusoidal",
    "sinusoids": "halves",
    "sinusoid_offset": 0,
    "stretched_sinusoids": False,
    "kernel": "softmax",
    "score": "scaled-dot",
    "window": None,
    "encoder_window": None,
    "experts": 0,
    "pattern": "full",
    "span": None,
    "output_bias": True,
}


def layout(
    settings: TransformerSettings, source: Numbering, target: Numbering, *, biased: bool = True
) -> WeightLayout:
    """Return where MarianMT keeps its weights."""
    shared, encoder, decoder = (
        f"model.{name}.weight"
        for name in ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
    )
    inputs = Selected(target.theirs, target.size)
    rules = stack_rules(settings, prefix="model.")
    leftovers = LEFTOVERS
    if settings.positions == "learned":
        leftovers = {}
        rules += [
            rule(f"{stack}.embedded.positions.vectors", POSITIONS.format(stack=stack))
            for stack in ("encoder", "decoder")
        ]
    copies = {"lm_head.weight": decoder}
    if settings.tie == "all":
        rules.append(rule("encoder.embedded.embedding.weight", shared, inputs))
        copies = dict.fromkeys((encoder, decoder, "lm_head.weight"), shared)
    else:
        table = Selected(source.theirs, source.size)
        rules.append(rule("encoder.embedded.embedding.weight", encoder, table))
        rules.append(rule("decoder.embedded.embedding.weight", decoder, inputs))
    if settings.tie == "none":
        copies = {}
        output = Selected(target.chosen, target.size)
        rules.append(rule("projection.weight", "lm_head.weight", output))
    bias = Selected(target.chosen, target.size, NEVER, exact=False)
    rules.append(
        rule("projection.bias", BIAS, Flattened().then(bias))
        if biased
        else rule("projection.bias", (), Constant(never=target.never))
    )
    return WeightLayout(rules=rules, copies=copies, leftovers=leftovers)


def settings_of(options: Options) -> TransformerSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    options.expect(**EXPECTED)
    for name in ("attention_heads", "ffn_dim"):
        options.same(f"encoder_{name}", f"decoder_{name}")
    tied = options.get("tie_word_embeddings", True)
    shared = options.get("share_encoder_decoder_embeddings", True)
    if shared and not tied:
        options.problems.append(
            "share_encoder_decoder_embeddings = True without tie_word_embeddings"
        )
    table = FIXED | {
        "layers": options.number("encoder_layers", 12),
        "decoder_layers": options.number("decoder_layers", 12),
        "model_dim": options.number("d_model", 1024),
        "heads": options.number("encoder_attention_heads", 16),
        "feed_forward": options.number("encoder_ffn_dim", 4096),
        "activation": options.among("activation_function", ACTIVATIONS, "gelu"),
        "scaled_embeddings": bool(options.get("scale_embedding", False)),
        "dropout": options.get("dropout", 0.1),
        "attention_dropout": options.get("attention_dropout", 0.0),
        "activation_dropout": options.get("activation_dropout", 0.0),
        "tie": "all" if shared else "target" if tied else "none",
    }
    options.finish()
    try:
        return validate(table, TransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def read(options: Options, tensors: Tensors, files: ForeignFiles) -> ForeignModel:
    """Return the model with its two tokenizers."""
    shared = bool(options.get("share_encoder_decoder_embeddings", True))
    numberings = _numberings(options, shared=shared)
    settings = with_positions(settings_of(options), tensors)
    tables = ("shared", "shared") if shared else ("encoder.embed_tokens", "decoder.embed_tokens")
    for name, one in zip(tables, numberings, strict=True):
        said_by = f"the vocabulary size in {options.origin}"
        matrix = f"model.{name}.weight"
        require_rows(tensors, matrix, one.size, said_by=said_by, origin=files.weights)
    source, target = _tokenizers(files, numberings)
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
            "tokenizer": {"kind": "imported", "shared": settings.tie == "all"},
            "decoding": search_settings(options),
        },
        notes=_notes(source),
        leftovers=leftovers,
    )


def _numberings(options: Options, *, shared: bool) -> tuple[Numbering, Numbering]:
    """Return the special ids of both languages; those that the model does not have are problems."""
    rows = options.number("vocab_size", 58_101)
    target_rows = rows if shared else options.number("decoder_vocab_size", rows)
    end, pad = options.get("eos_token_id", 0), options.get("pad_token_id", 58_100)
    begin = options.get("decoder_start_token_id", pad)
    least = min(rows, target_rows)
    source = Numbering(
        size=rows,
        pad=options.one_of_ids("pad_token_id", pad, rows=least),
        begin=options.one_of_ids("decoder_start_token_id", begin, rows=least),
        end=options.one_of_ids("eos_token_id", end, rows=least),
    )
    return source, replace(source, size=target_rows)


def _tokenizers(
    files: ForeignFiles, numberings: tuple[Numbering, Numbering]
) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    separate = (files.folder / TARGET_VOCABULARY).is_file()
    found = []
    for side, vocabulary, numbering in (
        (SOURCE, VOCABULARY, numberings[0]),
        (TARGET, TARGET_VOCABULARY if separate else VOCABULARY, numberings[1]),
    ):
        path = files.folder / vocabulary
        splitter = read_splitter(
            SentencePieceSplitter, {"model": files.folder / side, "vocab.json": path}, origin=path
        )
        if splitter.size > numbering.size:
            raise RunError(
                f"{path} has {splitter.size} entries, but the model has rows for {numbering.size} "
                "only: the files belong to different models."
            )
        found.append((splitter, replace(numbering, unknown=splitter.find("<unk>"))))
    tag = [f">>{files.languages[1]}<<"] if files.languages else []
    return ImportedTokenizer(*found[0], prefix=tag), ImportedTokenizer(*found[1])


def language_tags(tokenizer: ImportedTokenizer) -> list[str]:
    """Return the target languages that a vocabulary has tags for."""
    splitter = tokenizer.splitter
    vocabulary = getattr(splitter, "vocabulary", None) or {}
    return [token for token in vocabulary if token.startswith(">>") and token.endswith("<<")]


def _notes(source: ImportedTokenizer) -> list[str]:
    tags = language_tags(source)
    if not tags or source.prefix:
        return []
    listed = " ".join(tags[:8]) + (" ..." if len(tags) > 8 else "")
    return [
        f"The model translates into {len(tags)} languages: begin each sentence with one of "
        f"{listed}, or import it with --languages for one of them."
    ]


def write(parts: ModelParts, folder: Path) -> None:
    """Write an imported model so that `transformers` loads it, with the ids that it had."""
    settings = parts.settings
    source, target = parts.tokenizers["source"], parts.tokenizers["target"]
    if not isinstance(settings, TransformerSettings):
        raise SettingsError("MarianMT is a Transformer: a recurrent model cannot be one.")
    for tokenizer in (source, target):
        if not isinstance(tokenizer, ImportedTokenizer) or not isinstance(
            tokenizer.splitter, SentencePieceSplitter
        ):
            raise SettingsError("MarianMT needs SentencePiece tokenizers with a vocabulary.")
    for name, value in FIXED.items():
        if getattr(settings, name) != value and name not in WAVES:
            raise SettingsError(
                f"MarianMT has no model.{name} = {getattr(settings, name)!r}, so this model cannot "
                "be written in its layout."
            )
    config = config_of(settings, source.numbering, target.numbering)  # type: ignore[attr-defined]
    table = layout(settings, source.numbering, target.numbering)  # type: ignore[attr-defined]
    tensors = written(parts.model, table)
    if any(getattr(settings, name) != FIXED[name] for name in WAVES):
        tensors |= position_tables(parts.model, settings)
        config["max_position_embeddings"] = len(tensors[POSITIONS.format(stack="decoder")])
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, config)
    write_safetensors(folder / WEIGHTS, tensors)
    _write_tokenizers(source, target, folder, shared=settings.tie == "all")  # type: ignore[arg-type]


def config_of(
    settings: TransformerSettings, source: Numbering, target: Numbering
) -> dict[str, Any]:
    """Return the configuration of a model."""
    activations = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {
            "attention_heads": settings.heads,
            "ffn_dim": settings.feed_forward,
        }.items()
    }
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": source.size,
        "decoder_vocab_size": target.size,
        "d_model": settings.model_dim,
        "encoder_layers": settings.layers,
        "decoder_layers": settings.decoder_layers or settings.layers,
        **sizes,
        "activation_function": activations[settings.activation],
        "scale_embedding": settings.scaled_embeddings,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": settings.tie == "all",
        "tie_word_embeddings": settings.tie != "none",
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "activation_dropout": settings.activation_dropout,
        "pad_token_id": target.pad,
        "eos_token_id": target.end,
        "decoder_start_token_id": target.begin,
        "forced_eos_token_id": target.end,
        "bad_words_ids": [[target.pad]],
        "max_position_embeddings": 512,
        "max_length": 512,
    }


def _write_tokenizers(
    source: ImportedTokenizer, target: ImportedTokenizer, folder: Path, *, shared: bool
) -> None:
    for tokenizer, side, vocabulary in (
        (source, SOURCE, VOCABULARY),
        (target, TARGET, VOCABULARY if shared else TARGET_VOCABULARY),
    ):
        files = tokenizer.splitter.files()
        if "vocab.json" not in files:
            raise SettingsError("MarianMT needs a SentencePiece tokenizer with a vocabulary.")
        write_file(folder / side, files["model"])
        write_file(folder / vocabulary, files["vocab.json"])
    config = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": not shared}
    write_json(folder / "tokenizer_config.json", config)


ARCHITECTURE = Architecture(read=read, write=write)
