"""Every command in the documents: accepted by the real parser, and run on tiny data and models.

`make test` parses them; `make test-all` runs them too, document by document, in a folder that has
the files and runs whose names the documents use.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import typer
from tests.exchange.test_marian import marian_folder

import regard
from regard.attention.scores import SCORES
from regard.cli.app import app, main

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELLS = ("", "console", "sh", "bash")
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\S+ \| )?(?:\S*/)?regard (?=[a-z-])(.*)$")


def commands(path: Path) -> Iterator[list[str]]:
    """Yield the words after `regard` of every command in a block of code."""
    blocks = FENCE.findall(path.read_text(encoding="utf-8"))
    for block in (text for language, text in blocks if language in SHELLS):
        for line in block.replace("\\\n", " ").splitlines():
            if found := COMMAND.match(line):
                lexer = shlex.shlex(found[1], posix=True, punctuation_chars=True)
                lexer.wordchars += "[]{}=,:%@~"
                words: list[str] = []
                for word in lexer:
                    if word in ("|", ">", "&&", "&", ";", "2>"):
                        break
                    words.append(word)
                yield words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_are_accepted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.runs.catalogue.use", lambda name: None)
    group: Any = typer.main.get_command(app)
    for words in commands(path):
        if words[0].startswith("--"):
            continue
        context = group.make_context("regard", words[:], resilient_parsing=True)
        name, command, rest = group.resolve_command(context, words[:])
        if "--help" in rest:
            continue
        try:
            command.make_context(name, rest, parent=context)
        except Exception as error:
            pytest.fail(f"{path.name}: regard {' '.join(words)}: {error}")


def test_the_documents_hold_commands() -> None:
    found = {" ".join(words[:2]) for path in DOCUMENTS for words in commands(path)}
    assert sum(len(list(commands(path))) for path in DOCUMENTS) > 90
    assert {"corpus filter", "tune runs/mine", "import gpt2-folder"} <= found  # after other code


def test_a_wrong_option_would_be_found() -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands["translate"]
    with pytest.raises(Exception, match="--no-such-option"):
        command.make_context("translate", ["runs/mine", "--no-such-option"])


# ---- running them -----------------------------------------------------------------------------

# Commands that are not run, by the words that they begin with, and why.
NOT_RUN = {"corpus fetch": "downloads"}
ENDS = {"exercise check": (1,), "--version": (0, None)}  # a file with gaps is not right
OUTPUTS = ("--out", "--output")
WIDTHS = {"model.model_dim": 16, "model.heads": 4, "model.layers": 2}
TRANSFORMER = {**WIDTHS, "model.feed_forward": 16, "tokenizer.size": 340}
RECURRENT = {"model.hidden": 8, "model.embedding": 8, "tokenizer.kind": "word"}
SHORT = {"training.steps": 4, "training.validate_every": 2, "data.hold_out_test": 10}
TRANSLATION = {**SHORT, "training.validate_sentences": 4, "decoding.beam": 2,
               "decoding.max_length": 12}  # fmt: skip
LITTLE_GRAMMAR = {"data.grammar.size": 60, "data.grammar.valid_size": 8,
                  "data.grammar.test_size": 8, "data.grammar.words": "small",
                  "data.grammar.max_words": 8}  # fmt: skip
FINE_TUNING = {"training.steps": 2, "training.validate_every": 1}
SERIES = {"training.steps": 4, "training.validate_every": 2, "training.seeds": 1, "model.hidden": 4}
TINY: dict[str, dict[str, Any]] = {
    "transformer-tiny": {**TRANSFORMER, **TRANSLATION},
    "auto": {**TRANSFORMER, **TRANSLATION},
    "seq2seq-attention": {**RECURRENT, **TRANSLATION, **LITTLE_GRAMMAR},
    "demo-plain": {**RECURRENT, **TRANSLATION, **LITTLE_GRAMMAR},
    "demo-attention": {**RECURRENT, **TRANSLATION, **LITTLE_GRAMMAR},
    "demo-transformer": {**TRANSFORMER, **TRANSLATION, **LITTLE_GRAMMAR},
    "antecedent": {**TRANSLATION, **LITTLE_GRAMMAR, "data.grammar.max_words": 10},
    "gpt-nano": {**WIDTHS, "training.steps": 4, "training.validate_every": 2},
    "text-classifier": {**WIDTHS, "training.epochs": 1, "tokenizer.size": 320},
    "forecast": SERIES,
    "fibonacci-rnn": SERIES,
    "fibonacci-attention": SERIES,
    "gat-cora": {"training.steps": 3, "training.seeds": 1, "model.heads": 4, "model.head_dim": 2},
}  # fmt: skip
ALSO = {  # further options of other commands
    "finetune --task classify": {"training.epochs": 1},
    "museum visit": {"training.epochs": 1},
    "finetune --task": {"training.steps": 2, "training.validate_every": 1},
    "compare --series --data": TRANSLATION,
    "compare --series": {**TRANSLATION, **LITTLE_GRAMMAR},
}


def tiny(words: Sequence[str]) -> list[str]:
    """Return a documented command with the settings that make it small."""
    if words[0] in ("ladder", "gradients"):
        return [*words, "--steps", "4"]
    if words[:2] == ["corpus", "split"]:
        words = ["9" if word == "1000" else word for word in words]
    if words[:2] == ["train", "--resume"]:
        settings: dict[str, Any] = {"training.steps": 6}
    elif words[:2] == ["train", "--from"]:
        settings = {"training.epochs": 1} if "classify" in words else FINE_TUNING
    elif words[0] == "train":
        settings = TINY[words[1]]
    elif words[0] == "forecast":
        settings = SERIES
    else:
        line = " ".join([words[0], *(word for word in words[1:] if not word.startswith("runs/"))])
        settings = next((value for name, value in ALSO.items() if line.startswith(name)), {})
    return [
        *words,
        *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")),
    ]


CORPUS = regard.corpus(words="small", style="written", length=(3, 8), size=400)
PAIRS = [(pair.source, pair.target) for pair in CORPUS.train]
TEXT = "\n".join(source for source, _ in PAIRS)


def lines(*names: str, most: int = len(PAIRS)) -> Callable[[Path], None]:
    """Return a maker of files with a sentence a line: English, or German by their ending."""

    def make(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        for name in names or (path.name,):
            side = 1 if name.endswith(".de") else 0
            text = "\n".join(pair[side] for pair in PAIRS[:most])
            path.with_name(name).write_text(text + "\n", encoding="utf-8")

    return make


def table(*header: str, kind: str = "\t", cells: Callable[[int], Sequence[object]]) -> Any:
    """Return a maker of a table with a row for each pair."""

    def make(path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter=kind)
            writer.writerows([header] if header else [])
            writer.writerows(cells(number) for number in range(len(PAIRS)))

    return make


def sides(number: int) -> tuple[str, str]:
    return PAIRS[number]


def labelled(number: int) -> tuple[str, str]:
    return PAIRS[number][0], "ab"[number % 2]


def json_lines(path: Path) -> None:
    rows = [{"translation": dict(zip(("en", "de"), sides(n), strict=True))} for n in range(60)]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def compress(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))


def memory(path: Path) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{pair[0]}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{pair[1]}</seg></tuv></tu>'
        for pair in PAIRS
    )
    path.write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>', encoding="utf-8")


def corpus_folder(path: Path, words: Sequence[str]) -> None:
    """Make what a command expects of `corpus`: two files a part, a table, or shards of labels."""
    path.mkdir()
    if "text-classifier" in words:
        for part, count in {"train": 2, "valid": 1, "test": 1}.items():
            for number in range(count):
                rows = [labelled(row) for row in range(60 * number, 60 * number + 60)]
                columns = {"text": [row[0] for row in rows], "label": [row[1] for row in rows]}
                shard = path / f"{part}-{number:05d}-of-{count:05d}.parquet"
                parquet.write_table(pa.table(columns), shard)
    elif "--pair" in words:
        lines("train.en", "train.de")(path / "train.en")
        lines("valid.en", "valid.de", "test.en", "test.de", most=12)(path / "valid.en")
    else:
        for part in ("train", "valid", "test"):
            table(cells=sides)(path / f"{part}.tsv")


def graph(path: Path) -> None:
    draw = np.random.default_rng(1)
    np.savez(path, x=draw.random((1400, 6)).astype(np.float32), y=np.arange(1400) % 2,
             edges=draw.integers(0, 1400, (2, 3000)), idx_train=np.arange(12),
             idx_val=np.arange(12, 30), idx_test=np.arange(30, 60))  # fmt: skip


def gpt2_folder(path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    transformers = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=257,
            n_positions=32,
            n_embd=16,
            n_layer=1,
            n_head=2,
            bos_token_id=256,
            eos_token_id=256,
        )
    )
    transformers.save_pretrained(path)
    from tokenizers.pre_tokenizers import ByteLevel

    letters = [*sorted(ByteLevel.alphabet()), "<|endoftext|>"]
    (path / "vocab.json").write_text(json.dumps({letter: n for n, letter in enumerate(letters)}))
    (path / "merges.txt").write_text("#version: 0.2\n")


def documented_parts(path: Path) -> None:
    """Write the attention score that CONTRIBUTING.md shows."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(
        r"^## Add an attention score\n.*?^```python\n(.*?)^```", text, re.M | re.S
    )
    path.write_text(found, encoding="utf-8")


