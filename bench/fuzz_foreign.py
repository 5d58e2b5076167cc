"""Targets for models of other programs: small valid folders, of which one file is changed.

Imported models are used once, so that a reader that lets damage through does not count as fine.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import sentencepiece
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import fuzz_binary as binary
import fuzz_inputs as inputs
import regard
from fuzz_targets import FuzzTarget
from regard.exchange import fairseq, gat, marian
from regard.exchange.ctranslate2 import write_ctranslate2
from regard.exchange.formats import ModelParts, read_foreign
from regard.exchange.hugging_face import gpt2, llama
from regard.exchange.layout import written
from regard.exchange.operations import NEVER
from regard.exchange.sources import Options
from regard.models.build import build_translator
from regard.models.graph_classifier import build_graph_classifier
from regard.models.language_model import build_language_model
from regard.settings.language_models import CausalTransformerSettings
from regard.settings.models import (
    GraphModelSettings,
    TransformerSettings,
)
from regard.text.byte_bpe import ByteBpeTokenizer
from regard.text.imported import CodesSplitter, Numbering
from regard.text.sentencepiece import SentencePieceTokenizer
from regard.text.splitters import LibrarySplitter, SentencePieceSplitter, Splitter, read_splitter

LINES = ["the cat sat on the mat", "a dog ran to the cat", "on the mat sat a dog"] * 9
SMALL = {"layers": 1, "model_dim": 8, "heads": 2, "feed_forward": 8}
DICTIONARY = "".join(f"{word} 1\n" for word in ("the", "cat", "s@@", "at", "on", "mat"))
CODES = "#version: 0.2\na t</w>\nt h\nth e</w>\nc at</w>\n"
FAIRSEQ = {"encoder_embed_dim": 8, "encoder_ffn_embed_dim": 8, "encoder_layers": 1,
           "encoder_attention_heads": 2, "decoder_embed_dim": 8, "decoder_ffn_embed_dim": 8,
           "decoder_layers": 1, "decoder_attention_heads": 2, "source_lang": "en",
           "target_lang": "de"}  # fmt: skip
LLAMA = {"activation": "swiglu", "attention_biases": "none", "feed_forward_biases": False}
MARIAN = {"type": "transformer", "enc-depth": 1, "dec-depth": 1, "dim-emb": 8,
          "transformer-heads": 2, "transformer-dim-ffn": 8, "transformer-ffn-activation": "relu",
          "transformer-decoder-autoreg": "rnn", "dec-cell": "ssru", "tied-embeddings-all": True,
          "transformer-preprocess": "", "transformer-postprocess": "dan"}  # fmt: skip


def write_gpt2(folder: Path) -> None:
    """Write a language model with a `tokenizer.json`."""
    settings = CausalTransformerSettings.model_validate({**SMALL, "context": 10})
    tokenizer = ByteBpeTokenizer.train(LINES, size=265)
    model = build_language_model(settings, vocab=tokenizer.size).eval()
    gpt2.write(ModelParts(model=model, settings=settings, tokenizers={"text": tokenizer}), folder)


def write_torch(folder: Path) -> None:
    """Write the same with weights in a file of `torch.save`."""
    write_gpt2(folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def write_llama(folder: Path) -> None:
    """Write a language model with a SentencePiece model, its weights in two files."""
    options = {**SMALL, "context": 10, "norm": "rms", "positions": "rotary", **LLAMA}
    settings = CausalTransformerSettings.model_validate(options)
    tokenizer = SentencePieceTokenizer.train(LINES, size=300)
    model = build_language_model(settings, vocab=tokenizer.size).eval()
    llama.write(ModelParts(model=model, settings=settings, tokenizers={"text": tokenizer}), folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    places = {name: f"model-0000{1 + n % 2}-of-00002.safetensors" for n, name in enumerate(names)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in names if places[name] == file}, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}), encoding="utf-8")


def write_a_ctranslate2(folder: Path) -> None:
    """Write a translator with integer weights."""
    settings = TransformerSettings.model_validate({**SMALL, "tie": "all"})
    tokenizer = SentencePieceTokenizer.train(LINES, size=300)
    model = build_translator(settings, source_vocab=tokenizer.size, target_vocab=tokenizer.size)
    write_ctranslate2(folder, model=model.eval(), settings=settings, source_tokenizer=tokenizer,
                      target_tokenizer=tokenizer, quantization="int8")  # fmt: skip


def write_marian(folder: Path, *, packed: bool) -> None:
    """Write a translator as Marian does, as npz or in its own format."""
    folder.mkdir(parents=True)
    held = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=held, vocab_size=40, hard_vocab_limit=False,
        minloglevel=2, eos_id=0, unk_id=1, bos_id=-1, pad_id=-1,
    )  # fmt: skip
    (folder / "vocab.spm").write_bytes(held.getvalue())
    size = len(sentencepiece.SentencePieceProcessor(model_proto=held.getvalue()))
    settings = marian.settings_of(Options({**MARIAN, "dim-vocabs": [size, size]}, "config"))
    numbering = Numbering(size=size, unknown=1, end=0)
    model = build_translator(settings, source_vocab=size + 2, target_vocab=size + 2)
    with torch.no_grad():
        for stack in (model.encoder, model.decoder):
            stack.embedded.embedding.weight[[0, 2]] = 0  # type: ignore[union-attr, index]
    tensors = _arrays(model, marian.layout(settings, numbering, numbering))
    table = {**MARIAN, "dim-vocabs": [size, size]}
    text = "".join(
        f"{name}:\n  - {value[0]}\n  - {value[1]}\n" if isinstance(value, list)
        else f"{name}: {json.dumps(value)}\n"
        for name, value in table.items()
    ).encode()  # fmt: skip
    if packed:
        (folder / "model.bin").write_bytes(_marian_binary(tensors, text))
    else:
        config = {marian.CONFIG_ENTRY: np.frombuffer(text + b"\0", np.int8)}
        np.savez(folder / "model.npz", **tensors, **config)
    names = "models:\n  - model.npz\nvocabs:\n  - vocab.spm\n  - vocab.spm\nbeam-size: 2\n"
    (folder / "decoder.yml").write_text(names, encoding="utf-8")


def _arrays(model: nn.Module, layout: Any) -> dict[str, Any]:
    return {name: part.numpy() for name, part in written(model, layout).items()}


def _marian_binary(tensors: dict[str, Any], text: bytes) -> bytes:
    """Return a binary file of Marian: four numbers a tensor, names, shapes, numbers."""
    config = np.frombuffer(text + b"\0", np.int8)
    entries = [(name, 0x404, part) for name, part in tensors.items()]
    entries.append((marian.CONFIG_ENTRY, 0x101, config))  # type: ignore[arg-type]
    heads = [(len(n) + 1, kind, part.ndim, part.nbytes) for n, kind, part in entries]
    parts = [struct.pack("<QQ", 1, len(entries)), *(struct.pack("<4Q", *one) for one in heads)]
    parts += [name.encode() + b"\0" for name, _, _ in entries]
    parts += [struct.pack(f"<{part.ndim}i", *part.shape) for _, _, part in entries]
    return b"".join([*parts, struct.pack("<Q", 0), *(part.tobytes() for _, _, part in entries)])


def write_fairseq(folder: Path) -> None:
    """Write a translator with BPE codes and dictionaries."""
    folder.mkdir(parents=True)
    settings = fairseq.settings_of(Options(FAIRSEQ, "config"))
    size = 4 + DICTIONARY.count("\n")
    numbering = Numbering(size=size, pad=1, unknown=3, begin=2, end=2)
    model = build_translator(settings, source_vocab=size + 1, target_vocab=size + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.projection.bias[2] = NEVER  # type: ignore[union-attr, index]
    np.savez(folder / "model.npz", **_arrays(model, fairseq.layout(settings, numbering, numbering)))
    (folder / "config.json").write_text(json.dumps(FAIRSEQ), encoding="utf-8")
    (folder / "bpe.code").write_text(CODES, encoding="utf-8")
    for language in ("en", "de"):
        (folder / f"dict.{language}.txt").write_text(DICTIONARY, encoding="utf-8")


def write_gat(folder: Path) -> None:
    """Write a node classifier."""
    folder.mkdir(parents=True)
    table = {"heads": 2, "head_dim": 4, "features": 5, "classes": 2}
    settings = GraphModelSettings.model_validate(table)
    model = build_graph_classifier(settings, features=5, classes=2)
    np.savez(folder / "gat.npz", **_arrays(model, gat.layout(settings)))


WRITERS: dict[str, Callable[[Path], None]] = {
    "gpt2": write_gpt2,
    "torch": write_torch,
    "llama": write_llama,
    "ctranslate2": write_a_ctranslate2,
    "marian-npz": lambda folder: write_marian(folder, packed=False),
    "marian-bin": lambda folder: write_marian(folder, packed=True),
    "fairseq": write_fairseq,
    "gat": write_gat,
}


def foreign_targets(folder: Path) -> Iterator[FuzzTarget]:
    """Yield a target for every kind of foreign model, and for every kind of tokenizer file."""
    torch.manual_seed(1)
    for name, write in WRITERS.items():
        if not (folder / name).is_dir():
            write(folder / name)
        yield FuzzTarget(f"foreign-{name}", _import(folder / name), 50)
    library = ByteBpeTokenizer.train(LINES, size=265).description().encode()
    model = SentencePieceTokenizer.train(LINES, size=300).model
    codes = {"codes": CODES.encode(), "dict.txt": DICTIONARY.encode()}
    yield FuzzTarget("tokenizer-json", _split(LibrarySplitter, {"tokenizer.json": library}), 500)
    yield FuzzTarget("sentencepiece", _split(SentencePieceSplitter, {"model": model}), 500)
    yield FuzzTarget("bpe-codes", _split(CodesSplitter, codes), 1_000)


def _import(origin: Path) -> Callable[[Random, Path], None]:
    """Read a changed model and use it; sometimes make a run of it."""

    def attempt(random: Random, folder: Path) -> None:
        copy = binary.changed_copy(origin, folder / "foreign", random)
        if random.random() < 0.1:
            shutil.rmtree(folder / "imported", ignore_errors=True)
            regard.import_model(copy, out=folder / "imported")
            regard.load(folder / "imported")
            return
        found = read_foreign(copy)
        for tokenizer in found.tokenizers.values():
            tokenizer.decode(tokenizer.encode("the cat"))

    return attempt


def _split(kind: type[Splitter], files: dict[str, bytes]) -> Callable[[Random, Path], None]:
    """Split and join a text by a changed vocabulary."""

    def attempt(random: Random, folder: Path) -> None:
        chosen, paths = random.choice(list(files)), {}
        for name, content in files.items():
            paths[name] = folder / f"split.{name}"
            is_text = name in ("codes", "dict.txt")
            parts = ("\n", " ", "@@", "</w>", "0", "#")
            if name == chosen and is_text:
                content = inputs.mutated(content, parts, random)
            elif name == chosen:
                change = inputs.json_file_input if name.endswith("json") else binary.any_change
                content = change(content, random)
            paths[name].write_bytes(content)
        splitter = read_splitter(kind, paths, origin=folder)
        ids = splitter.encode("the cat sat — 猫")
        splitter.decode(ids)
        for number in [*ids[:9], 0, splitter.size - 1]:
            splitter.label(number), splitter.surface(number)
        splitter.find("</s>")

    return attempt
