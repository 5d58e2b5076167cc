"""The layout of CTranslate2's `model.bin`, read and written by one table, and folders read with it.

Its exports are written by `exchange.ctranslate2`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from regard.base.budgets import parse_json
from regard.base.errors import RunError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.shapes import Tensor
from regard.exchange.binary import is_ctranslate2, read_ctranslate2
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
from regard.exchange.operations import NEVER, SAME, Interleaved, Joined, Operation, Selected
from regard.exchange.sources import Options, Tensors, read_config
from regard.models.build import build_translator
from regard.settings.models import TransformerSettings
from regard.settings.recipe import validate
from regard.text.imported import ImportedTokenizer, Numbering
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.splitters import SentencePieceSplitter
from regard.transformer.layers import GATED

NORM = [("weight", "gamma"), ("bias", "beta")]
LINEAR = ("weight", "bias")
# In the order of their numbers; what a gate of two matrices is called here.
ACTIVATIONS = {0: "relu", 1: "gelu-tanh", 2: "swish", 3: "gelu"}
# Variables that are single numbers, and the only value that is supported; None for any.
FLAGS = {
    "num_heads": None,
    "pre_norm": None,
    "activation": None,
    "scale_embeddings": None,
    "alignment_heads": None,
    "alignment_layer": None,
    "start_from_zero_embedding": None,
    "alibi_use_positive_positions": None,
    "alibi": 0,
    "scale_alibi": 0,
    "multi_query_attention": 0,
    "embeddings_merge": 0,
    "rotary_dim": 0,
    "rotary_interleave": 0,
    "rotary_base": 10_000,
    "with_source_bos": 0,
    "with_source_eos": 1,
    "with_target_bos": None,
}
GATES = {"swish": "swiglu", "gelu": "geglu", "gelu-tanh": "geglu-tanh"}


def _attention(ours: str, theirs: str) -> list[Rule]:
    return [
        *spread([rule(f"{ours}.projection.{{kind}}", f"{theirs}/linear_0/{{kind}}")], kind=LINEAR),
        *spread([rule(f"{ours}.output.{{kind}}", f"{theirs}/linear_1/{{kind}}")], kind=LINEAR),
        rule(f"{ours}.positions.keys", f"{theirs}/relative_position_keys"),
        rule(f"{ours}.positions.values", f"{theirs}/relative_position_values"),
    ]


def _cross(width: int) -> list[Rule]:
    """Queries come from the target, keys and values from the source: two matrices."""
    both = ["attention/linear_0/{kind}", "attention/linear_1/{kind}"]
    rules = [
        rule("cross_attention.projection.{kind}", both, Joined((width, 2 * width))),
        rule("cross_attention.output.{kind}", "attention/linear_2/{kind}"),
    ]
    return [*spread(rules, kind=LINEAR), *_norm("cross_residual", "attention")]


def _norm(ours: str, theirs: str) -> list[Rule]:
    table = [rule(f"{ours}.norm.{{kind}}", f"{theirs}/layer_norm/{{kind}}")]
    return spread(table, kind=NORM)


def _feed_forward(*, gated: bool) -> list[Rule]:
    inner = rule("feed_forward.inner.{kind}", "ffn/linear_0/{kind}")
    if gated:  # ours alternates gate and value
        both = ["ffn/linear_0/{kind}", "ffn/linear_0_noact/{kind}"]
        inner = rule("feed_forward.inner.{kind}", both, Interleaved())
    outer = rule("feed_forward.outer.{kind}", "ffn/linear_1/{kind}")
    return [*spread([inner, outer], kind=LINEAR), *_norm("feed_forward_residual", "ffn")]


def layout(
    settings: TransformerSettings,
    names: Collection[str],
    *,
    source: Operation = SAME,
    target: Operation = SAME,
    output: Operation = SAME,
    bias: Operation = SAME,
) -> WeightLayout:
    """Return the rules of those parameters that the model has, which are given by their names.

    The operations change the rows of embeddings and output.
    """
    last = _feed_forward(gated=settings.activation in GATED)
    tables = {
        "encoder": [
            *_attention("attention", "self_attention"),
            *_norm("attention_residual", "self_attention"),
            *last,
        ],
        "decoder": [
            *_attention("self_attention", "self_attention"),
            *_norm("self_residual", "self_attention"),
            *_cross(settings.model_dim),
            *last,
        ],
    }
    depths = {"encoder": settings.layers, "decoder": settings.decoder_layers or settings.layers}
    encoder, decoder = "encoder/embeddings_0/weight", "decoder/embeddings/weight"
    projection = "decoder/projection/weight"
    rules = [
        one.inside(f"{stack}.layers.{number}.", f"{stack}/layer_{number}/")
        for stack, depth in depths.items()
        for number in range(depth)
        for one in tables[stack]
    ]
    for stack in depths:
        norm = rule(f"{stack}.embedded.norm.{{kind}}", f"{stack}/layernorm_embedding/{{kind}}")
        rules += [*spread([norm], kind=NORM), *_norm(stack, stack)]
    copies: dict[str, str] = {}
    rules.append(rule("decoder.embedded.embedding.weight", decoder, target))
    if settings.tie in ("all", "inputs"):
        copies[encoder] = decoder
    else:
        rules.append(rule("encoder.embedded.embedding.weight", encoder, source))
    if settings.tie in ("all", "target"):
        copies[projection] = decoder
    else:
        rules.append(rule("projection.weight", projection, output))
    rules.append(rule("projection.bias", "decoder/projection/bias", bias))
    return WeightLayout(rules=[one for one in rules if one.ours[0] in names], copies=copies)


def settings_of(options: Options, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the settings of a model by its flags, and by the tensors that it has."""
    flags = {name: part.item() for name, part in tensors.items() if part.dim() == 0}
    both = Options(flags, options.origin, options.problems)
    for name in ("num_heads", "pre_norm", "activation", "scale_embeddings"):
        both.same(f"encoder/{name}", f"decoder/{name}")
    for name, value in flags.items():
        kind = name.rpartition("/")[2]
        if kind not in FLAGS:
            options.problems.append(f"{name} = {value:g} (not known)")
        elif FLAGS[kind] not in (None, value):
            options.problems.append(f"{name} = {value:g} (only {FLAGS[kind]} is supported)")
    width = tensors["decoder/embeddings/weight"].shape[-1]
    gated = "encoder/layer_0/ffn/linear_0_noact/weight" in tensors
    activation = both.among("encoder/activation", ACTIVATIONS, 0)
    scale = float(both.get("encoder/scale_embeddings", 1))
    if not any(math.isclose(scale, known, rel_tol=1e-6) for known in (0, 1, math.sqrt(width))):
        options.problems.append(f"scale_embeddings = {scale:g}")
    # A flag scales by the root of the width; a number is the factor itself.
    is_flag = not tensors.get("encoder/scale_embeddings", torch.ones(())).is_floating_point()
    biases = [f"encoder/layer_0/self_attention/linear_{place}/bias" in tensors for place in (0, 1)]
    rms = "encoder/layer_0/ffn/layer_norm/beta" not in tensors
    return {
        "layers": _depth("encoder", tensors),
        "decoder_layers": _depth("decoder", tensors),
        "model_dim": width,
        "heads": both.number("encoder/num_heads", 8),
        "feed_forward": len(tensors.get("encoder/layer_0/ffn/linear_0/weight", [0])),
        "norm_placement": "pre" if both.get("encoder/pre_norm", 1) else "post",
        "norm": "rms" if rms else "layer",
        "norm_epsilon": options.get("layer_norm_epsilon"),
        "embedding_norm": "encoder/layernorm_embedding/gamma" in tensors,
        "activation": GATES.get(activation, activation) if gated else activation,
        "scaled_embeddings": bool(scale) if is_flag else scale != 1,
        "attention_biases": {(True, True): "all", (True, False): "inputs"}.get(
            (biases[0], biases[1]), "none"
        ),
        "feed_forward_biases": "encoder/layer_0/ffn/linear_0/bias" in tensors,
        "output_bias": "decoder/projection/bias" in tensors,
        "tie": _tie(tensors),
        "alignment_layer": int(both.get("decoder/alignment_layer", -1)),
        **_positions(tensors, flags),
    }


