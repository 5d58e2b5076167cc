"""Inputs in binary formats for fuzzing: archives, tables of columns, and files of weights.

Most of them are valid files with one part replaced, so that readers get beyond the first check.
"""

from __future__ import annotations

import io
import json
import shutil
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

import fuzz_inputs as inputs

WORDS = (0, 1, -1, 2**31 - 1, -(2**31), 2**32, 2**62, 2**63 - 1, 0x7FF8 << 48)
FRONT = 4_096  # where most formats keep their sizes and names

CONTAINER = "<container><rootfiles><rootfile full-path='a.opf'/></rootfiles></container>"
DOCX = (
    "<w:document xmlns:w='w'><w:body><w:p><w:pPr/><w:r><w:rPr><w:b/></w:rPr><w:t>a big</w:t></w:r>"
    "<w:hyperlink><w:r><w:t> dog</w:t><w:br/><w:t>runs</w:t></w:r></w:hyperlink></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body>"
    "</w:document>"
)
ODT = (
    "<office:document-content xmlns:office='o' xmlns:text='t'><text:p>a <text:span>big</text:span>"
    " dog<text:tab/>runs</text:p><text:h>title</text:h></office:document-content>"
)
NCX = "<ncx><navMap><navPoint><navLabel><text>one</text></navLabel></navPoint></navMap></ncx>"
PACKAGES: dict[str, dict[str, str]] = {
    "docx": {"word/document.xml": DOCX, "word/header1.xml": DOCX, "x.bin": "x"},
    "odt": {"content.xml": ODT, "styles.xml": ODT, "mimetype": "application/x"},
    "epub": {"META-INF/container.xml": CONTAINER, "a.xhtml": inputs.TEXTS["html"][0],
             "toc.ncx": NCX, "a.opf": "<p><dc:language>en</dc:language></p>"},
}  # fmt: skip
XML_PARTS = (*inputs.XML, "<w:p>", "</w:p>", "<w:r>", "</w:r>", "<w:t>", "</w:t>", "<w:hyperlink>",
             "</w:hyperlink>", "<text:p>", "</text:p>", "<text:span>", "</text:span>",
             "<text:tab/>", "\ufdd30\ufdd4", "\ufdd59\ufdd4")  # fmt: skip


def words_changed(content: bytes, random: Random) -> bytes:
    """Return a file with some of its numbers replaced by extreme ones, mostly near its front."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4))):
        most = len(changed) if random.random() < 0.3 else min(len(changed), FRONT)
        width = random.choice((1, 2, 4, 8))
        place = random.randrange(max(1, most)) // width * width
        word = struct.pack("<Q", random.choice(WORDS) & (1 << 64) - 1)
        changed[place : place + width] = word[:width] if random.random() < 0.7 else word[-width:]
    return bytes(changed)


def any_change(content: bytes, random: Random) -> bytes:
    """Return a file with numbers replaced, or with a mutation of any kind."""
    if random.random() < 0.5:
        return words_changed(content, random)
    return inputs.mutated(content, (), random)


def rezipped(
    content: bytes, random: Random, change: Callable[[str, bytes, Random], bytes]
) -> bytes:
    """Return an archive with one member changed, renamed, twice or left out; or a damaged one."""
    if random.random() < 0.15:
        return any_change(content, random)
    held = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(
            held, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        ) as new,
    ):
        members = old.infolist()
        chosen = random.choice(members)
        for member in members:
            inside, name = old.read(member), member.filename
            if member is chosen:
                what = random.randrange(12)
                if what == 0:
                    continue
                if what == 1:
                    name = random.choice((f"../{name}", f"{name}x", "/etc/x", "", name.upper()))
                else:
                    inside = change(name, inside, random)
            new.writestr(zipfile.ZipInfo(name or "x"), inside)
    return held.getvalue()


def package_input(kind: str, random: Random) -> bytes:
    """Return a text document of an office program or a book."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in PACKAGES[kind].items():
            archive.writestr(name, text)

    def change(name: str, inside: bytes, random: Random) -> bytes:
        if random.random() < 0.2:
            return inputs.assembled(XML_PARTS, random)
        return inputs.mutated(inside, XML_PARTS, random)

    return rezipped(held.getvalue(), random, change)


COLUMNS = ("source", "target", "text", "label", "translation", "en", "de", "value", "date", "1", "")
VALUES: dict[str, Callable[[Random], Any]] = {
    "string": lambda random: random.choice(("a dog", "", "1.5", "2024-01-02", "a\0b", "x" * 5_000)),
    "int64": lambda random: random.choice((0, -1, 2**63 - 1)),
    "float64": lambda random: random.choice((0.5, 1e308, float("nan"))),
    "binary": lambda random: random.choice((b"a", b"\xff\xfe", b"")),
    "bool_": lambda random: random.random() < 0.5,
    "null": lambda random: None,
}


