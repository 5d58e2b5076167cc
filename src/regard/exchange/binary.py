"""Binary files of weights: Marian's and CTranslate2's; no size in them is trusted."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RunError
from regard.exchange.sources import Tensors

MOST_DIMENSIONS = 8
HEADER_BYTES = 1 << 22  # enough for the names of a large model


class ByteReader:
    """Numbers and texts of a file in order; going beyond its end is a RunError."""

    def __init__(self, path: Path, *, most: int = -1):
        self.path = path
        try:
            with path.open("rb") as file:
                self.content = memoryview(file.read(most))
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}.") from None
        self.place = 0

    def take(self, count: int) -> memoryview:
        """Return the next bytes."""
        left = len(self.content) - self.place
        if not 0 <= count <= left:
            raise RunError(
                f"{self.path} is cut short or damaged: at byte {self.place:,} it promises "
                f"{count:,} bytes, but only {left:,} are left."
            )
        self.place += count
        return self.content[self.place - count : self.place]

    def numbers(self, form: str, count: int = 1) -> tuple[int, ...]:
        """Return the next `count` numbers of a `struct` format, little-endian."""
        data = self.take(count * struct.calcsize(f"<{form}"))
        return struct.unpack(f"<{count}{form}", data)

    def text(self, count: int) -> str:
        """Return the next bytes as text, without the zero at its end."""
        try:
            return bytes(self.take(count)).rstrip(b"\0").decode("utf-8")
        except UnicodeDecodeError:
            raise self.problem("a name in it is not text") from None

    def problem(self, what: str) -> RunError:
        """Return an error about this file."""
        return RunError(f"{self.path} is damaged: {what}.")


class MarianEntry(NamedTuple):
    """The description of one tensor of Marian's file."""

    name: str
    kind: int
    shape: tuple[int, ...]
    size: int
    """In bytes, with padding."""


FLOAT32, INT8, INTGEMM8 = 0x404, 0x101, 0x4101
EMBEDDING = "Wemb"  # the only quantised matrix that is stored as it is; all others are transposed
CONFIG_ENTRY = "special:model.yml"
VERSION_1 = struct.pack("<Q", 1)


def is_marian(path: Path) -> bool:
    """Return whether a file is a model of Marian's; a damaged one is, if it begins like one.

    Its shortlists are binary files too.
    """
    reader = ByteReader(path, most=HEADER_BYTES)
    try:
        if reader.numbers("Q") != (1,):
            return False
        names = [entry.name for entry in _marian_entries(reader)]
    except RunError:
        return reader.place >= len(VERSION_1)
    return any(name.startswith("decoder_") and name.endswith("_Wq") for name in names)


def read_marian(path: Path) -> tuple[Tensors, str]:
    """Return the tensors of a file, quantised ones as float32, and the configuration in it."""
    reader = ByteReader(path)
    entries = _marian_entries(reader)
    (padding,) = reader.numbers("Q")
    reader.take(padding)
    tensors: Tensors = {}
    config = ""
    for entry in entries:
        data = reader.take(entry.size)
        if entry.name == CONFIG_ENTRY:
            config = bytes(data).rstrip(b"\0").decode("utf-8", errors="replace")
        elif entry.name in tensors:
            raise reader.problem(f"it has the tensor {entry.name!r} twice")
        else:
            tensors[entry.name] = torch.from_numpy(_marian_values(entry, data, reader))
    return tensors, config


def _marian_entries(reader: ByteReader) -> list[MarianEntry]:
    """Return what the header lists: four numbers for each tensor, then all names, then shapes."""
    version, count = reader.numbers("Q", 2)
    if version != 1:
        raise reader.problem(f"version {version} of Marian's format is not known, only 1")
    fields = reader.numbers("Q", 4 * count)
    headers = list(zip(*(fields[start::4] for start in range(4)), strict=True))
    names = [reader.text(length) for length, _, _, _ in headers]
    entries = []
    for name, (_, kind, dimensions, size) in zip(names, headers, strict=True):
        if dimensions > MOST_DIMENSIONS:
            raise reader.problem(f"tensor {name!r} has {dimensions} dimensions")
        entries.append(MarianEntry(name, kind, reader.numbers("i", dimensions), size))
    return entries


def _marian_values(entry: MarianEntry, data: memoryview, reader: ByteReader) -> NDArray[np.generic]:
    """Return the numbers of a tensor; an int8 matrix divided by the multiplier after it."""
    count = _count(entry.name, entry.shape, reader)
    width = {FLOAT32: 4 * count, INT8: count, INTGEMM8: count + 4}.get(entry.kind)
    if width is None:
        raise reader.problem(f"tensor {entry.name!r} is of the unknown type {entry.kind:#x}")
    if width > len(data):
        raise reader.problem(
            f"tensor {entry.name!r} of shape {entry.shape} needs {width:,} bytes and has "
            f"{len(data):,}"
        )
    if entry.kind == FLOAT32:
        return np.frombuffer(data, "<f4", count).reshape(entry.shape).copy()
    values = np.frombuffer(data, np.int8, count)
    if entry.kind == INT8:
        return values.reshape(entry.shape).copy()
    multiplier = np.frombuffer(data, "<f4", 1, offset=count)
    if not np.isfinite(multiplier[0]) or multiplier[0] == 0:
        raise reader.problem(f"tensor {entry.name!r} has the multiplier {multiplier[0]}")
    numbers: NDArray[np.float32] = values.astype(np.float32) / multiplier
    if entry.name.endswith(EMBEDDING) or len(entry.shape) != 2:
        return numbers.reshape(entry.shape)
    return numbers.reshape(entry.shape[::-1]).T.copy()