def _depth(stack: str, tensors: Mapping[str, Tensor]) -> int:
    depth = 0
    while any(name.startswith(f"{stack}/layer_{depth}/") for name in tensors):
        depth += 1
    return depth


def _tie(tensors: Mapping[str, Tensor]) -> str:
    """Return which tables are one: equal values in a file are one variable with two names."""
    source, target, output = (
        tensors[name]
        for name in (
            "encoder/embeddings_0/weight",
            "decoder/embeddings/weight",
            "decoder/projection/weight",
        )
    )
    inputs, outputs = torch.equal(source, target), torch.equal(target, output)
    return {(True, True): "all", (True, False): "inputs", (False, True): "target"}.get(
        (inputs, outputs), "none"
    )


def _positions(tensors: Mapping[str, Tensor], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kind of positions; a table of sinusoids is recognised as what it is."""
    if "encoder/layer_0/self_attention/relative_position_keys" in tensors:
        rows = len(tensors["encoder/layer_0/self_attention/relative_position_keys"])
        return {"positions": "relative", "reach": max(1, rows // 2)}
    if any(name.endswith("/rotary_dim") for name in flags):
        return {"positions": "rotary"}
    table = tensors.get("encoder/position_encodings/encodings")
    if table is None:  # computed: from 1 on, all sines first, the slowest wave 10000
        return {"sinusoids": "halves", "stretched_sinusoids": True, "sinusoid_offset": 1}
    if not bool(table.any()):
        return {"positions": "none"}
    learned = {"positions": "learned", "max_length": len(table)}
    return sinusoid_settings(table) or learned


def read(files: ForeignFiles) -> ForeignModel:
    """Return the model of a folder; it must hold the SentencePiece models of its vocabularies."""
    path = files.folder / "config.json"
    options = Options(read_config(path) if path.is_file() else {}, files.weights)
    tensors = read_ctranslate2(files.weights)
    for name in ("encoder/embeddings_0", "decoder/embeddings", "decoder/projection"):
        if tensors.get(f"{name}/weight", torch.empty(0)).dim() != 2:
            raise RunError(f"{files.weights} has no matrix '{name}/weight'.")
    table = settings_of(options, tensors)
    begins = not bool(tensors.get("decoder/start_from_zero_embedding", torch.zeros(())).any())
    numbered = {
        side: _tokenizer(
            files.folder, side, options, rows=len(tensors[f"{name}/weight"]), begins=begins
        )
        for side, name in (("source", "encoder/embeddings_0"), ("target", "decoder/embeddings"))
    }
    (source, source_rows), (target, target_rows) = numbered["source"], numbered["target"]
    # Without an option that says so, a model of theirs reads sources without an end mark.
    given_end = options.get("add_source_eos", "with_source_eos" in tensors)
    Options({"add_source_eos": given_end}, path, options.problems).expect(add_source_eos=True)
    options.expect(add_source_bos=False)
    options.finish()
    if target_rows is not None and target_rows.never:
        table["output_bias"] = True  # so that tokens that we add are never chosen
    try:
        settings = validate(table, TransformerSettings, origin=str(files.weights))
    except SettingsError as error:
        raise RunError(str(error)) from None
    model = built(
        lambda: build_translator(settings, source_vocab=source.size, target_vocab=target.size),
        tensors,
        origin=files.weights,
    )
    table_of_rules, given = _rules(settings, model, tensors, source_rows, target_rows)
    leftovers = fill(model, table_of_rules, given, origin=files.weights)
    ours = isinstance(source, SentencePieceTokenizer)
    tokenizer = {
        "kind": "sentencepiece" if ours else "imported",
        "shared": settings.tie in ("all", "inputs"),
    }
    return ForeignModel(
        task="translate",
        model=model.eval(),
        settings=settings,
        tokenizers={"source": source, "target": target},
        layout=table_of_rules,
        recipe={"tokenizer": tokenizer},
        leftovers=leftovers,
    )


def _rules(
    settings: TransformerSettings,
    model: torch.nn.Module,
    tensors: Tensors,
    source: Numbering | None,
    target: Numbering | None,
) -> tuple[WeightLayout, Tensors]:
    """Return the layout with the rows of each vocabulary, and the tensors that it accounts for."""
    names = dict(model.named_parameters(remove_duplicate=False))
    given = {name: part for name, part in tensors.items() if part.dim() > 0}
    rows = len(given["decoder/projection/weight"])
    if settings.output_bias:
        given.setdefault("decoder/projection/bias", torch.zeros(rows))
    operations: dict[str, Operation] = {}
    if source is not None:
        operations["source"] = Selected(source.theirs, source.size)
    if target is not None:
        operations["target"] = Selected(target.theirs, target.size)
        operations["output"] = Selected(target.chosen, target.size)
        operations["bias"] = Selected(target.chosen, target.size, NEVER, exact=False)
    found = layout(settings, names, **operations)
    learned = [
        rule(f"{stack}.embedded.positions.vectors", f"{stack}/position_encodings/encodings")
        for stack in ("encoder", "decoder")
    ]
    leftovers = {}
    if settings.positions == "learned":
        found = WeightLayout(rules=[*found.rules, *learned], copies=found.copies)
    else:
        leftovers = {r"\w+/position_encodings/encodings": "sinusoids, which are computed here"}
    return WeightLayout(rules=found.rules, copies=found.copies, leftovers=leftovers), given


def _tokenizer(
    folder: Path, side: str, options: Options, *, rows: int, begins: bool
) -> tuple[Tokenizer, Numbering | None]:
    """Return a tokenizer and how its ids are numbered there; None for a tokenizer of ours.

    `begins` says whether a decoder begins with a token, or else with zeros.
    """
    tokens = _vocabulary(folder, side)
    if len(tokens) != rows:
        raise RunError(
            f"{folder}: the {side} vocabulary has {len(tokens)} entries, but the model has rows "
            f"for {rows}: the files belong to different models."
        )
    names = ("sentencepiece.model", f"{side}.model", f"{side}.spm")
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        raise RunError(
            f"{folder} holds no SentencePiece model ({', '.join(names)}), which splits the text."
        )
    try:
        content = found[0].read_bytes()
        splitter = SentencePieceSplitter(content)
        pieces = [splitter.token(number) for number in range(splitter.size)]
        if pieces == tokens:
            try:
                return SentencePieceTokenizer(content), None
            except ValueError:
                pass  # its special tokens have other ids than ours
        ids = {token: number for number, token in enumerate(tokens)}
        splitter = SentencePieceSplitter(content, ids)
    except (OSError, ValueError) as error:
        raise RunError(f"{found[0]}: {error}.") from None
    roles = {
        "unknown": options.get("unk_token", "<unk>"),
        "begin": options.get("decoder_start_token", "<s>") if begins else None,
        "end": options.get("eos_token", "</s>"),
        "pad": next((name for name in ("<pad>", "<blank>") if name in ids), "<pad>"),
    }
    places = {role: ids.get(str(name)) for role, name in roles.items()}
    numbering = Numbering(
        size=rows,
        pad=places["pad"],
        unknown=places["unknown"],
        begin=places["begin"],
        end=places["end"],
    )
    if numbering.end is None:
        raise RunError(f"{folder}: the {side} vocabulary has no end mark {roles['end']!r}.")
    return ImportedTokenizer(splitter, numbering), numbering


def _vocabulary(folder: Path, side: str) -> list[str]:
    """Return the tokens of a vocabulary: JSON, or a token a line in older models."""
    for name in (f"{side}_vocabulary", "shared_vocabulary"):
        json_file, lines = folder / f"{name}.json", folder / f"{name}.txt"
        try:
            if json_file.is_file():
                tokens = parse_json(json_file.read_bytes())
                if not isinstance(tokens, list) or not all(isinstance(x, str) for x in tokens):
                    raise RunError(f"{json_file} is not a list of tokens.")
                return tokens
            if lines.is_file():
                return lines.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        except (OSError, ValueError) as error:
            raise RunError(f"{json_file} cannot be read: {error}.") from None
    raise RunError(f"{folder} holds no vocabulary of the {side} ({side}_vocabulary.json).")


FORMAT = Format(
    name="ctranslate2",
    title="CTranslate2 (model.bin with vocabularies and SentencePiece models)",
    detect=lambda weights: weights.suffix == ".bin" and is_ctranslate2(weights),
    read=read,
)