def run_of(*command: str) -> Callable[[Path], None]:
    """Return a maker of a run, by a command without its `--out`."""
    return lambda path: perform([*command, "--out", str(path)])


SPLIT = "corpus split --data mixed.tsv --valid 9 --test 9 --out data/mine"
TRANSLATOR = ("train", "transformer-tiny", "--data", "pairs.tsv", "--pair", "en-de")
# What the documents name, and how it comes to be.
MAKERS: dict[str, Callable[[Path], None]] = {
    "pairs.csv": table("id", "English", "German", kind=",", cells=lambda n: (n, *sides(n))),
    "reviews.csv": table("stars", "text", kind=",", cells=lambda n: labelled(n)[::-1]),
    "reviews.tsv": table(cells=labelled),
    "prices.csv": table("day", "close", kind=",", cells=lambda n: (n, 50 + n % 7)),
    "edges.csv": table(kind=",", cells=lambda n: (n, (n + 1) % 120)),
    "features.csv": table(kind=",", cells=lambda n: (n, n % 2, n % 3)),
    "labels.csv": table(kind=",", cells=lambda n: (n, "ab"[n % 2])),
    "cora.npz": graph,
    "memory.tmx": memory,
    "part1.jsonl": json_lines,
    "part2.jsonl.gz": json_lines,
    "books": lambda path: lines("one.txt", "two.txt")(path / "one.txt"),
    "book.txt": lambda path: path.write_text(TEXT) and None,
    "models/en-pt": lambda path: path.parent.mkdir(exist_ok=True) or (marian_folder(path) and None),
    "gpt2-folder": gpt2_folder,
    "my_parts.py": documented_parts,
    "causal_mask.py": lambda path: perform(["exercise", "start", "causal-mask"]),
    "data/mine": lambda path: perform(SPLIT.split()),
    **{
        f"runs/{name}": run_of(*TRANSLATOR)
        for name in ("mine", "other", "a", "b", "t")
    },
    **{
        f"runs/demo/{name}": run_of("train", f"demo-{name}", "--built-in")
        for name in ("plain", "attention", "transformer")
    },
    "runs/it": run_of("train", "antecedent"),
    "runs/book": run_of("train", "gpt-nano", "--data", "book.txt"),
    "runs/questions": run_of("train", "text-classifier", "--data", "reviews.tsv"),
    "runs/cora": run_of("train", "gat-cora", "--data", "cora.npz"),
    "runs/fibonacci-attention": run_of("train", "fibonacci-attention"),
}  # fmt: skip
# Other files by their ending.
KINDS = {
    ".tsv": table(cells=sides),
    ".tsv.gz": lambda path: table(cells=sides)(path) or compress(path),
    ".en": lines(),
    ".de": lines(),
    ".txt": lines(),
}
# Names that mean something else in one document.
OTHER_RUNS = {
    ("exchange.md", "export runs/mine"): run_of(*TRANSLATOR),
    ("language-models.md", "export runs/mine"): run_of("import", "gpt2-folder"),
}


