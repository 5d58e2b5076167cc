"""Small files that once took gigabytes or minutes: each is answered within seconds and megabytes.

All of them are read in one process with limits on memory and time, as a stranger's files would be.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MEGABYTES = 800  # beyond what the libraries take
SECONDS = 20
ANSWERED = "answered"

# Reads the file of each bomb as its reader does; prints what was said.
SCRIPT = """
import json, resource, signal, sys
from pathlib import Path
folder, megabytes, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
import numpy, networkx, networkx.readwrite.graphml, pyarrow.parquet
from regard.base import budgets
from regard.base.errors import RegardError
from regard.base.budgets import open_input
from regard.corpora.formats.document import Languages
from regard.corpora.formats.registry import document_pairs, read_document
from regard.corpora.graph_files import read_graphml, read_npz, read_tables
from regard.corpora.labelled import read_labelled
from regard.corpora.parallel import read_pairs
from regard.corpora.lines import read_lines, read_whole
from regard.corpora.series_files import SeriesReading, read_series_file
from regard.settings.recipe import read_table

budgets.PIPE_SECONDS, budgets.FREE_BYTES = 0.2, 8 << 20

def document(path, kind):
    found = read_document(read_whole(path, expected=""), path=path, kind=kind,
                          languages=Languages("en", "de"))
    found.filled([segment.arrange(segment.write(segment.text)) for segment in found.segments])

READERS = {
    "pairs": document_pairs, "graphml": read_graphml, "npz": read_npz, "lines": read_lines,
    "labelled": read_labelled, "toml": read_table,
    "records": lambda path: read_pairs([path]),
    "series": lambda path: read_series_file(path, SeriesReading()),
    "table": lambda path: read_tables(path, features=path, labels=path),
    **{kind: lambda path, kind=kind: document(path, kind)
       for kind in ("tmx", "xliff", "html", "srt", "po", "text")},
}

def late(*_):
    raise TimeoutError

signal.signal(signal.SIGPROF, late)  # by the time that the process has worked
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
said = {}
for name, (reader, path) in json.loads((folder / "bombs.json").read_text()).items():
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        READERS[reader](Path(path))
        said[name] = "answered"
    except RegardError as error:
        said[name] = str(error)
    except BaseException as error:
        said[name] = f"{type(error).__name__} {error}"[:200]
    signal.setitimer(signal.ITIMER_PROF, 0)
