from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.exchange.test_ctranslate2 import EXPORTABLE, SMALL
from tests.text.mixed_scripts import mixed_lines

import regard
from regard.base.errors import RunError
from regard.exchange.binary import read_ctranslate2
from regard.exchange.ctranslate2 import write_ctranslate2
from regard.exchange.formats import ForeignModel, read_foreign
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.settings.models import TransformerSettings
from regard.text.sentencepiece import SentencePieceTokenizer

LINES = mixed_lines(300)
TOKENIZER = SentencePieceTokenizer.train(LINES, size=800)


def exported(
    folder: Path, *, quantization: Any = None, **options: Any
) -> tuple[Translator[Any], TransformerSettings]:
    torch.manual_seed(3)
    settings = TransformerSettings.model_validate(SMALL | options)
    model = build_translator(settings, source_vocab=TOKENIZER.size, target_vocab=TOKENIZER.size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    write_ctranslate2(
        folder,
        model=model.eval(),
        settings=settings,
        source_tokenizer=TOKENIZER,
        target_tokenizer=TOKENIZER,
        quantization=quantization,
    )
    return model, settings


@torch.no_grad()
def logits_of(model: Any) -> torch.Tensor:
    torch.manual_seed(4)
    source, target = torch.randint(4, TOKENIZER.size, (2, 3, 9))
    mask = torch.ones_like(source, dtype=torch.bool)
    found: torch.Tensor = model.project(model(source, mask, target).features)
    return found


@pytest.mark.parametrize("options", EXPORTABLE.values(), ids=EXPORTABLE)
def test_what_was_exported_is_imported_with_the_same_logits(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    model, settings = exported(tmp_path / "model", **options)
    found = read_foreign(tmp_path / "model")
    torch.testing.assert_close(logits_of(found.model), logits_of(model), atol=1e-5, rtol=1e-5)
    sizes = [sum(p.numel() for p in each.parameters()) for each in (found.model, model)]
    offset = 2 * settings.learned_offset * settings.model_dim  # rows that are never read
    assert sizes[0] == sizes[1] - offset
    source = found.tokenizers["source"]
    assert all(source.encode(line) == TOKENIZER.encode(line) for line in LINES)


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "bfloat16"])
def test_coarser_weights_are_near(tmp_path: Path, quantization: str) -> None:
    model, _ = exported(tmp_path / "model", quantization=quantization)
    found = read_foreign(tmp_path / "model")
    rough = {"int8": 0.1, "bfloat16": 0.1}.get(quantization, 0.01)
    torch.testing.assert_close(logits_of(found.model), logits_of(model), atol=rough, rtol=rough)


def older(path: Path, version: int) -> None:
    """Write a file of version 6 as an older one."""
    content = path.read_bytes()
    place = 4
    written = bytearray(struct.pack("<I", version))

    def take(count: int) -> bytes:
        nonlocal place
        place += count
        return content[place - count : place]

    def text() -> bytes:
        size = take(2)
        return size + take(struct.unpack("<H", size)[0])

    written += text() + take(4)
    (count,) = struct.unpack("<I", take(4))
    variables = {}
    for _ in range(count):
        name = text()
        rank = take(1)
        shape = take(4 * rank[0])
        (kind,), (size,) = take(1), struct.unpack("<I", take(4))
        variables[name] = (rank + shape, kind, take(size))
    for _ in range(struct.unpack("<I", take(4))[0]):
        alias, name = text(), text()
        variables[alias] = variables[name]
    written += struct.pack("<I", len(variables))
    for name, (shape, kind, data) in variables.items():
        width = {0: 4, 1: 1, 2: 2, 3: 4}[kind]
        size = len(data) if version >= 4 else len(data) // width
        written += name + shape + struct.pack("<BI", kind if version >= 4 else width, size) + data
    if version >= 3:
        written += struct.pack("<I", 0)
    path.write_bytes(written)


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_older_versions_of_the_format(tmp_path: Path, version: int) -> None:
    model, _ = exported(tmp_path / "model", tie="all")
    before = read_ctranslate2(tmp_path / "model" / "model.bin")
    older(tmp_path / "model" / "model.bin", version)
    after = read_ctranslate2(tmp_path / "model" / "model.bin")
    wide = {n: t for n, t in after.items() if t.dim()}
    assert all(torch.equal(before[name], tensor) for name, tensor in wide.items())
    if version >= 4:  # before, the type of a single number cannot be told from its size
        found = read_foreign(tmp_path / "model")
        torch.testing.assert_close(logits_of(found.model), logits_of(model))


