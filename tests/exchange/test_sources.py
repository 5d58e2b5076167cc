from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from regard.base.errors import RegardError, RunError
from regard.exchange.sources import Options, npz_names, read_config, read_tensors

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.float16)}


def same(found: dict[str, torch.Tensor]) -> bool:
    return found.keys() == TENSORS.keys() and all(torch.equal(found[n], TENSORS[n]) for n in found)


def test_every_kind_of_file(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "model.safetensors")
    assert same(read_tensors(tmp_path / "model.safetensors"))
    np.savez(tmp_path / "model.npz", **{name: t.numpy() for name, t in TENSORS.items()})
    assert same(read_tensors(tmp_path / "model.npz"))
    torch.save(TENSORS, tmp_path / "pytorch_model.bin")
    assert same(read_tensors(tmp_path / "pytorch_model.bin"))
    for name, tensor in TENSORS.items():
        save_file({name: tensor}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in TENSORS}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert same(read_tensors(tmp_path / "model.safetensors.index.json"))


class Harm:
    """Would write a file if it were unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_code_in_a_pickle_is_never_run(tmp_path: Path) -> None:
    harmed = tmp_path / "harmed"
    torch.save({"a": torch.ones(1), "b": Harm(harmed)}, tmp_path / "model.bin")
    with pytest.raises(RunError, match=r"holds more than weights.*never code"):
        read_tensors(tmp_path / "model.bin")
    (tmp_path / "old.bin").write_bytes(pickle.dumps({"b": Harm(harmed)}))
    with pytest.raises(RunError, match=r"not a file that torch\.save writes today"):
        read_tensors(tmp_path / "old.bin")
    np.savez(tmp_path / "model.npz", a=np.array([Harm(harmed)], dtype=object))
    with pytest.raises(RunError, match="not an npz file of numbers"):
        read_tensors(tmp_path / "model.npz")
    assert not harmed.exists()


def test_what_is_not_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    torch.save(torch.ones(2), path)
    with pytest.raises(RunError, match="holds a Tensor instead of tensors by name"):
        read_tensors(path)
    torch.save({"a": torch.ones(2), "step": 3}, path)
    with pytest.raises(RunError, match="not a table of tensors"):
        read_tensors(path)
    torch.save({"a": torch.ones(1).expand(1 << 40)}, path)
    with pytest.raises(RunError, match="claims more numbers than the file holds"):
        read_tensors(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RunError):
        read_tensors(path)
    with pytest.raises(RunError, match="is missing"):
        read_tensors(tmp_path / "nothing.safetensors")
    (tmp_path / "short.safetensors").write_bytes(b"\xff" * 20)
    with pytest.raises(RunError, match="is damaged"):
        read_tensors(tmp_path / "short.safetensors")


def test_an_archive_that_unpacks_to_far_more(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("a.npy", "w") as member,
    ):
        for _ in range(200):
            member.write(bytes(1 << 20))
    with pytest.raises(RegardError, match="refused"):
        read_tensors(path)
    assert npz_names(path) == ["a"]
    assert npz_names(tmp_path / "none.npz") == []


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({}, "has no weight_map"),
        ({"weight_map": {"a": "../other.safetensors"}}, "not a file in its folder"),
        ({"weight_map": {"c": "a.safetensors"}}, "promises tensor 'c'"),
        ({"weight_map": {"a": "b.safetensors"}}, "is missing"),
    ],
)
def test_a_damaged_index(tmp_path: Path, index: dict[str, Any], message: str) -> None:
    save_file({"a": TENSORS["a"]}, tmp_path / "a.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(RunError, match=message):
        read_tensors(tmp_path / "model.safetensors.index.json")


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("[]", "does not describe")])
def test_a_damaged_config(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RunError, match=message):
        read_config(tmp_path / "config.json")


def test_all_problems_of_a_configuration_in_one_message() -> None:
    options = Options({"width": 0, "act": "mish", "a": 1, "b": 2, "old": True}, "config.json")
    assert options.get("none", 5) == 5
    options.number("width")
    options.among("act", {"relu": "relu"}, "relu")
    options.same("a", "b")
    options.expect(old=False, other=1)
    with pytest.raises(RunError) as error:
        options.finish()
    assert str(error.value) == (
        "config.json has options that cannot be imported: width is 0 instead of a positive number; "
        "act = 'mish' (known: 'relu'); a = 1, b = 2 (must be equal); "
        "old = True (only False is supported)."
    )


@pytest.mark.parametrize("kind", ["sparse", "meta"])
def test_tensors_that_are_no_plain_tables(tmp_path: Path, kind: str) -> None:
    odd = {"sparse": torch.eye(2).to_sparse(), "meta": torch.ones(2, device="meta")}[kind]
    torch.save({"a": odd}, tmp_path / "model.bin")
    with pytest.raises(RunError, match="'a' is not a plain table of numbers"):
        read_tensors(tmp_path / "model.bin")
