"""Translators that were trained here, for `transformers`: MarianMT (post-norm), Pegasus (pre-norm).

Both are the paper's Transformer; their positions are a table in the file, so that ours fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from regard.base.errors import SettingsError
from regard.base.files import write_file, write_json
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import BEGIN, END, PAD
from regard.exchange.fairseq import POSITIONS, stack_rules
from regard.exchange.formats import ModelParts
from regard.exchange.hugging_face import CONFIG, WEIGHTS
from regard.exchange.hugging_face.bart import COMMON, position_tables
from regard.exchange.layout import WeightLayout, written
from regard.exchange.sources import write_safetensors
from regard.settings.models import TransformerSettings
from regard.text.sentencepiece import SentencePieceTokenizer

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_new", "swish": "swish"}
MARIAN, PEGASUS = "marian", "pegasus"
MODELS = {MARIAN: "MarianMTModel", PEGASUS: "PegasusForConditionalGeneration"}
PAGE = """# A translation model for `transformers`

Made with Regard. It is a {model}.

```python
{code}```
{notes}
"""
CODE = """\
from transformers import {model}, MarianTokenizer

model = {model}.from_pretrained("path/to/this/folder")
tokenizer = MarianTokenizer.from_pretrained("path/to/this/folder")
found = model.generate(**tokenizer(["..."], return_tensors="pt"), num_beams=1)
print(tokenizer.batch_decode(found, skip_special_tokens=True))
"""
BARE = """\
from transformers import {model}

model = {model}.from_pretrained("path/to/this/folder")
"""
NO_TOKENIZER = """
Hugging Face has no form for the tokenizer of this model (tokenizer.kind="{kind}"), so the folder
holds none: give the model ids, with 3 at the end of a source.
"""


def require_writable(settings: object) -> tuple[TransformerSettings, str]:
    """Return the settings and the architecture, or raise an error that names what is lacking."""
    if not isinstance(settings, TransformerSettings):
        raise SettingsError(
            "MarianMT and Pegasus are Transformers: a recurrent model cannot be written as one."
        )
    kind = MARIAN if settings.norm_placement == "post" else PEGASUS
    wanted = {name: value for name, value in COMMON.items() if name != "tie"}
    wrong = [
        f"model.{name} = {getattr(settings, name)!r}"
        for name, value in wanted.items()
        if getattr(settings, name) != value
    ]
    known = {
        "positions": ("sinusoidal", "learned", "none"),
        "activation": tuple(ACTIVATIONS),
        "embedding_norm": (False,),
        "tie": ("all",) if kind == PEGASUS else ("none", "target", "all"),
    }
    wrong += [
        f"model.{name} = {getattr(settings, name)!r}"
        for name, values in known.items()
        if getattr(settings, name) not in values
    ]
    if wrong:
        title = "MarianMT" if kind == MARIAN else "Pegasus (the form of pre-norm models)"
        raise SettingsError(
            f"{title} has no {', '.join(wrong)}, so this model cannot be written in its layout."
        )
    return settings, kind


@torch.no_grad()
def write_trained(parts: ModelParts, folder: Path) -> None:
    """Write a translator that was trained here so that `transformers` loads it."""
    settings, kind = require_writable(parts.settings)
    model: Any = parts.model
    tensors = written(model, WeightLayout(rules=stack_rules(settings, prefix="model.")))
    tensors |= position_tables(model, settings)
    for stack in ("encoder", "decoder"):
        if settings.tie != "all":
            table = getattr(model, stack).embedded.embedding.weight.detach().clone()
            tensors[f"model.{stack}.embed_tokens.weight"] = table
    if settings.tie == "all":
        tensors["model.shared.weight"] = model.decoder.embedded.embedding.weight.detach().clone()
    if settings.tie == "none":
        tensors["lm_head.weight"] = model.projection.weight.detach().clone()
    bias = model.projection.bias
    size = model.projection.out_features
    tensors["final_logits_bias"] = torch.zeros(1, size) if bias is None else bias.detach()[None]
    rows = len(tensors[POSITIONS.format(stack="decoder")])
    sizes = (parts.tokenizers["source"].size, parts.tokenizers["target"].size)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / CONFIG, _config(settings, kind, sizes=sizes, rows=rows))
    write_json(folder / "generation_config.json", _generation(rows))
    write_safetensors(folder / WEIGHTS, {name: part.contiguous() for name, part in tensors.items()})
    write_file(folder / "README.md", _write_tokenizers(parts.tokenizers, folder, MODELS[kind]))


def _generation(rows: int) -> dict[str, Any]:
    """Return how to search: greedily, never padding or the begin mark."""
    return {
        "pad_token_id": PAD,
        "eos_token_id": END,
        "decoder_start_token_id": BEGIN,
        "bad_words_ids": [[PAD], [BEGIN]],
        "max_length": min(rows, 512),
        "num_beams": 1,
    }


def _config(
    settings: TransformerSettings, kind: str, *, sizes: tuple[int, int], rows: int
) -> dict[str, Any]:
    sides = {"attention_heads": settings.heads, "ffn_dim": settings.feed_forward}
    only = {
        "decoder_vocab_size": sizes[1],
        "share_encoder_decoder_embeddings": settings.tie == "all",
    }
    return {
        "model_type": kind,
        "architectures": [MODELS[kind]],
        "is_encoder_decoder": True,
        "vocab_size": sizes[0],
        "d_model": settings.model_dim,
        "encoder_layers": settings.layers,
        "decoder_layers": settings.decoder_layers or settings.layers,
        **{f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in sides.items()},
        "activation_function": ACTIVATIONS[settings.activation],
        "scale_embedding": settings.scaled_embeddings,
        "static_position_embeddings": True,
        "max_position_embeddings": rows,
        "tie_word_embeddings": settings.tie != "none",
        "dropout": settings.dropout,
        "attention_dropout": settings.attention_dropout,
        "activation_dropout": settings.activation_dropout,
        "pad_token_id": PAD,
        "eos_token_id": END,
        "decoder_start_token_id": BEGIN,
        "forced_eos_token_id": None,
        **(only if kind == MARIAN else {}),
    }


def _write_tokenizers(tokenizers: Any, folder: Path, model: str) -> str:
    """Write two SentencePiece models with their ids; return the page of the folder."""
    sides: dict[str, Tokenizer] = {name: tokenizers[name] for name in ("source", "target")}
    if not all(isinstance(one, SentencePieceTokenizer) for one in sides.values()):
        kind = type(sides["source"]).__name__.removesuffix("Tokenizer").lower()
        notes = NO_TOKENIZER.format(kind=kind)
        return PAGE.format(model=model, code=BARE.format(model=model), notes=notes)
    tables = []
    for name, tokenizer in sides.items():
        if isinstance(tokenizer, SentencePieceTokenizer):
            write_file(folder / f"{name}.spm", tokenizer.model)
            processor = sentencepiece.SentencePieceProcessor()
            processor.load_from_serialized_proto(tokenizer.model)
            tables.append({processor.id_to_piece(n): n for n in range(len(processor))})
    shared = tables[0] == tables[1]
    write_file(folder / "vocab.json", json.dumps(tables[0], ensure_ascii=False))
    if not shared:
        write_file(folder / "target_vocab.json", json.dumps(tables[1], ensure_ascii=False))
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "MarianTokenizer", "separate_vocabs": not shared},
    )
    notes = "\nGive texts in Unicode's composed form (NFC), as in training.\n"
    return PAGE.format(model=model, code=CODE.format(model=model), notes=notes)
