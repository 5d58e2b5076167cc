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
    assert f"{out} already holds a run: continue it with `regard train --resume {out}`" in message
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


def test_the_end_of_a_short_training_is_short(
    run: Any, toy_settings: list[str], toy_corpus: Path, tmp_path: Path
) -> None:
    many = f"data.valid=[{toy_corpus / 'train.src'},{toy_corpus / 'train.tgt'}]"
    small = ["layers=1", "model_dim=16", "heads=2", "feed_forward=16"]
    settings = [line for line in toy_settings if not line.startswith("model.")]
    settings += [*(f"model.{line}" for line in small), "training.steps=2", "decoding.beam=2", many]
    settings.append(many.replace("data.valid", "data.test"))
    out = tmp_path / "run"
    answer = run("train", "transformer-tiny", *options(settings), "--out", out)
    assert answer.code == 0
    if "the model has hardly learned" in answer.err:
        assert not (out / "engines").exists()
        assert "It is tested by greedy search on 100 of 600 sentences" in answer.err
        assert "(100 test sentences, greedy search; 95 % intervals)" in answer.err
    else:
        (measured,) = json.loads((out / "engines" / "patience.json").read_text()).values()
        assert measured["sentences"] == 600
    assert "Best translations (chrF)" in answer.err
    assert f"regard serve {out}" in answer.err.splitlines()[-1]
    assert "\nNext:\n" in answer.err


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
    assert f"The data has changed since the run at {out} began" in said