def maker_of(name: str) -> Callable[[Path], None] | None:
    """Return what makes a file or run of this name, None for what is no such name."""
    ending = "".join(Path(name).suffixes) if " " not in name else ""
    return MAKERS.get(name) or KINDS.get(ending)


def perform(words: Sequence[str], codes: Sequence[int | None] = (0, None)) -> None:
    """Run a documented command at a tiny size, after making what it names."""
    outputs = [words[place + 1] for place, word in enumerate(words) if word in OUTPUTS]
    outputs += ["runs/model-series"] * ("--series" in words)
    for word in words:
        if word == "corpus" and words[0] != "corpus":
            shutil.rmtree(word, ignore_errors=True)
            corpus_folder(Path(word), words)
        elif (make := maker_of(word)) and word not in outputs and not Path(word).exists():
            Path(word).parent.mkdir(parents=True, exist_ok=True)
            make(Path(word))
    for output in map(Path, outputs):
        if output.is_dir():
            shutil.rmtree(output)
        output.unlink(missing_ok=True)
    call = tiny(words)
    if "onnx" in call:  # its model only resembles the type that the hooks of the tests insist on
        program = [sys.executable, "-c", "from regard.cli.app import main; main()"]
        subprocess.run([*program, *call], check=True, capture_output=True)
        return
    said = StringIO()
    with pytest.raises(SystemExit) as stopped, redirect_stderr(said):
        main(call)
    assert stopped.value.code in codes, f"regard {' '.join(call)}\n{said.getvalue()}"


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documented_commands_run(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: None)
    monkeypatch.setitem(SCORES, "cosine", SCORES["dot"])  # taken out again at the end
    for words in commands(path):
        name = " ".join(words[:2])
        if name in NOT_RUN:
            continue
        if (path.name, name) in OTHER_RUNS:
            OTHER_RUNS[path.name, name](Path(words[1]))
        stdin = TextIOWrapper(BytesIO(b"cats see dogs\n"))
        monkeypatch.setattr(sys, "stdin", stdin)
        perform(words, ENDS.get(name, (0, None)))
