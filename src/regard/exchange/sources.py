"""Files of weights and configurations, read into plain tables; nothing in them is ever executed.

Each reader trusts no size that a file states before it has compared it with the file itself.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from regard.base.budgets import parse_json, require_small_archive, shown
from regard.base.errors import RegardError, RunError
from regard.base.files import npz_array
from regard.base.shapes import Tensor
from regard.compute.device import HOST, on_host

MOST_CONFIG_BYTES = 64 << 20
MOST_NUMBER = 1 << 24  # of layers, rows or positions

Tensors = dict[str, Tensor]


def read_tensors(path: Path) -> Tensors:
    """Return the tensors of a file, by its ending: .safetensors, .npz, .bin or .pt, or an index."""
    if path.name.endswith(".index.json"):
        return read_sharded(path)
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    if path.suffix == ".npz":
        return read_npz(path)
    return read_torch(path)


def read_safetensors(path: Path) -> Tensors:
    """Return the tensors of a safetensors file; the library compares its header with its size."""
    _require_file(path)
    try:
        return load_file(path)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        raise RunError(f"{path} is damaged (was it cut short?): {error}.") from None


def weight_map(index: Path) -> dict[str, str]:
    """Return in which file of its folder an index says that each tensor is."""
    table = read_config(index).get("weight_map")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise RunError(f"{index} has no weight_map, which says where each tensor is.")
    return table


def read_sharded(index: Path) -> Tensors:
    """Return the tensors of the files that an index names, in its folder."""
    table = weight_map(index)
    tensors: Tensors = {}
    for name in sorted(set(table.values())):
        if name != Path(name).name or name.endswith(".json"):
            raise RunError(f"{index} names {name!r}, which is not a file in its folder.")
        tensors |= read_tensors(index.with_name(name))
    if lacking := sorted(set(table) - set(tensors)):
        raise RunError(f"{index} promises tensor {lacking[0]!r}, but its file does not hold it.")
    return tensors


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors so that `transformers` reads them."""
    save_file(dict(tensors), path, metadata={"format": "pt"})


def read_npz(path: Path) -> Tensors:
    """Return the arrays of numbers in an npz file."""
    tensors = {}
    for name, array in _arrays(path).items():
        if array.dtype.kind in "fiub":
            tensors[name] = torch.from_numpy(array.astype(array.dtype.newbyteorder("=")))
    return tensors


def _arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file, or those with these names; none is larger than its file."""
    _require_file(path)
    try:
        with zipfile.ZipFile(path) as file:
            require_small_archive(file, path=path)
            members = {one.filename.removesuffix(".npy"): one for one in file.infolist()}
            return {name: npz_array(file, members[name]) for name in names or members}
    except RegardError:
        raise
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # zipfile, its unpackers and numpy raise whatever they meet
        raise RunError(f"{path} is damaged, or is not an npz file of numbers: {error}.") from None


def npz_text(path: Path, name: str) -> str:
    """Return the text that an npz file holds as an array of bytes; none if it has no such array."""
    if name not in npz_names(path):
        return ""
    return _arrays(path, name)[name].tobytes().rstrip(b"\0").decode("utf-8", errors="replace")


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays in an npz file; none if it is no such file."""
    try:
        with zipfile.ZipFile(path) as file:
            return [name.removesuffix(".npy") for name in file.namelist()]
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
        return []


def read_torch(path: Path) -> Tensors:
    """Return the tensors of a file that `torch.save` wrote; whatever is not a weight is refused."""
    _require_file(path)
    if not zipfile.is_zipfile(path):
        raise RunError(
            f"{path} is not a file that torch.save writes today; save it again with a new version "
            "of torch, or as safetensors."
        )
    try:
        with zipfile.ZipFile(path) as file:
            require_small_archive(file, path=path)
        found = torch.load(path, map_location=HOST, weights_only=True)
    except RegardError:
        raise
    except Exception as error:  # of unpickling, which raises many kinds
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise RunError(
            f"{path} holds more than weights, or is damaged: {reason[:200]} Only weights are read, "
            "never code: save the model as safetensors where it was made."
        ) from None
    if not isinstance(found, dict):
        raise RunError(f"{path} holds a {type(found).__name__} instead of tensors by name.")
    tensors = {str(name): part for name, part in found.items() if isinstance(part, torch.Tensor)}
    if len(tensors) != len(found) or not tensors:
        raise RunError(f"{path} is not a table of tensors by name.")
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or not on_host(tensor):
            raise RunError(f"{path}: tensor {name!r} is not a plain table of numbers.")
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise RunError(f"{path}: tensor {name!r} claims more numbers than the file holds.")
    return tensors


def read_config(path: Path) -> dict[str, Any]:
    """Return the table in a JSON file."""
    _require_file(path)
    if path.stat().st_size > MOST_CONFIG_BYTES:
        raise RunError(f"{path} is too large to describe a model.")
    try:
        config = parse_json(path.read_bytes())
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise RunError(f"{path} is cut short or is not JSON.") from None
    if not isinstance(config, dict):
        raise RunError(f"{path} does not describe a model.")
    return config


@dataclass
class Options:
    """The options of a foreign configuration; problems are collected and told at once."""

    table: Mapping[str, Any]
    origin: object
    problems: list[str] = field(default_factory=list)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an option, or what it is where it is not given."""
        value = self.table.get(name)
        return default if value is None else value

    def number(self, name: str, default: int | None = None) -> int:
        """Return an option that must be a positive whole number."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.problems.append(f"{name} is {shown(value)} instead of a positive number")
            return 1
        if value > MOST_NUMBER:
            raise RunError(f"{self.origin}: {name} is {shown(value)}, more than {MOST_NUMBER:,}.")
        return value

    def one_of_ids(self, name: str, number: Any, *, rows: int) -> int | None:
        """Return an id of a vocabulary; None, and a problem, if the vocabulary has no such id."""
        if type(number) is int and 0 <= number < rows:
            return number
        self.problems.append(f"{name} = {number!r} (must be one of its ids)")
        return None

    def among(self, name: str, known: Mapping[Any, Any], default: Any) -> Any:
        """Return our name of a value that must be one of these."""
        value = self.get(name, default)
        try:
            return known[value]
        except (KeyError, TypeError):
            listed = ", ".join(map(repr, known))
            self.problems.append(f"{name} = {value!r} (known: {listed})")
            return next(iter(known.values()))

    def expect(self, **expected: Any) -> None:
        """Note every option that is given and has another value than the only supported one."""
        for name, wanted in expected.items():
            value = self.get(name, wanted)
            if value != wanted:
                self.problems.append(f"{name} = {value!r} (only {wanted!r} is supported)")

    def same(self, *names: str) -> None:
        """Note options that must be equal and are not."""
        values = {name: self.get(name) for name in names}
        if len(set(map(repr, values.values()))) > 1:
            listed = ", ".join(f"{name} = {value!r}" for name, value in values.items())
            self.problems.append(f"{listed} (must be equal)")

    def finish(self) -> None:
        """Raise one error that lists all problems, if there are any."""
        if self.problems:
            raise RunError(
                f"{self.origin} has options that cannot be imported: {'; '.join(self.problems)}."
            )


def _require_file(path: Path) -> None:
    try:
        there = path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        there = False
    if not there:
        raise RunError(f"{path} is missing.")
