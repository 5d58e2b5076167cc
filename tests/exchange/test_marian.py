from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
from tests.text.mixed_scripts import mixed_lines

import regard
from regard.base.errors import RunError
from regard.exchange.binary import read_marian
from regard.exchange.formats import ForeignModel, read_foreign
from regard.exchange.layout import fill, written
from regard.exchange.marian import layout, parse_yaml, settings_of, without_bias
from regard.exchange.sources import Options
from regard.models.build import build_translator
from regard.text.imported import Numbering

LINES = mixed_lines(400)
CONFIG: dict[str, Any] = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 1,
    "dim-emb": 16,
    "transformer-heads": 2,
    "transformer-dim-ffn": 24,
    "transformer-ffn-activation": "relu",
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "tied-embeddings-all": True,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
}
FORMS: dict[str, dict[str, Any]] = {
    "a student": {},
    "self-attention": {"transformer-decoder-autoreg": "self-attention"},
    "norm first": {
        "transformer-preprocess": "n",
        "transformer-postprocess": "da",
        "transformer-postprocess-top": "n",
    },
    "two tables": {"tied-embeddings-all": False, "tied-embeddings": True},
    "untied": {"tied-embeddings-all": False, "transformer-guided-alignment-layer": 1},
}


def yaml(table: dict[str, Any]) -> str:
    lines = []
    for name, value in table.items():
        if isinstance(value, list):
            lines += [f"{name}:", *(f"  - {one}" for one in value)]
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def marian_folder(folder: Path, **changes: Any) -> dict[str, np.ndarray]:
    """A random model as Marian keeps it: weights with their configuration, and a vocabulary."""
    folder.mkdir()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        vocab_size=500,
        hard_vocab_limit=False,
        minloglevel=2,
        eos_id=0,
        unk_id=1,
        bos_id=-1,
        pad_id=-1,
    )
    (folder / "vocab.spm").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor()
    processor.load_from_serialized_proto(model.getvalue())
    size = len(processor)
    config = {**CONFIG, "dim-vocabs": [size, size], **changes}
    settings = settings_of(Options(config, "config"))
    numbering = Numbering(size=size, unknown=1, end=0)
    torch.manual_seed(5)
    built = build_translator(settings, source_vocab=size + 2, target_vocab=size + 2)
    table = layout(settings, numbering, numbering)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_(std=0.2)
        for stack in (built.encoder, built.decoder):
            stack.embedded.embedding.weight[[0, 2]] = 0  # rows that Marian has not
        if settings.tie == "none":
            built.projection.weight[[0, 2]] = 0
    tensors = {name: part.numpy() for name, part in written(built, table).items()}
    text = np.frombuffer(yaml(config).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **tensors, **{"special:model.yml": text})
    decoder = {"models": ["model.npz"], "vocabs": ["vocab.spm", "vocab.spm"], "beam-size": 1}
    (folder / "decoder.yml").write_text(yaml({**decoder, "normalize": 1}))
    return tensors


@pytest.mark.parametrize("changes", FORMS.values(), ids=FORMS)
def test_one_table_reads_and_writes(tmp_path: Path, changes: dict[str, Any]) -> None:
    tensors = marian_folder(tmp_path / "model", **changes)
    found = read_foreign(tmp_path / "model")
    back = written(found.model, found.layout)
    assert back.keys() == tensors.keys()
    assert all(np.array_equal(back[name].numpy(), tensors[name]) for name in tensors)
    assert found.recipe["decoding"] == {
        "beam": 1,
        "length_penalty": 1.0,
        "length_penalty_kind": "average",
    }
    model: Any = found.model
    source = torch.tensor([[*found.tokenizers["source"].encode("the cat"), 3]])
    mask = torch.ones_like(source, dtype=torch.bool)
    with torch.no_grad():
        logits = model.project(model(source, mask, torch.tensor([[2, 5]])).features)
    assert float(logits.softmax(-1)[..., [0, 2]].sum()) == 0  # rows that Marian has not


