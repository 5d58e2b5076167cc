from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

TINY = ["--set", "training.steps=6", "--set", "training.checkpoint_every=2",
        "--set", "model.hidden=8", "--set", "training.validate_sentences=4"]  # fmt: skip


def options(settings: list[str]) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


@pytest.fixture(scope="module")
def tiny(toy_settings: list[str]) -> list[str]:
    return [*options(toy_settings), *TINY]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_run_is_trained_tested_reported_and_can_be_resumed(
    run: Any, refuse: Any, tiny: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    answer = run("train", "seq2seq-attention", *tiny, "--out", out, "--json")
    assert answer.code == 0
    assert "all 6 updates done" in answer.err
    found = answer.json
    assert found["run"] == str(out)
    assert "bleu" in json.dumps(found)
    assert (out / "report.html").is_file()
    assert (out / "test.json").is_file()
    before = files(out)
    message = refuse("train", "seq2seq-attention", *tiny, "--out", out)
    assert f"{out} already holds a run: continue it with --resume" in message
    differs = refuse("train", "seq2seq", *tiny, "--out", out, "--resume")
    assert "The settings under 'model' differ from those of the run" in differs
    assert files(out) == before
    more = ["--set", "training.steps=8"]
    again = run("train", "seq2seq-attention", *tiny, *more, "--out", out, "--resume")
    assert "all 8 updates done" in again.err
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps[-1] == 8


@pytest.fixture
def corpus(toy_corpus: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "corpus"
    shutil.copytree(toy_corpus, copy)
    return copy


def damaged(path: Path, *, line: bytes | None = None, content: bytes | None = None) -> None:
    """Put other content into a file, or a line into its place 3."""
    lines = path.read_bytes().splitlines()
    if line is not None:
        lines[2] = line
    path.write_bytes(b"\n".join(lines) + b"\n" if content is None else content)


# Name of the case: what happens to train.src, and what the message says after the file's name.
BAD_CORPORA: dict[str, tuple[dict[str, bytes], str]] = {
    "invalid UTF-8": ({"line": b"ba\xffdal"}, ", line 3: invalid UTF-8 at byte 3"),
    "an empty file": ({"content": b""}, ": the file is empty."),
    "an empty line": ({"line": b""}, ", line 3: the line is empty."),
    "100,000 words": ({"line": b"badal " * 100_000}, ", line 3: the line has 100000 words"),
    "unequal counts": ({"content": b"badal\nkofen\n"}, ": has 2 lines, but "),
}


def test_a_transformer_is_made_ready_for_the_fast_engine(
    run: Any, toy_settings: list[str], toy_corpus: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    many = f"data.valid=[{toy_corpus / 'train.src'},{toy_corpus / 'train.tgt'}]"
    small = ["layers=1", "model_dim=16", "heads=2", "feed_forward=16"]
    settings = [line for line in toy_settings if not line.startswith("model.")]
    settings += [*(f"model.{line}" for line in small), "training.steps=2", "decoding.beam=2", many]
    out = tmp_path / "run"
    run("train", "transformer-tiny", *options(settings), "--out", out)
    (measured,) = json.loads((out / "engines" / "patience.json").read_text("utf-8")).values()
    assert measured["sentences"] == 600


@pytest.mark.parametrize("case", BAD_CORPORA)
def test_a_bad_corpus_is_named_before_anything_is_written(
    refuse: Any, corpus: Path, tmp_path: Path, case: str
) -> None:
    damage, message = BAD_CORPORA[case]
    source, target = corpus / "train.src", corpus / "train.tgt"
    damaged(source, **damage)
    setting = ["--set", f"data.train=[{source},{target}]"]
    said = refuse("train", "seq2seq", *setting, "--out", tmp_path / "run")
    assert f"{source}{message}" in said
    if case == "unequal counts":
        assert f"{target} has 600" in said
    assert not (tmp_path / "run").exists()


def test_mistakes_leave_nothing_behind(refuse: Any, tiny: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    cases = {
        "data.train=[no.src,no.tgt]": "no.src: there is no such file",
        "training.step=5": "unknown key 'training.step'. Did you mean 'steps'?",
        "model.attention=dott": "Unknown model.attention 'dott'. Did you mean 'dot'?",
        "batches.max_length=1": "No training pair is within batches.max_length (1 tokens)",
        "training": "--set 'training' is not of the form key=value.",
    }
    for setting, message in cases.items():
        said = refuse("train", "seq2seq-attention", *tiny, "--set", setting, "--out", out)
        assert message in said
        assert not out.exists(), setting
    assert "Did you mean 'seq2seq'" in refuse("train", "seq2sec", "--out", out)
    assert "There is no run at" in refuse("train", "seq2seq", *tiny, "--out", out, "--resume")


def test_other_data_cannot_be_resumed_on(
    run: Any, refuse: Any, corpus: Path, tiny: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    own = ["--set", f"data.train=[{corpus}/train.src,{corpus}/train.tgt]"]
    run("train", "seq2seq-attention", *tiny, *own, "--out", out)
    damaged(corpus / "train.src", line=b"badal")
    said = refuse("train", "seq2seq-attention", *tiny, *own, "--out", out, "--resume")
    assert "The data has changed since the checkpoint" in said


def test_a_checkpoint_cut_short_is_named(
    run: Any, refuse: Any, tiny: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run("train", "seq2seq-attention", *tiny, "--out", out)
    newest = sorted((out / "checkpoints").iterdir())[-1] / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:500])
    more = ["--set", "training.steps=9", "--out", out, "--resume"]
    said = refuse("train", "seq2seq-attention", *tiny, *more)
    assert f"{newest} is missing or damaged (was it cut short?)" in said


def test_a_suspicious_corpus_is_warned_about_and_does_not_stop_the_command(
    run: Any, corpus: Path, tiny: list[str], tmp_path: Path
) -> None:
    files = ["--set", f"data.train=[{corpus}/train.src,{corpus}/train.src]"]
    # A mistake that is noticed only after the warnings spares the test a training.
    later = ["--set", "tokenizer.size=4000", "--set", "batches.max_length=1"]
    answer = run("train", "seq2seq-attention", *tiny, *files, *later, "--out", tmp_path / "run")
    assert "Warning: 600 of 600 lines are the same in source and target." in answer.err
    assert "Warning: A vocabulary of 4,000 entries is large for " in answer.err
    assert answer.err.splitlines()[-1].startswith("Error: No training pair is within")
