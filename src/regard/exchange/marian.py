"""Models of Marian: npz or the binary file, its configuration, and SentencePiece vocabularies.

The students of the Bergamot and Firefox translations are such files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from regard.base.budgets import parse_json
from regard.base.errors import RunError, SettingsError
from regard.exchange.binary import CONFIG_ENTRY, is_marian, read_marian
from regard.exchange.formats import ForeignFiles, ForeignModel, Format
from regard.exchange.layout import Rule, WeightLayout, built, fill, rule, spread
from regard.exchange.operations import NEVER, TRANSPOSED, Constant, Flattened, Joined, Selected
from regard.exchange.sources import Options, Tensors, npz_names, npz_text, read_npz
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.text.imported import ImportedTokenizer, Numbering
from regard.text.splitters import SentencePieceSplitter, read_splitter

VECTOR = Flattened()  # biases and norms are [1, width], matrices [from, to]


def _attention(ours: str, theirs: str) -> list[Rule]:
    matrices, biases = ([f"{theirs}_{kind}{part}" for part in "qkv"] for kind in "Wb")
    return [
        rule(f"{ours}.projection.weight", matrices, TRANSPOSED.then(Joined(3))),
        rule(f"{ours}.projection.bias", biases, VECTOR.then(Joined(3))),
        rule(f"{ours}.output.weight", f"{theirs}_Wo", TRANSPOSED),
        rule(f"{ours}.output.bias", f"{theirs}_bo", VECTOR),
    ]


def _norm(ours: str, theirs: str) -> list[Rule]:
    kinds = [("weight", "scale"), ("bias", "bias")]
    return spread([rule(f"{ours}.{{kind}}", f"{theirs}_ln_{{kind}}{{place}}", VECTOR)], kind=kinds)


FEED_FORWARD = [
    rule("feed_forward.inner.weight", "ffn_W1", TRANSPOSED),
    rule("feed_forward.inner.bias", "ffn_b1", VECTOR),
    rule("feed_forward.outer.weight", "ffn_W2", TRANSPOSED),
    rule("feed_forward.outer.bias", "ffn_b2", VECTOR),
    *_norm("feed_forward_residual.norm", "ffn_ffn"),
]
ENCODER_LAYER = [
    *_attention("attention", "self"),
    *_norm("attention_residual.norm", "self_Wo"),
    *FEED_FORWARD,
]
CROSS = [*_attention("cross_attention", "context"), *_norm("cross_residual.norm", "context_Wo")]
DECODER_LAYERS = {
    "attention": [
        *_attention("self_attention", "self"),
        *_norm("self_residual.norm", "self_Wo"),
        *CROSS,
        *FEED_FORWARD,
    ],
    "ssru": [
        rule("self_attention.projection.weight", "rnn_W", TRANSPOSED),
        rule("self_attention.forget.weight", "rnn_Wf", TRANSPOSED),
        rule("self_attention.forget.bias", "rnn_bf", VECTOR),
        *_norm("self_residual.norm", "rnn_ffn"),
        *CROSS,
        *FEED_FORWARD,
    ],
}
LEFTOVERS = {
    r".*_QuantMultA": "how int8 arithmetic scales activations; here arithmetic is float32",
    r"special:.*": "the configuration, which has been read",
    r"decoder_c[ts]": "empty",
}
# Options that change the arithmetic, and the only value that is supported.
EXPECTED = {
    "type": "transformer",
    "transformer-ffn-depth": 2,
    "transformer-no-projection": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "transformer-postprocess-emb": "d",
    "transformer-pool": False,
    "transformer-rnn-projection": False,
    "transformer-flat-relu": False,
    "right-left": False,
    "transformer-no-affine": False,
    "transformer-no-bias": False,
    "embedding-normalization": False,
    "ulr": False,
    "lemma-dim-emb": 0,
    "input-types": [],
    "factors-combine": "sum",
}
ACTIVATIONS = {"relu": "relu", "swish": "swish"}
# Options of the decoder's layers, and those of the encoder's with their defaults.
SAME_AS_ENCODER = {
    "transformer-decoder-dim-ffn": ("transformer-dim-ffn", 2048),
    "transformer-decoder-ffn-depth": ("transformer-ffn-depth", 2),
}


def layout(settings: TransformerSettings, source: Numbering, target: Numbering) -> WeightLayout:
    """Return where Marian keeps the weights of such a model."""
    pre = settings.norm_placement == "pre"
    depths = {"encoder": settings.layers, "decoder": settings.decoder_layers or settings.layers}
    tables = {"encoder": ENCODER_LAYER, "decoder": DECODER_LAYERS[settings.decoder]}
    rules = [
        one.inside(f"{stack}.layers.{number}.", f"{stack}_l{number + 1}_")
        for stack, depth in depths.items()
        for number in range(depth)
        for one in tables[stack]
    ]
    rules = spread(rules, place=[("", "_pre" if pre else "")])
    if pre:
        tops = [one for stack in depths for one in _norm(f"{stack}.norm", f"{stack}_top")]
        rules += spread(tops, place=[("", "")])
    inputs = Selected(source.theirs, source.size), Selected(target.theirs, target.size)
    chosen = Selected(target.chosen, target.size, NEVER, exact=False)
    if settings.tie == "all":
        rules.append(rule("encoder.embedded.embedding.weight", "Wemb", inputs[1]))
    else:
        rules += [
            rule("encoder.embedded.embedding.weight", "encoder_Wemb", inputs[0]),
            rule("decoder.embedded.embedding.weight", "decoder_Wemb", inputs[1]),
        ]
    if settings.tie == "none":
        output = TRANSPOSED.then(Selected(target.chosen, target.size))
        rules.append(rule("projection.weight", "decoder_ff_logit_out_W", output))
    rules.append(rule("projection.bias", "decoder_ff_logit_out_b", VECTOR.then(chosen)))
    return WeightLayout(rules=rules, leftovers=LEFTOVERS)


def without_bias(table: WeightLayout, target: Numbering) -> WeightLayout:
    """Return the layout of a model without output bias: ours only bans tokens that we added."""
    rules = [*table.rules[:-1], rule("projection.bias", (), Constant(never=target.never))]
    return WeightLayout(rules=rules, leftovers=table.leftovers)


def settings_of(options: Options) -> TransformerSettings:
    """Return the settings of a model; all that is not supported is told at once."""
    options.expect(**EXPECTED)
    for name, like in SAME_AS_ENCODER.items():  # 0 is the same
        if options.get(name, 0) not in (0, options.get(like[0], like[1])):
            options.same(name, like[0])
    decoder = options.among(
        "transformer-decoder-autoreg", {"self-attention": "attention", "rnn": "ssru"}, "rnn"
    )
    if decoder == "ssru":
        options.expect(**{"dec-cell": "ssru", "dec-cell-base-depth": 2})
    processing = tuple(
        options.get(f"transformer-{name}", default)
        for name, default in (("preprocess", ""), ("postprocess", "dan"), ("postprocess-top", ""))
    )
    placements = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
    if processing not in placements:
        options.problems.append(
            "transformer-preprocess, -postprocess, -postprocess-top = "
            f"{', '.join(map(repr, processing))} (known: '', 'dan', '' and 'n', 'da', 'n')"
        )
    table: dict[str, Any] = {
        "layers": options.number("enc-depth"),
        "decoder_layers": options.number("dec-depth"),
        "model_dim": options.number("dim-emb"),
        "heads": options.number("transformer-heads", 8),
        "feed_forward": options.number("transformer-dim-ffn", 2048),
        "decoder": decoder,
        "norm_placement": placements.get(processing, "post"),
        "activation": options.among("transformer-ffn-activation", ACTIVATIONS, "swish"),
        "sinusoids": "halves",
        "stretched_sinusoids": True,
        "norm_epsilon": 1e-6,
        "tie": _tie(options),
        "output_bias": True,
        "alignment_layer": _alignment_layer(options),
    }
    options.finish()
    try:
        return validate(table, TransformerSettings, origin=str(options.origin))
    except SettingsError as error:
        raise RunError(str(error)) from None


def _tie(options: Options) -> str:
    all_, output, source = (
        bool(options.get(f"tied-embeddings{name}", False)) for name in ("-all", "", "-src")
    )
    if source and not output and not all_:
        options.problems.append("tied-embeddings-src = True without tied-embeddings")
    if all_ or (source and output):
        return "all"
    return "target" if output else "none"


def _alignment_layer(options: Options) -> int:
    layer = options.get("transformer-guided-alignment-layer", "last")
    return int(layer) - 1 if str(layer).isdigit() and int(layer) > 0 else -1


def detect(weights: Path) -> bool:
    """Return whether a file has the names of a Marian model, or begins like its binary files."""
    if weights.suffix == ".npz":
        names = npz_names(weights)
    elif weights.suffix == ".bin":
        return is_marian(weights)
    else:
        return False
    return any(name.startswith("decoder_") and name.endswith("_Wq") for name in names)


def read(files: ForeignFiles) -> ForeignModel:
    """Return the model of a file, with the vocabularies that its folder holds."""
    tensors, text = _read_tensors(files.weights)
    tables = {path: read_yaml(path) for path in sorted(files.folder.glob("*.yml"))}
    described = {path: table for path, table in tables.items() if "enc-depth" in table}
    if text:
        options = Options(parse_yaml(text), f"{CONFIG_ENTRY} in {files.weights}")
    elif len(described) == 1:
        path, described_by = next(iter(described.items()))
        options = Options(described_by, path)
    else:
        raise RunError(
            f"{files.weights} has no {CONFIG_ENTRY} inside, and {files.folder} holds "
            f"{len(described) or 'no'} .yml files with enc-depth: exactly one must describe it."
        )
    settings = settings_of(options)
    decoder = _decoder_options(files.weights, tables)
    sizes = options.get("dim-vocabs", [])
    source, target = _tokenizers(files.folder, decoder, sizes)
    table = layout(settings, source.numbering, target.numbering)
    if "decoder_ff_logit_out_b" not in tensors:
        table = without_bias(table, target.numbering)
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
            "decoding": _decoding(decoder),
        },
        notes=_notes(files.folder, decoder),
        leftovers=leftovers,
    )


def _read_tensors(path: Path) -> tuple[Tensors, str]:
    if path.suffix != ".npz":
        return read_marian(path)
    tensors = read_npz(path)
    tensors.pop(CONFIG_ENTRY, None)
    return tensors, npz_text(path, CONFIG_ENTRY)


def _decoder_options(weights: Path, tables: Mapping[Path, dict[str, Any]]) -> dict[str, Any]:
    """Return the options of decoding that name these weights, or else the only ones there are."""
    found = [table for table in tables.values() if isinstance(table.get("vocabs"), list)]
    named = [table for table in found if weights.name in _names(table.get("models"))]
    return (named or found or [{}])[0]


def _names(value: object) -> list[str]:
    return [Path(str(one)).name for one in value] if isinstance(value, list) else []


def _tokenizers(
    folder: Path, decoder: Mapping[str, Any], sizes: Any
) -> tuple[ImportedTokenizer, ImportedTokenizer]:
    """Return a tokenizer for each language; a vocabulary must have a row for each entry."""
    names = _names(decoder.get("vocabs")) or sorted(path.name for path in folder.glob("*.spm"))
    names = names * 2 if len(names) == 1 else names
    if len(names) != 2:
        raise RunError(
            f"{folder} must hold one .spm vocabulary, or two that a .yml names under vocabs: "
            f"found {', '.join(names) or 'none'}."
        )
    found = []
    for name, size in zip(names, sizes if isinstance(sizes, list) else [], strict=False):
        path = folder / name
        if path.suffix != ".spm":
            raise RunError(f"{path}: only SentencePiece vocabularies (.spm) are read.")
        splitter = read_splitter(SentencePieceSplitter, {"model": path}, origin=path)
        if splitter.size != size:
            raise RunError(
                f"{path} has {splitter.size} entries, but the model has rows for {size}: the "
                "files belong to different models."
            )
        end, unknown = splitter.find("</s>"), splitter.find("<unk>")
        if end is None:
            raise RunError(f"{path} has no end mark </s>.")
        numbering = Numbering(size=splitter.size, unknown=unknown, end=end)
        found.append(ImportedTokenizer(splitter, numbering))
    if len(found) != 2:
        raise RunError(f"dim-vocabs of the model is {sizes!r} instead of two sizes.")
    return found[0], found[1]


def _decoding(decoder: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of decoding that the files recommend."""
    table: dict[str, Any] = {}
    beam, normalize = decoder.get("beam-size"), decoder.get("normalize")
    if isinstance(beam, int) and beam >= 1:
        table["beam"] = beam
    if isinstance(normalize, float | int) and not isinstance(normalize, bool):
        table |= {"length_penalty": float(normalize), "length_penalty_kind": "average"}
    return table