def binary(tensors: dict[str, np.ndarray], config: str) -> bytes:
    """Write tensors in Marian's binary format, matrices as int8."""
    entries = []
    for name, tensor in tensors.items():
        if min(tensor.shape) > 1:
            multiplier = np.float32(127 / np.abs(tensor).max())
            whole = np.round(tensor * multiplier).astype(np.int8)
            stored = whole if name.endswith("Wemb") else whole.T
            data = stored.tobytes() + multiplier.tobytes() + bytes(252)
            entries.append((name, 0x4101, tensor.shape, data))
            entries.append((f"{name}_QuantMultA", 0x404, (1, 1), multiplier.tobytes()))
        else:
            entries.append((name, 0x404, tensor.shape, tensor.tobytes()))
    text = config.encode() + b"\0"
    entries.append(("special:model.yml", 0x101, (len(text),), text))
    header = struct.pack("<QQ", 1, len(entries))
    for name, kind, shape, data in entries:
        header += struct.pack("<4Q", len(name) + 1, kind, len(shape), len(data))
    header += b"".join(name.encode() + b"\0" for name, *_ in entries)
    header += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in entries)
    return header + struct.pack("<Q", 5) + bytes(5) + b"".join(data for *_, data in entries)


def binary_folder(folder: Path) -> Path:
    tensors = marian_folder(folder)
    size = len(tensors["Wemb"])
    config = yaml({**CONFIG, "dim-vocabs": [size, size]})
    (folder / "model.npz").unlink()
    (folder / "model.bin").write_bytes(binary(tensors, config))
    return folder / "model.bin"


def test_the_binary_file_is_read_and_dequantised(tmp_path: Path) -> None:
    path = binary_folder(tmp_path / "model")
    tensors, config = read_marian(path)
    assert parse_yaml(config)["dec-cell"] == "ssru"
    found: ForeignModel = read_foreign(path)
    assert set(found.leftovers.values()) == {
        "how int8 arithmetic scales activations; here arithmetic is float32"
    }
    back = written(found.model, found.layout)
    assert all(torch.equal(part, tensors[name]) for name, part in back.items())
    regard.import_model(tmp_path / "model", out=tmp_path / "run")
    assert regard.load(tmp_path / "run").translate("the cat sat", beam=1, max_length=5).source


def test_a_model_without_output_bias(tmp_path: Path) -> None:
    tensors = marian_folder(tmp_path / "model")
    size = len(tensors["Wemb"])
    settings = settings_of(Options({**CONFIG, "dim-vocabs": [size, size]}, "config"))
    numbering = Numbering(size=size, unknown=1, end=0)
    table = without_bias(layout(settings, numbering, numbering), numbering)
    model = build_translator(settings, source_vocab=size + 2, target_vocab=size + 2)
    given = {name: torch.from_numpy(part) for name, part in tensors.items()}
    del given["decoder_ff_logit_out_b"]
    fill(model, table, given, origin="file")
    assert model.projection.bias[[0, 2]].tolist() == [-1e4, -1e4]
    assert not model.projection.bias[3:].any()