def _count(name: str, shape: tuple[int, ...], reader: ByteReader) -> int:
    if any(size < 0 for size in shape):
        raise reader.problem(f"tensor {name!r} has the shape {shape}")
    return math.prod(shape)


SPECIFICATION = "TransformerSpec"
VERSIONS = range(2, 7)
# By the number that the file gives a type; before version 4 only the size of an item is stored.
TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "bfloat16")
TYPE_OF_SIZE = {1: 1, 2: 2, 4: 0}


def is_ctranslate2(path: Path) -> bool:
    """Return whether a file begins like a model of CTranslate2."""
    try:
        return _ctranslate2_name(ByteReader(path, most=256)).endswith("Spec")
    except RunError:
        return False


def read_ctranslate2(path: Path) -> Tensors:
    """Return the variables of a model, quantised ones as float32; aliases are variables too."""
    reader = ByteReader(path)
    name = _ctranslate2_name(reader)
    if name != SPECIFICATION:
        raise RunError(
            f"{path} holds a {name or 'model without a name'}; only a {SPECIFICATION}, an encoder "
            "with a decoder, can be imported from CTranslate2."
        )
    version = struct.unpack("<I", reader.content[:4])[0]
    reader.numbers("I")  # the revision of the specification
    variables: Tensors = {}
    for _ in range(reader.numbers("I")[0]):
        key = reader.text(reader.numbers("H")[0])
        if key in variables:
            raise reader.problem(f"it has the tensor {key!r} twice")
        variables[key] = _ctranslate2_values(key, reader, version=version)
    found = _dequantised(variables, reader)
    if version >= 3:
        for _ in range(reader.numbers("I")[0]):
            alias, key = (reader.text(reader.numbers("H")[0]) for _ in range(2))
            if key not in variables:
                raise reader.problem(f"{alias!r} stands for {key!r}, which it does not hold")
            if key in found:  # else a scale, which has been used
                found[alias] = found[key]
    return found


def _ctranslate2_name(reader: ByteReader) -> str:
    (version,) = reader.numbers("I")
    if version not in VERSIONS:
        raise RunError(
            f"{reader.path} has version {version} of CTranslate2's format; known are "
            f"{VERSIONS[0]} to {VERSIONS[-1]}."
        )
    return reader.text(reader.numbers("H")[0])


def _ctranslate2_values(name: str, reader: ByteReader, *, version: int) -> torch.Tensor:
    """Return the next variable."""
    (rank,) = reader.numbers("B")
    if rank > MOST_DIMENSIONS:
        raise reader.problem(f"tensor {name!r} has {rank} dimensions")
    shape = reader.numbers("I", rank)
    (kind,), (size,) = reader.numbers("B"), reader.numbers("I")
    if version < 4:
        size *= kind
        kind = TYPE_OF_SIZE.get(kind, len(TYPES))
    if kind >= len(TYPES):
        raise reader.problem(f"tensor {name!r} is of the unknown type {kind}")
    data = reader.take(size)
    width = {"<f4": 4, "<i4": 4, "i1": 1}.get(TYPES[kind], 2)
    count = _count(name, shape, reader)
    if width * count != len(data):
        raise reader.problem(
            f"tensor {name!r} of shape {shape} needs {width * count:,} bytes and has {len(data):,}"
        )
    if TYPES[kind] == "bfloat16":
        bits = torch.from_numpy(np.frombuffer(data, "<i2").copy())
        return bits.view(torch.bfloat16).float().reshape(shape)
    values = torch.from_numpy(np.frombuffer(data, TYPES[kind]).copy()).reshape(shape)
    return values.float() if values.dtype == torch.float16 else values


def _dequantised(variables: Tensors, reader: ByteReader) -> Tensors:
    """Return integer matrices divided by their scales, one for each row or one for all."""
    found: Tensors = {}
    for name, tensor in variables.items():
        if name.endswith("_scale") and name.removesuffix("_scale") in variables:
            continue
        if tensor.dim() == 2 and not tensor.is_floating_point():
            scale = variables.get(f"{name}_scale")
            if scale is None or scale.numel() not in (1, len(tensor)) or not bool(scale.all()):
                raise reader.problem(f"the integers of {name!r} have no scale that fits them")
            tensor = tensor.float() / scale.reshape(-1, 1)
        found[name] = tensor
    return found