def test_a_run_is_resumed_by_its_folder_alone(
    run: Any, refuse: Any, tiny: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "my run"
    run("train", "seq2seq-attention", *tiny, "--out", out)
    recipe = (out / "recipe.toml").read_bytes()
    again = run("train", "--resume", out)
    assert again.code == 0
    assert "resuming at update 6" in again.err
    assert (out / "recipe.toml").read_bytes() == recipe
    for number, form in enumerate(
        (["--resume", out], [out, "--resume"], ["--resume", "--out", out])
    ):
        steps = 7 + number
        longer = run("train", *form, "--set", f"training.steps={steps}")
        assert longer.code == 0
        assert f"resuming at update {steps - 1}" in longer.err
        assert f"all {steps} updates done" in longer.err
    said = refuse("train", "--resume", out, "--set", "training.seed=9")
    assert "has training.seed = 1, not 9" in said


def test_what_is_missing_for_a_training_is_named(refuse: Any, tmp_path: Path) -> None:
    assert "A training needs a recipe. To go on with a run: regard train --resume DIR." in refuse(
        "train", "--out", tmp_path / "run"
    )
    assert "A training needs a folder for the run: --out DIR." in refuse("train", "seq2seq")
    assert "Name the run to go on with: regard train --resume DIR." in refuse("train", "--resume")
    assert "There is no run at nowhere: no such folder." in refuse("train", "--resume", "nowhere")


def test_a_damaged_checkpoint_is_said_and_the_one_before_is_used(
    run: Any, tiny: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run("train", "seq2seq-attention", *tiny, "--out", out)
    newest = sorted((out / "checkpoints").iterdir())[-1] / "model.safetensors"
    newest.write_bytes(newest.read_bytes()[:500])
    answer = run("train", "--resume", out, "--set", "training.steps=7")
    assert answer.code == 0
    assert f"{newest} is missing or damaged (it does not match its checksum)." in answer.err
    assert "Going on from the checkpoint of update 4." in answer.err
    assert "resuming at update 4" in answer.err
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if row["kind"] == "valid"] == [7]


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


def test_a_dry_run_shows_the_plan_and_writes_nothing(
    run: Any, tiny: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    answer = run("train", "seq2seq-attention", *tiny, "--out", out, "--dry-run")
    assert answer.code == 0
    for start in ("pairs", "lengths", "vocabulary", "model", "updates", "memory", "time"):
        assert any(line.startswith(f"{start} ") for line in answer.lines), answer.out
    assert "600 train, 40 valid, 30 test" in answer.out
    assert not out.exists()
    values = run("train", "seq2seq-attention", *tiny, "--dry-run", "--json").json
    assert values["pairs"] == {"train": 600, "valid": 40, "test": 30}
    assert values["updates"] == 6
    assert values["memory"]["total"] > 0


def test_a_plan_is_shown_before_a_training_and_names_pairs_that_are_left_out(
    run: Any, tiny: list[str], tmp_path: Path
) -> None:
    shorter = ["--set", "batches.max_length=6"]
    answer = run("train", "seq2seq-attention", *tiny, *shorter, "--out", tmp_path / "run")
    assert answer.code == 0
    shown = answer.err
    assert shown.index("\nmemory ") < shown.index("all 6 updates done")
    left_out = next(line for line in shown.splitlines() if line.startswith("left out"))
    assert ": more than 6 tokens (batches.max_length), as '" in left_out


@pytest.fixture
def pairs(toy_corpus: Path, tmp_path: Path) -> Path:
    lines = [(toy_corpus / f"train.{end}").read_text().splitlines() for end in ("src", "tgt")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(*lines, strict=True)), encoding="utf-8")
    return path


def test_auto_chooses_by_data_and_minutes_and_says_why(
    run: Any, pairs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    small = options(["training.steps=2", "training.validate_sentences=2", "model.layers=1",
                     "model.feed_forward=64"])  # fmt: skip
    answer = run("train", "auto", "--data", pairs, "--minutes", "0.5", *small, "--out", out)
    assert answer.code == 0, answer.err
    assert "auto: 480 pairs of" in answer.err
    assert "subwords for both sides" in answer.err
    assert "layers of width 128, dropout 0." in answer.err
    recipe = (out / "recipe.toml").read_text(encoding="utf-8")
    assert 'title = "auto: 480 pairs in 0.5 minutes"' in recipe
    assert "minutes = 0.5" in recipe
    assert "\nlayers = 1\n" in recipe  # what is set wins
    assert "\nfeed_forward = 64\n" in recipe
    assert str(pairs) in recipe


def test_the_plan_of_auto_has_the_reasons(run: Any, pairs: Path) -> None:
    answer = run("train", "auto", "--data", pairs, "--minutes", "0.5", "--dry-run", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["reasons"][0].startswith("480 pairs of")
    assert answer.json["by_minutes"] is True


def test_auto_needs_minutes_data_and_a_task_that_it_knows(
    refuse: Any, pairs: Path, tmp_path: Path
) -> None:
    out = ["--out", tmp_path / "run"]
    assert "give the time, as --minutes 10" in refuse("train", "auto", "--data", pairs, *out)
    assert "--data" in refuse("train", "auto", "--minutes", "1", *out)
    message = refuse(
        "train", "auto", "--set", "task=language-model", "--data", pairs, "--minutes", "1", *out
    )
    assert "'auto' cannot choose for the task 'language-model' (it can for translate)" in message
    assert not (tmp_path / "run").exists()


def test_a_run_is_fine_tuned_without_a_recipe(
    run: Any, refuse: Any, toy_run: Path, toy_corpus: Path, tmp_path: Path
) -> None:
    pairs = [str(toy_corpus / f"train.{end}") for end in ("src", "tgt")]
    general = [str(toy_corpus / f"valid.{end}") for end in ("src", "tgt")]
    given = [
        "train", "--from", toy_run, "--data", *pairs, "--general-test", *general,
        "--out", tmp_path / "run", "--set", "training.steps=2", "--set", "decoding.beam=1",
        "--set", "training.validate_sentences=2",
    ]  # fmt: skip
    plan = run(*given, "--dry-run")
    assert plan.code == 0, plan.err
    assert f"model, tokenizers and search are those of {toy_run}" in plan.out
    assert not (tmp_path / "run").exists()
    answer = run(*given, "--json")
    assert answer.code == 0, answer.err
    assert "general: 40 sentences, data.general_test" in answer.err
    inside, outside = answer.json["test"]["fine_tuning"]["tests"]
    assert (inside["test"], outside["test"]) == ("in domain", "general")
    assert "To fine-tune one: regard train --from DIR" in refuse("train")
    said = refuse("train", "demo-attention", "--task", "answer", "--out", tmp_path / "other")
    assert "name it with --from" in said