def _notes(folder: Path, decoder: Mapping[str, Any]) -> list[str]:
    shortlist = _names(decoder.get("shortlist"))[:1]
    if shortlist and not (folder / shortlist[0]).is_file():
        return [f"The shortlist {shortlist[0]} is absent and not needed: all words are searched."]
    if shortlist:
        return [f"The shortlist {shortlist[0]} is not used: all words are searched."]
    return []


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the table of a configuration file; what is not a flat table is left out."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8")) if path.stat().st_size < 1 << 20 else {}
    except (OSError, UnicodeDecodeError):
        return {}


def parse_yaml(text: str) -> dict[str, Any]:
    """Return the flat table that Marian writes: values, and lists of values."""
    table: dict[str, Any] = {}
    name = ""
    for line in text.splitlines():
        item = re.match(r"\s*- (.*)$", line)
        if item and isinstance(table.get(name), list):
            table[name].append(_yaml_value(item[1]))
            continue
        entry = re.match(r"([\w-]+):\s*(.*)$", line)
        if entry:
            name = entry[1]
            table[name] = _yaml_value(entry[2]) if entry[2] else []
    return table


def _yaml_value(text: str) -> Any:
    text = text.strip()
    if text.startswith("'") and text.endswith("'"):
        return text[1:-1]
    if text in ("true", "false", "[]") or text.startswith('"') or re.match(r"-?\d+\.?\d*$", text):
        with suppress(ValueError):  # what is no number or text of JSON stays as it is
            return parse_json(text)
    return text


FORMAT = Format(
    name="marian",
    title="Marian (.npz or .bin with .yml and .spm)",
    detect=detect,
    read=read,
)