def table_input(kind: str, random: Random) -> bytes:
    """Return a Parquet or Arrow file with columns of any types, or a damaged one."""
    rows = random.choice((0, 1, 3, 40))
    columns = {}
    for name in random.sample(COLUMNS, random.randrange(1, 4)):
        columns[name] = _column(rows, random)
    if random.random() < 0.5:
        texts = pyarrow.array(["a dog", "b cat", ""] * rows)[:rows]
        columns |= dict.fromkeys(("source", "target", "text", "label"), texts)
    table = pyarrow.table(columns)
    held = io.BytesIO()
    if kind == "parquet":
        packing = random.choice(("none", "snappy", "gzip", "zstd"))
        parquet.write_table(table, held, compression=packing, store_schema=random.random() < 0.9)
    else:
        new = random.choice((pyarrow.ipc.new_stream, pyarrow.ipc.new_file))
        with new(held, table.schema) as writer:
            writer.write_table(table)
    content = held.getvalue()
    return any_change(content, random) if random.random() < 0.7 else content


def _column(rows: int, random: Random) -> pyarrow.Array:
    """Return a column of a random type."""
    what = random.randrange(10)
    if what == 0:  # not UTF-8, which no writer checks
        texts = pyarrow.array([b"\xff\xfe"] * rows, pyarrow.binary())
        return pyarrow.Array.from_buffers(pyarrow.string(), rows, texts.buffers())
    if what == 1:
        return pyarrow.array([{"en": "a", "de": "b"}] * rows)
    if what == 2:
        return pyarrow.array(["a", "b"] * rows)[:rows].dictionary_encode()
    if what == 3:
        unit = random.choice(("ms", "us", "ns"))
        zone = random.choice((None, "UTC", "Nowhere/Land"))
        return pyarrow.array([2**62] * rows, pyarrow.int64()).cast(pyarrow.timestamp(unit, zone))
    if what == 4:
        return pyarrow.array([[["a"], None]] * rows)
    if what == 5:
        return pyarrow.array([2**62] * rows, pyarrow.int64()).cast(pyarrow.duration("s"))
    name = random.choice(list(VALUES))
    values = [VALUES[name](random) for _ in range(rows)]
    return pyarrow.array(values, getattr(pyarrow, name)())


DTYPES = ("F32", "F16", "BF16", "F64", "I64", "I8", "BOOL", "F8_E4M3", "C64", "X")
SIZES = (0, 1, 2, 3, 16, -1, 2**31, 2**40, 2**63)


def safetensors_changed(content: bytes, random: Random) -> bytes:
    """Return a safetensors file with its header or its numbers changed."""
    if random.random() < 0.4:
        return any_change(content, random)
    (length,) = struct.unpack("<Q", content[:8])
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    chosen = random.choice([name for name in header if name != "__metadata__"])
    entry, what = header[chosen], random.randrange(6)
    if what == 0:
        entry["dtype"] = random.choice(DTYPES)
    elif what == 1:
        entry["shape"] = [random.choice(SIZES) for _ in range(random.randrange(4))]
    elif what == 2:
        entry["shape"] = [*entry["shape"][::-1], *random.choice(([], [1]))]
    elif what == 3:
        entry["data_offsets"] = [random.choice(SIZES), random.choice(SIZES)]
    elif what == 4:
        header[random.choice((f"{chosen}x", "", "a" * 5_000))] = header.pop(chosen)
    else:
        header[chosen] = inputs.odd_value(random)
    text = json.dumps(header).encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


def npz_changed(content: bytes, random: Random) -> bytes:
    """Return an npz file with one of its arrays replaced or damaged."""

    def change(name: str, inside: bytes, random: Random) -> bytes:
        if random.random() < 0.4:
            return words_changed(inside, random)
        array = np.load(io.BytesIO(inside))
        what = random.randrange(4) if array.dtype.kind in "fiub" else 1
        if what == 0:
            array = array.astype(random.choice(inputs.TYPES[:5]))
        elif what == 1:
            array = array.reshape(-1)[: random.randrange(9)]
        elif what == 2:
            array = array.reshape(array.shape[::-1])
        else:
            array = np.full(array.shape, random.choice((np.nan, 0.0, 1e38, 7.0)))
        held = io.BytesIO()
        np.save(held, array)
        return held.getvalue()

    return rezipped(content, random, change)


def torch_changed(content: bytes, random: Random) -> bytes:
    """Return a file of `torch.save` with one of its members changed."""
    return rezipped(content, random, lambda _, inside, random: any_change(inside, random))


CHANGES: Mapping[str, Callable[[bytes, Random], bytes]] = {
    ".json": inputs.json_file_input,
    ".jsonl": inputs.json_file_input,
    ".safetensors": safetensors_changed,
    ".npz": npz_changed,
    ".pt": torch_changed,
}
TEXTS = (".txt", ".yml", ".code", ".toml", ".csv")


def changed_copy(origin: Path, folder: Path, random: Random) -> Path:
    """Return a folder of links to all files of another but one, which is changed or missing."""
    files = sorted(file for file in origin.rglob("*") if file.is_file() and file.suffix != ".html")
    shutil.rmtree(folder, ignore_errors=True)
    chosen = random.choice(files)
    for file in files:
        place = folder / file.relative_to(origin)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file != chosen:
            place.symlink_to(file)
        elif random.random() > 0.05:
            place.write_bytes(changed_file(file, random))
    return folder


def changed_file(path: Path, random: Random) -> bytes:
    """Return the content of a file, changed as is fit for its kind."""
    content = path.read_bytes()
    if path.name == "pytorch_model.bin":
        return torch_changed(content, random)
    if path.suffix in TEXTS:
        return inputs.mutated(content, ("0", ":", "\n", "-", " ", '"', "'", "[]"), random)
    return CHANGES.get(path.suffix, any_change)(content, random)