def test_another_order_of_the_vocabulary(tmp_path: Path) -> None:
    """Special tokens at other ids are moved; the model computes the same."""
    exported(tmp_path / "model", output_bias=True)
    plain = read_foreign(tmp_path / "model")
    tokens = json.loads((tmp_path / "model" / "shared_vocabulary.json").read_text())
    order = [3, 1, *range(4, len(tokens)), 0, 2]  # </s>, <unk>, ..., <pad>, <s>
    (tmp_path / "model" / "shared_vocabulary.json").write_text(
        json.dumps([tokens[number] for number in order])
    )
    path = tmp_path / "model" / "model.bin"
    content = path.read_bytes()
    for name in ("encoder/embeddings_0/weight", "decoder/embeddings/weight"):
        table = read_ctranslate2(path)[name]
        assert table.numpy().tobytes() in content
        content = content.replace(table.numpy().tobytes(), table[order].numpy().tobytes())
    bias = read_ctranslate2(path)["decoder/projection/bias"]
    path.write_bytes(content.replace(bias.numpy().tobytes(), bias[order].numpy().tobytes()))
    found = read_foreign(tmp_path / "model")
    torch.testing.assert_close(logits_of(found.model), logits_of(plain.model))
    assert found.tokenizers["target"].encode("the cat") == TOKENIZER.encode("the cat")


def folder_of(tmp_path: Path) -> Path:
    exported(tmp_path / "model", layers=1)
    return tmp_path / "model"


def cut(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:count])


def replace(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def change_config(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: cut(f / "model.bin", 3_000), "cut short or damaged: at byte"),
        (lambda f: cut(f / "model.bin", 30), "cut short or damaged: at byte"),
        (
            lambda f: replace(f / "model.bin", b"\x10\0TransformerSpec\0", b"\x0c\0WhisperSpec\0"),
            "holds a WhisperSpec; only a TransformerSpec",
        ),
        (
            lambda f: replace(
                f / "model.bin", b"linear_1/bias\0\x01\x20", b"linear_1/bias\0\x01\xff"
            ),
            "needs 1,020 bytes and has 128",
        ),
        (
            lambda f: replace(f / "model.bin", b"ffn/linear_1/bias", b"ffn/linear_1/bios"),
            "no tensor",
        ),
        (lambda f: (f / "shared_vocabulary.json").unlink(), "no vocabulary of the source"),
        (lambda f: (f / "shared_vocabulary.json").write_text("[1]"), "not a list of tokens"),
        (lambda f: (f / "shared_vocabulary.json").write_text('["a"]'), "has 1 entries"),
        (lambda f: (f / "sentencepiece.model").unlink(), "no SentencePiece model"),
        (lambda f: (f / "sentencepiece.model").write_bytes(b"x"), "not a SentencePiece model"),
        (
            lambda f: change_config(f / "config.json", add_source_eos=False, add_source_bos=True),
            "add_source_eos = False .*; add_source_bos = True",
        ),
    ],
)
def test_damaged_folders(tmp_path: Path, damage: Any, message: str) -> None:
    folder = folder_of(tmp_path)
    damage(folder)
    with pytest.raises(RunError, match=message):
        regard.import_model(folder, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_of_it_translates_as_the_exported_one(tmp_path: Path) -> None:
    exported(tmp_path / "model", tie="all", norm_placement="pre")
    found: ForeignModel = read_foreign(tmp_path / "model")
    regard.import_model(tmp_path / "model", out=tmp_path / "run")
    loaded = regard.load(tmp_path / "run")
    ctranslate2 = pytest.importorskip("ctranslate2")
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    names = [TOKENIZER.pieces([n])[0] for n in range(TOKENIZER.size)]
    assert found.tokenizers["source"].size == len(names)
    texts = LINES[:8]
    processor = TOKENIZER._processor
    pieces = [[processor.id_to_piece(n) for n in TOKENIZER.encode(text)] for text in texts]
    theirs = translator.translate_batch(pieces, beam_size=1, max_decoding_length=12)
    ours = loaded.translate(texts, beam=1, max_length=12)
    for one, other in zip(ours, theirs, strict=True):
        ids = [processor.piece_to_id(piece) for piece in other.hypotheses[0]]
        assert TOKENIZER.decode(ids) == one.text
