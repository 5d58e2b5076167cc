"""What is fuzzed: every reader of files, recipes, every file of a run, and HTTP bodies.

A target makes one input from random numbers and reads it. A RegardError is the right answer to a
bad input; any other exception is a failure, as are a status of 500 and more than a few seconds.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

import fuzz_binary as binary
import fuzz_inputs as inputs
import regard
from regard.base.errors import RegardError
from regard.base.files import fingerprint
from regard.corpora import (
    alignments,
    graph_files,
    labelled,
    lines,
    parallel,
    running_text,
    series_files,
    sources,
    store,
)
from regard.corpora.formats import registry
from regard.corpora.formats.document import ColumnReader, Languages
from regard.corpora.formats.inline import AlignedWord, place_tags
from regard.corpora.formats.json_lines import FieldReader
from regard.corpora.graph import split_at_random
from regard.corpora.series import scaled_series
from regard.serving.app import create_app
from regard.serving.languages import Pair
from regard.serving.limits import Keys, ServerSettings
from regard.serving.models import ServedModel
from regard.tasks import parse_recipe, require_buildable
from regard.tasks.translation.model import LoadedTranslator
from regard.text.sentences import join_sentences, split_sentences

Attempt = Callable[[Random, Path], None]


@dataclass(frozen=True)
class FuzzTarget:
    """One thing that reads input; `chunk` inputs of it are tried in each round."""

    name: str
    attempt: Attempt
    chunk: int = 1_000


def reader_targets() -> list[FuzzTarget]:
    """Return a target for every reader."""
    kinds = [kind for kind in registry.READERS if kind in inputs.TEXTS]
    found = [FuzzTarget(f"document-{kind}", _document(kind)) for kind in kinds]
    for kind in registry.PACKAGES:
        found.append(FuzzTarget(f"document-{kind}", _document(kind), 500))
    for name, kind, read in _table_readers():
        found.append(FuzzTarget(f"{name}-{kind}", _table(kind, read), 500))
    found.append(FuzzTarget("dataset-folder", _dataset, 500))
    for name, kind, read in _readers():
        found.append(FuzzTarget(name, _file(kind, read)))
    found.append(FuzzTarget("npz", _binary(inputs.npz_input, _graph), 500))
    found.append(FuzzTarget("npz-zip", _binary(inputs.zip_input, _graph), 500))
    found.append(FuzzTarget("store", _store, 300))
    found.append(FuzzTarget("recipe", _recipe, 300))
    found.append(FuzzTarget("override", _override, 300))
    found.append(FuzzTarget("sentences", _sentences))
    return found


def _readers() -> Iterator[tuple[str, str, Callable[[Path], Any]]]:
    """Yield name, format and function of each reader of a text file."""
    yield "lines", "lines", lines.read_lines
    yield "stream", "lines", _stream
    yield "running-text", "text", lambda path: list(running_text.text_chunks([path]))
    for kind in ("tsv", "csv", "tmx", "xliff", "po", "jsonl"):
        yield f"pairs-{kind}", kind, lambda path: parallel.read_pairs([path])
    for kind in ("lines", "tsv", "csv", "jsonl"):
        yield f"labelled-{kind}", kind, labelled.read_labelled
    for kind in ("tsv", "jsonl"):
        yield f"texts-{kind}", kind, _texts
        yield f"corpus-{kind}", kind, _corpus_tools
    yield "series", "csv", _series
    yield "graphml", "graphml", _graph
    yield "tables", "edges", _tables
    yield "alignments", "links", alignments.read_alignments
    yield "gold", "links", alignments.read_gold
    yield "keys", "keys", Keys.read
    yield "column", "tsv", lambda path: _by_line(path, ColumnReader("2", path=path))
    yield "field", "jsonl", lambda path: _by_line(path, FieldReader("text", path=path))


def _file(kind: str, read: Callable[[Path], Any]) -> Attempt:
    def attempt(random: Random, folder: Path) -> None:
        path = folder / f"input.{'txt' if kind == 'lines' else kind}"
        path.write_bytes(inputs.text_input(kind, random))
        read(path)

    return attempt


def _binary(make: inputs.Maker, read: Callable[[Path], Any]) -> Attempt:
    def attempt(random: Random, folder: Path) -> None:
        path = folder / "input.npz"
        path.write_bytes(make(random))
        read(path)

    return attempt


def _document(kind: str) -> Attempt:
    """Read a document, translate each word into itself, and write it again."""

    make = binary.package_input if kind in registry.PACKAGES else inputs.text_input

    def attempt(random: Random, folder: Path) -> None:
        path = folder / f"input.{kind}"
        content = make(kind, random)
        found = registry.read_document(
            content, path=path, kind=kind, languages=Languages("en", "de")
        )
        written = []
        for segment in found.segments:
            text = segment.text
            words = [AlignedWord(i, i + 1, (i, i + 1)) for i in range(0, min(len(text), 200), 2)]
            placed = place_tags(text, segment.tags, target=text, words=words, write=segment.write)
            written.append(segment.arrange(placed))
        filled = found.filled(written)
        filled if isinstance(filled, bytes) else filled.encode()

    return attempt


def _table_readers() -> Iterator[tuple[str, str, Callable[[Path], Any]]]:
    """Yield name, format and function of each reader of Parquet and Arrow files."""
    for kind in ("parquet", "arrow"):
        yield "pairs", kind, lambda path: parallel.read_pairs([path])
        yield "labelled", kind, labelled.read_labelled
        yield "texts", kind, lambda path: list(running_text.text_chunks([path]))


def _table(kind: str, read: Callable[[Path], Any]) -> Attempt:
    def attempt(random: Random, folder: Path) -> None:
        path = folder / f"input.{kind}"
        path.write_bytes(binary.table_input(kind, random))
        read(path)

    return attempt


def _dataset(random: Random, folder: Path) -> None:
    """Look for the parts of a saved dataset whose descriptions are damaged."""
    place = folder / "dataset"
    (place / "train").mkdir(parents=True, exist_ok=True)
    texts = {"dataset_dict.json": '{"splits": ["train"]}',
             "train/state.json": '{"_data_files": [{"filename": "data.arrow"}]}'}  # fmt: skip
    chosen = random.choice(list(texts))
    for name, text in texts.items():
        content = text.encode()
        content = inputs.json_file_input(content, random) if name == chosen else content
        (place / name).write_bytes(content)
    sources.locate({"train": (str(place),)}, records="pairs")


def _corpus_tools(path: Path) -> None:
    """Count, mix and split the pairs of a file."""
    out = path.with_name("corpus")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with suppress(RegardError):
        regard.corpus.stats(path, processes=1)
    with suppress(RegardError):
        regard.corpus.mix([path, path], out=out / "mixed.tsv", size=3)
    with suppress(RegardError):
        regard.corpus.filter(path, out=out / "kept.tsv", processes=1)
    regard.corpus.split(path, out=out / "parts", valid=1, test=1, processes=1)


def _stream(path: Path) -> None:
    with lines.open_stream(path) as stream:
        while stream.window(100):
            pass


def _texts(path: Path) -> None:
    columns = ["2"] if path.suffix == ".tsv" else []
    list(running_text.text_chunks([path], columns=columns))


def _by_line(path: Path, read: Callable[[str, int], Any]) -> None:
    for number, line in enumerate(lines.read_lines(path), 1):
        found = read(line, number)
        found.filled([segment.write(segment.text) for segment in found.segments])


def _series(path: Path) -> None:
    for gaps in ("refuse", "interpolate"):
        table = series_files.read_series_file(path, series_files.SeriesReading(gaps=gaps))
        scaled_series(table.values[:, 0], name="a", path=path)


def _graph(path: Path) -> None:
    read = graph_files.read_npz if path.suffix == ".npz" else graph_files.read_graphml
    split_at_random(read(path), path=path, per_class=2, valid=2, test=2, seed=1)


def _tables(path: Path) -> None:
    features = path.with_name("features.csv")
    features.write_text("node,x\na,1\nb,2\nc,3\n")
    labels = path.with_name("labels.csv")
    labels.write_text("a,u\nb,v\nc,u\n")
    for files in ((path, features, labels), (labels, path, labels), (labels, features, path)):
        graph_files.read_tables(files[0], features=files[1], labels=files[2])


def _store(random: Random, folder: Path) -> None:
    """Read a store that was changed; somebody who forges one gives it the right checksums."""
    place = folder / "store"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    with store.RowWriter(place, columns=2, width=1) as writer:
        writer.add(bytes(range(24)), np.array([[3, 4], [0, 5], [12, 0]]))
        writer.finish({})
    chosen = place / random.choice((store.VALUES, store.ENDS, store.HEADER))
    content = chosen.read_bytes()
    if chosen.name == store.HEADER:
        chosen.write_bytes(inputs.json_file_input(content, random))
    else:
        chosen.write_bytes(inputs.mutated(content, (), random)[: len(content)].ljust(len(content)))
        header = json.loads((place / store.HEADER).read_text())
        header["checksums"] = [fingerprint([place / name]) for name in (store.VALUES, store.ENDS)]
        (place / store.HEADER).write_text(json.dumps(header))
    found = store.RowStore(place)
    found.take(np.arange(len(found)))
    found.lengths()


def _recipe(random: Random, folder: Path) -> None:
    text = inputs.text_input("toml", random).decode("utf-8", "replace")
    require_buildable(parse_recipe(text, origin="recipe"))


def _override(random: Random, folder: Path) -> None:
    text = inputs.text_input("overrides", random).decode("utf-8", "replace")
    parse_recipe('task = "translate"', overrides=[text], origin="recipe")


def _sentences(random: Random, folder: Path) -> None:
    text = inputs.text_input("text", random).decode("utf-8", "replace")
    found = split_sentences(text, hard_breaks=random.random() < 0.5)
    if "".join(one.text + one.gap for one in found) != text:
        raise ValueError("the sentences are not the text")
    join_sentences(found, [one.text for one in found])


# Runs: name, recipe and settings of a training of a few steps.
STEPS = ["training.steps=2", "training.validate_every=1", "training.checkpoint_every=1"]
KEPT = Path(__file__).parents[1] / "tests/upgrades/format-1"
KEPT_RUNS = ("character-translator", "language-model", "recurrent-language-model",
             "text-classifier", "node-classifier")  # fmt: skip
RUNS: dict[str, tuple[str, list[str]]] = {
    "attention": ("seq2seq-attention", [
        *STEPS, "data.grammar.size=60", "data.grammar.valid_size=5", "data.grammar.test_size=5",
        "tokenizer.kind=word", "model.hidden=8", "model.embedding=8"]),
    "transformer": ("transformer-tiny", [
        *STEPS, "data.grammar.size=60", "data.grammar.valid_size=5", "data.grammar.test_size=5",
        "tokenizer.size=400", "model.model_dim=8", "model.layers=1", "model.heads=2",
        "model.feed_forward=8"]),
    "forecaster": ("forecast", [*STEPS, "data.terms=60", "data.window=4"]),
}  # fmt: skip


def train_runs(folder: Path) -> dict[str, Path]:
    """Return small runs: three that are trained for two steps, and kept ones of other tasks."""
    for name, (recipe, settings) in RUNS.items():
        if not (folder / name / "best").is_dir():
            regard.train(recipe, out=folder / name, set=settings, progress=False)
    trained = {name: folder / name for name in RUNS}
    return trained | {name: KEPT / name for name in KEPT_RUNS if (KEPT / name).is_dir()}


def run_targets(runs: dict[str, Path]) -> list[FuzzTarget]:
    """Return a target for the files of each run."""
    return [
        FuzzTarget(f"run-{name}", _run(run), 60 if name in RUNS else 20)
        for name, run in runs.items()
    ]


def _run(run: Path) -> Attempt:
    def attempt(random: Random, folder: Path) -> None:
        use_run(binary.changed_copy(run, folder / "run", random))

    return attempt


def use_run(folder: Path) -> None:
    """Load a run and use it once."""
    loaded: Any = regard.load(folder)
    if isinstance(loaded, LoadedTranslator):
        loaded.translate(["a cat"], max_length=5)
    elif hasattr(loaded, "generate"):
        loaded.generate("the ", max_tokens=2)
    elif hasattr(loaded, "classify"):
        loaded.classify(["a cat"])
    elif hasattr(loaded, "forecast"):
        loaded.forecast([0.1, 0.2, 0.3, 0.4])
    else:
        loaded.attention()


ROUTES = ("/translate", "/detect", "/attend", "/stream")


@contextmanager
def http_targets(run: Path) -> Iterator[list[FuzzTarget]]:
    """Yield targets for bodies of each kind, sent to an application in this process."""
    translator = regard.load(run)
    app = create_app([ServedModel("m", Pair("en", "de"), translator)], ServerSettings())  # type: ignore[call-arg]
    loop = asyncio.new_event_loop()
    life = app.router.lifespan_context(app)
    loop.run_until_complete(life.__aenter__())
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost")
    kinds = {"json": "application/json", "form": "application/x-www-form-urlencoded",
             "multipart": "multipart/form-data; boundary=x"}  # fmt: skip

    def target(kind: str) -> FuzzTarget:
        def attempt(random: Random, folder: Path) -> None:
            content = inputs.text_input(f"http-{kind}", random)
            sent = client.post(
                random.choice(ROUTES), content=content, headers={"content-type": kinds[kind]}
            )
            answer = loop.run_until_complete(sent)
            if answer.status_code >= 500 or b'"status": 500' in answer.content:
                raise RuntimeError(f"status {answer.status_code}: {answer.text[:200]}")

        return FuzzTarget(f"http-{kind}", attempt, 150)

    try:
        yield [target(kind) for kind in kinds]
    finally:
        loop.run_until_complete(client.aclose())
        loop.run_until_complete(life.__aexit__(None, None, None))
        loop.close()


def try_input(target: FuzzTarget, number: int, *, seed: int, folder: Path) -> None:
    """Make and read one input; a refusal is fine, any other exception a failure."""
    with suppress(RegardError):
        target.attempt(Random(f"{seed} {target.name} {number}"), folder)