def edit(path: Path, change: Any) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[:4000], "cut short or damaged: at byte"),
        (lambda c: c[:-1], "promises .* bytes, but only"),
        (lambda c: struct.pack("<QQ", 1, 2**60) + c[16:], "promises 36,893,488,147,419,103,232"),
        (lambda c: c[:16] + struct.pack("<Q", 2**62) + c[24:], "promises 4,611,686"),
        (lambda c: c[:24] + struct.pack("<Q", 0x999) + c[32:], "unknown type 0x999"),
        (lambda c: c[:32] + struct.pack("<Q", 2**40) + c[40:], "dimensions"),
        (lambda c: c[:40] + struct.pack("<Q", 2**62) + c[48:], "promises 4,611,686"),
        (lambda c: c[:40] + struct.pack("<Q", 8) + c[48:], r"needs .* bytes and has 8"),
        (lambda c: c.replace(b"encoder_l1_self_Wq\0", b"encoder_l1_self_Wv\0", 1), "twice"),
    ],
)
def test_lying_headers(tmp_path: Path, change: Any, message: str) -> None:
    path = binary_folder(tmp_path / "model")
    edit(path, change)
    with pytest.raises(RunError, match=message):
        read_marian(path)
    with pytest.raises(RunError):
        regard.import_model(tmp_path / "model", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_damaged_binary_file_is_named_not_just_unknown(tmp_path: Path) -> None:
    path = binary_folder(tmp_path / "model")
    edit(path, lambda c: c[:300])
    with pytest.raises(RunError, match=r"model\.bin is cut short or damaged: at byte"):
        regard.import_model(tmp_path / "model", out=tmp_path / "run")
    (tmp_path / "model" / "lex.bin").write_bytes(struct.pack("<Q", 0xF11A48D5013417F5) * 20)
    with pytest.raises(RunError, match=r"model\.bin is cut short"):  # a shortlist is no model
        read_foreign(tmp_path / "model")


def test_plain_integers_are_no_weights(tmp_path: Path) -> None:
    path = binary_folder(tmp_path / "model")
    with pytest.raises(RunError, match="of the type int8, which are no weights"):
        edit(path, lambda c: c.replace(struct.pack("<Q", 0x4101), struct.pack("<Q", 0x101)))
        read_foreign(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"type": "s2s", "transformer-ffn-depth": 3, "transformer-ffn-activation": "gelu"},
            r"type = 's2s' .*; transformer-ffn-depth = 3 .*; transformer-ffn-activation = 'gelu'",
        ),
        ({"enc-depth": 0}, "enc-depth is 0 instead of a positive number"),
        ({"dec-cell": "gru"}, "dec-cell = 'gru'"),
        (
            {"transformer-decoder-dim-ffn": 32, "transformer-no-bias": True},
            r"transformer-no-bias = True .*; transformer-decoder-dim-ffn = 32, .* \(must be equal",
        ),
        ({"transformer-postprocess": "n"}, "transformer-preprocess, -postprocess"),
        ({"tied-embeddings-all": False, "tied-embeddings-src": True}, "tied-embeddings-src"),
        ({"transformer-heads": 3}, "divisible by heads"),
    ],
)
def test_unsupported_options_are_told_at_once(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RunError, match=message):
        settings_of(Options({**CONFIG, **changes}, "config"))


def without_config(folder: Path) -> None:
    with np.load(folder / "model.npz") as arrays:
        kept = {name: arrays[name] for name in arrays.files if not name.startswith("special")}
    np.savez(folder / "model.npz", **kept)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_config, "holds no .yml files with enc-depth"),
        (lambda f: (f / "vocab.spm").unlink(), "cannot be read"),
        (lambda f: (f / "vocab.spm").write_bytes(b"x"), "not a SentencePiece model"),
        (
            lambda f: (f / "decoder.yml").write_text("vocabs:\n  - a.yml\n  - a.yml\n"),
            "only SentencePiece vocabularies",
        ),
        (
            lambda f: (f / "decoder.yml").write_text("vocabs:\n  - 1\n  - 2\n  - 3\n"),
            "must hold one",
        ),
        (
            lambda f: edit(f / "model.npz", lambda c: c[: len(c) // 2]),
            "holds no model that can be imported .*Known are: Hugging Face",
        ),
    ],
)
def test_damaged_folders(tmp_path: Path, damage: Any, message: str) -> None:
    marian_folder(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(RunError, match=message):
        regard.import_model(tmp_path / "model", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_vocabulary_of_another_model(tmp_path: Path) -> None:
    marian_folder(tmp_path / "model", **{"dim-vocabs": [400, 400]})
    with pytest.raises(RunError, match="entries, but the model has rows for 400"):
        read_foreign(tmp_path / "model")


def test_marians_yaml() -> None:
    text = "a: 1\nb: -2.5\nc: \"x\"\nd: 'y'\ne: true\nf: []\ng:\n  - 1\n  - no\n# c\nh: v1.9 x\n"
    assert parse_yaml(text) == {
        "a": 1,
        "b": -2.5,
        "c": "x",
        "d": "y",
        "e": True,
        "f": [],
        "g": [1, "no"],
        "h": "v1.9 x",
    }
