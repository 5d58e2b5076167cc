"""Foreign files that once took gigabytes or gave a traceback: each is refused in one sentence.

They are read in one process with limits on memory and time, as a stranger's model would be.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.exchange.test_gpt2 import small

from regard.base.errors import RunError
from regard.exchange import fairseq
from regard.exchange.formats import ForeignFiles, read_foreign
from regard.exchange.hugging_face import gpt2
from regard.exchange.marian import parse_yaml
from regard.exchange.sources import read_tensors

MEGABYTES = 2_000
SECONDS = 20
SCRIPT = """
import resource, sys
from pathlib import Path
folder, megabytes, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
from regard.base.errors import RegardError
from regard.exchange.formats import formats, read_foreign
import regard.exchange.hugging_face.gpt2, regard.exchange.hugging_face.llama
formats()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
for model in sorted(folder.iterdir()):
    try:
        read_foreign(model)
        print(model.name, "read")
    except RegardError as error:
        print(model.name, error)
"""


def change_config(folder: Path, **changes: Any) -> None:
    table = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(table | changes))


def with_zeros(folder: Path) -> None:
    """Replace the weights by an archive of a few kilobytes that holds gigabytes of zeros."""
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"")
        with file.open("archive/data/0", "w", force_zip64=True) as member:
            for _ in range(100):
                member.write(bytes(1 << 20))


# How a small model of GPT-2 is changed, and a part of what is said.
BOMBS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "rows": (lambda folder: change_config(folder, vocab_size=10**30), "vocab_size is 1000000"),
    "many rows": (lambda folder: change_config(folder, vocab_size=1 << 24), "has 265 rows"),
    "layers": (lambda folder: change_config(folder, n_layer=500, n_embd=1_200), "a model of more"),
    "width": (lambda folder: change_config(folder, n_embd=120_000), "a model of more than"),
    "zeros": (with_zeros, "bytes unpack to more than"),
    "digits": (
        lambda folder: (folder / "config.json").write_text('{"n_layer": ' + "9" * 5_000),
        "config.json is cut short or is not JSON"),
    "depth": (
        lambda folder: (folder / "config.json").write_text("[" * 100_000),
        "config.json is cut short or is not JSON"),
}  # fmt: skip


def test_models_that_would_fill_the_memory_are_refused(tmp_path: Path) -> None:
    for name, (change, _) in BOMBS.items():
        folder = tmp_path / name.replace(" ", "-")
        gpt2.write(small(), folder)
        change(folder)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), str(MEGABYTES), str(SECONDS)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    said = dict(line.split(" ", 1) for line in found.stdout.splitlines() if " " in line)
    for name, (_, problem) in BOMBS.items():
        assert problem in said[name.replace(" ", "-")]


def test_what_no_reader_expects_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "gpt2"
    gpt2.write(small(), folder)
    change_config(folder, activation_function={"a": 1})
    with pytest.raises(RunError, match="activation_function"):
        read_foreign(folder)
    config = {"conv1d.kernel": np.zeros((1, 5, 4)), "conv1d_3.kernel": np.zeros((1, 4, 0)),
              "BiasAdd.biases": np.zeros(1)}  # fmt: skip
    np.savez(tmp_path / "gat.npz", **config)  # a layer for no classes
    with pytest.raises(RunError, match=r"is damaged, or no model of .* \(ValidationError: 1 "):
        read_foreign(tmp_path / "gat.npz")


def npz_member(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.npy", content)


def test_arrays_are_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for content in (b"no array", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((      \n", b""):
        npz_member(path, content)
        with pytest.raises(RunError, match=r"a\.npz is damaged, or is not an npz file"):
            read_tensors(path)
    np.savez(path, a=np.ones(2), b=np.array(["text"]))
    assert set(read_tensors(path)) == {"a"}
    np.savez(path, a=np.ones(2, dtype=">f4"))  # of another order of bytes
    assert read_tensors(path)["a"].tolist() == [1.0, 1.0]


def test_tensors_without_numbers_of_their_own_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    for tensor in (torch.eye(3).to_sparse(), torch.empty(1 << 40, device="meta")):
        torch.save({"a": tensor}, path)
        with pytest.raises(RunError, match=r"'a' is not a plain table of numbers|holds more than"):
            read_tensors(path)


def test_a_file_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / "a.safetensors")
    np.savez(tmp_path / "a.npz", a=np.ones(1))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("regard.exchange.sources.load_file", refuse)
    monkeypatch.setattr("regard.exchange.sources.zipfile.ZipFile", refuse)
    for name in ("a.safetensors", "a.npz"):
        with pytest.raises(RunError, match=f"{name} cannot be read: Permission denied"):
            read_tensors(tmp_path / name)


def test_an_index_may_name_anything(tmp_path: Path) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / "a.safetensors")
    assert load_file(tmp_path / "a.safetensors")
    for name in ("x" * 5_000, "a\0b"):
        (tmp_path / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {"a": name}})
        )
        with pytest.raises(RunError, match="is missing"):
            read_tensors(tmp_path / "model.safetensors.index.json")


@pytest.mark.parametrize("text", ['"a', "007", "1.", "9" * 5_000, "-0.", "'"])
def test_marians_values_may_be_anything(text: str) -> None:
    assert isinstance(parse_yaml(f"a: {text}")["a"], str | int | float)


@pytest.mark.parametrize("language", ["../../secret", "a/b", ".", ["en"]])
def test_a_language_is_no_path(tmp_path: Path, language: Any) -> None:
    """fairseq's options name the dictionaries: a stranger's must not name files elsewhere."""
    sizes = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    sides = {f"{s}_{name}": size for s in ("encoder", "decoder") for name, size in sizes.items()}
    options = {**sides, "source_lang": language, "target_lang": "de"}
    (tmp_path / "config.json").write_text(json.dumps(options), encoding="utf-8")
    rows = np.zeros((5, 8), dtype=np.float32)
    names = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    np.savez(tmp_path / "model.npz", **dict.fromkeys(names, rows))
    with pytest.raises(RunError, match="is not the name of a language"):
        fairseq.read(ForeignFiles(weights=tmp_path / "model.npz"))