print(json.dumps(said))
"""


def tmx(body: str, head: str = "") -> str:
    return f'{head}<tmx version="1.4"><header srclang="en"/><body>{body}</body></tmx>'


def xliff(body: str) -> str:
    return f'<xliff version="1.2"><file target-language="de"><body>{body}</body></file></xliff>'


ATTLIST = f'<!DOCTYPE tmx [<!ATTLIST seg x CDATA "{"x" * 500_000}">]>'
UNIT = '<tu><tuv xml:lang="en"><seg>a</seg></tuv></tu>'
GRAPHML = "<!DOCTYPE graphml [<!ATTLIST node {0}>]><graphml>{1}</graphml>"

# Text files: reader, content, and a part of the answer.
TEXTS: dict[str, tuple[str, str, str]] = {
    "default attributes": ("tmx", tmx(UNIT * 10_000, ATTLIST), "declares a default attribute"),
    "default attributes of pairs": ("pairs.tmx", tmx(UNIT * 10_000, ATTLIST), "default attribute"),
    "default attributes of a graph": (
        "graphml", GRAPHML.format('x CDATA "' + "x" * 500_000 + '"', '<node id="1"/>' * 20_000),
        "declares a default attribute"),
    "an entity of a graph": (
        "graphml", '<!DOCTYPE graphml [<!ENTITY a "a">]><graphml>&a;</graphml>', "an entity (a)"),
    "nested segments": (
        "tmx", tmx("<tu>" + "<seg>" * 20_000 + "</seg>" * 20_000 + "</tu>"), "200 levels deep"),
    "nested units": (
        "xliff", xliff("<segment>" * 20_000 + "</segment>" * 20_000), "200 levels deep"),
    "segments in segments": (
        "tmx", tmx(("<tu><tuv xml:lang='en'>" + "<seg>" * 150 + "a" + "</seg>" * 150
                    + "</tuv></tu>") * 500), ANSWERED),
    "units in units": (
        "xliff", xliff(("<segment><source>a</source>" * 100 + "</segment>" * 100) * 500), ANSWERED),
    "many tags": ("html", "<p>a " + "<b>b" * 5_000, "a paragraph has 5,000 tags"),
    "many empty tags": ("html", "<b></b>" * 50_000, ANSWERED),
    "deep tags": ("html", "<p>a " + "<b>b" * 400 + "</b>" * 400, "nested 100 deep"),
    "many pre": ("html", "<pre>" * 100_000, ANSWERED),
    "unfinished tags": ("html", "<a " * 300_000, ANSWERED),
    "unfinished comments": ("html", "<!--" * 100_000, ANSWERED),
    "an odd declaration": ("html", "<![ x" * 10_000 + ">", ANSWERED),
    "many references": ("html", "&amp;" * 200_000, ANSWERED),
    "a long subtitle": (
        "srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "some words of a line\n" * 15_000, ANSWERED),
    "a subtitle of marks": (
        "srt", "1\n00:00:01,000 --> 00:00:02,000\n" + "a < b " * 50_000, ANSWERED),
    "a catalogue of one text": ("po", 'msgid ""\n' + '"a"\n' * 100_000 + 'msgstr ""\n', ANSWERED),
    "dots": ("toml", "a." * 100_000 + "a = 1", "a key has more than 32 parts"),
    "brackets": ("toml", "a = " + "[" * 100_000, "nested more than 32 levels deep"),
    "digits": ("toml", "a = " + "9" * 5_000, "is not valid TOML"),
    "deep JSON": ("labelled.jsonl", "[" * 100_000, "the JSON is nested too deeply"),
    "long JSON numbers": ("labelled.jsonl", "9" * 5_000, "not valid JSON"),
    "old line ends": ("series.csv", "time,value\r1,2\r3,4\r", "this is not CSV"),
    "a huge cell": ("series.csv", 'value\n"' + "1" * 200_000 + '"\n', "this is not CSV"),
    "huge numbers": ("series.csv", "value\n" + "9" * 5_000 + "\n", "is not a number"),
    "odd labels": ("table.csv", "node,label\na,--5\n", "not every cell after 'a' is a number"),
    "a huge cell of a graph": ("table.csv", 'node,label\na,"' + "1" * 200_000, "this is not CSV"),
}  # fmt: skip


def arrays(path: Path, **changes: Any) -> None:
    """Write a graph of two nodes with some arrays changed."""
    plain: dict[str, Any] = {
        "x": np.eye(2, dtype=np.float32),
        "y": np.array([0, 1]),
        "edges": np.array([[0], [1]]),
    }
    np.savez_compressed(path, **{**plain, **changes})


def lying(path: Path) -> None:
    """Write an array that says it has a thousand billion numbers."""
    arrays(path)
    with zipfile.ZipFile(path, "a") as archive, archive.open("names.npy", "w") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(file, head)  # type: ignore[arg-type]


def gzipped_zeros(path: Path) -> None:
    """Write 60 MB of letters in 60 kB."""
    with gzip.open(path, "wb") as file:
        for _ in range(60):
            file.write(b"a" * (1 << 20))


def npz_zeros(path: Path) -> None:
    """Write 60 MB of zeros in 60 kB."""
    arrays(path)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("big.npy", "w", force_zip64=True) as file,
    ):
        for _ in range(60):
            file.write(bytes(1 << 20))


def one_long_text(path: Path) -> None:
    """Write a table of 20,000 records of a megabyte each in 800 bytes."""
    import pyarrow
    from pyarrow import parquet

    places = pyarrow.array([0] * 20_000, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["x" * (1 << 20)]))
    table = pyarrow.table({"source": texts, "target": ["a"] * 20_000})
    parquet.write_table(table, path, compression="zstd")


def packed_zeros(path: Path) -> None:
    """Write a table of one record of 60 MB in a few kilobytes."""
    import pyarrow

    table = pyarrow.table({"source": ["x" * (60 << 20)], "target": ["a"]})
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_file(str(path), table.schema, options=options) as file:
        file.write_table(table)


# Other files: reader, what writes the file, and a part of the answer.
FILES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a huge class": (
        "npz", lambda path: arrays(path, y=np.array([0, 10**11])), "y holds the class 10000000000"),
    "a lying shape": ("npz", lying, "this is not an npz file, or it is damaged"),
    "zeros in npz": ("npz", npz_zeros, "bytes unpack to more than"),
    "many features": (
        "npz", lambda path: arrays(
            path, x=np.array(0), x_data=np.ones(1), x_indices=np.array([0]),
            x_indptr=np.array([0, 1, 1]), x_shape=np.array([2, 10**12])),
        "there are 1,000,000,000,000 features"),
    "a shape of one number": (
        "npz", lambda path: arrays(
            path, x=np.array(0), x_data=np.ones(1), x_indices=np.array([0]),
            x_indptr=np.array([0, 1, 1]), x_shape=np.array([2])), "x_shape has 1 numbers"),
    "texts as features": (
        "npz", lambda path: arrays(
            path, x=np.array(0), x_data=np.array(["a"]), x_indices=np.array([0]),
            x_indptr=np.array([0, 1, 1]), x_shape=np.array([2, 2])), "x_data has 1 axes of <U1"),
    "names without a list": (
        "npz", lambda path: arrays(path, names=np.array("a")), "names has the shape ()"),
    "too few classes": (
        "npz", lambda path: arrays(path, classes=np.array(["a"])), "but there are names for 1"),
    "no node": (
        "npz", lambda path: arrays(
            path, x=np.zeros((0, 2), np.float32), y=np.zeros(0, int), edges=np.zeros((2, 0), int)),
        "there is no node"),
    "one text for all records": ("records.parquet", one_long_text, "bytes unpack to more than"),
    "a packed record": ("records.arrow", packed_zeros, "bytes unpack to more than"),
    "zeros in gzip": ("lines.gz", gzipped_zeros, "bytes unpack to more than"),
    "zeros in a gzipped memory": ("pairs.tmx.gz", gzipped_zeros, "bytes unpack to more than"),
}  # fmt: skip
SPECIAL = {
    "a device": ("/dev/zero", "this is a device, not a file"),
    "random numbers": ("/dev/urandom", "this is a device, not a file"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What was said about each bomb by one process with limits."""
    folder = tmp_path_factory.mktemp("bombs")
    bombs: dict[str, tuple[str, str]] = {}
    for number, (name, (ending, content, _)) in enumerate(TEXTS.items()):
        path = folder / f"{number}.{ending}"
        path.write_text(content, encoding="utf-8", newline="")
        bombs[name] = (ending.partition(".")[0], str(path))
    for number, (name, (ending, write, _)) in enumerate(FILES.items()):
        path = folder / f"file-{number}.{ending}"
        write(path)
        bombs[name] = (ending.partition(".")[0], str(path))
    for name, (place, _) in SPECIAL.items():
        bombs[name] = ("lines", place)
    os.mkfifo(folder / "pipe")
    bombs["a pipe"] = ("lines", str(folder / "pipe"))
    (folder / "bombs.json").write_text(json.dumps(bombs))
    limits = [str(folder), str(MEGABYTES), str(SECONDS)]
    command = [sys.executable, "-c", SCRIPT, *limits]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60 * SECONDS)
    assert found.returncode == 0, found.stderr
    answers: dict[str, str] = json.loads(found.stdout)
    return answers


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_bomb_is_answered(said: dict[str, str], name: str) -> None:
    assert TEXTS[name][2] in said[name]


@pytest.mark.parametrize("name", FILES)
def test_a_file_bomb_is_answered(said: dict[str, str], name: str) -> None:
    assert FILES[name][2] in said[name]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such devices")
def test_devices_and_pipes_are_not_waited_for(said: dict[str, str]) -> None:
    for name, (_, answer) in SPECIAL.items():
        assert answer in said[name]
    assert "nothing was written to this pipe within 0.2 seconds" in said["a pipe"]
