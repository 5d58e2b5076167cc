"""The first hour of a new user: a TSV, Ctrl-C, --resume, scores, report, translation, page.

Every step is a command in a process of its own, and what it prints is checked.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
REGARD = (sys.executable, "-c", "from regard.cli.app import main; main()")
WORDS = {"cats": "Katzen", "dogs": "Hunde", "mice": "Mäuse", "birds": "Vögel", "see": "sehen",
         "like": "mögen", "hear": "hören", "big": "große", "small": "kleine",
         "old": "alte"}  # fmt: skip
SMALL = ["--set", "tokenizer.kind=word",
         "--set", "model.hidden=32", "--set", "model.embedding=16", "--set", "model.dropout=0",
         "--set", "training.validate_every=50", "--set", "training.warmup=10"]  # fmt: skip


def regard(*arguments: object, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [*REGARD, *map(str, arguments)]
    found = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert found.returncode == code, found.stdout + found.stderr
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder with the pairs of a user."""
    folder = tmp_path_factory.mktemp("first-hour")
    random = Random(1)
    nouns, verbs, kinds = (["cats", "dogs", "mice", "birds"], ["see", "like", "hear"],
                           ["big", "small", "old"])  # fmt: skip
    lines = []
    for _ in range(2_000):
        words = [random.choice(kinds), random.choice(nouns), random.choice(verbs),
                 random.choice(kinds), random.choice(nouns)]  # fmt: skip
        lines.append(" ".join(words) + "\t" + " ".join(WORDS[word] for word in words))
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_forgotten_data_is_an_error(home: Path) -> None:
    found = regard("train", "seq2seq-attention", "--out", "runs/none", cwd=home, code=2)
    assert "--data" in found.stderr and "--built-in" in found.stderr
    assert not (home / "runs" / "none").exists()


def test_training_stops_and_goes_on(home: Path) -> None:
    command = [*REGARD, "train", "seq2seq-attention", "--data",
               "pairs.tsv", "--minutes", "1", "--out", "runs/mine", *SMALL]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    metrics = home / "runs" / "mine" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "regard train --resume runs/mine" in said
    assert "Traceback" not in said
    found = regard("train", "--resume", "runs/mine", "--set", "training.minutes=0.5", cwd=home)
    told = found.stdout + found.stderr
    assert "esuming at update" in told
    assert "BLEU" in told


def test_the_report_shows_translations(home: Path) -> None:
    page = (home / "runs" / "mine" / "report.html").read_text(encoding="utf-8")
    assert "BLEU" in page and "<svg" in page


def test_a_sentence_is_translated_and_unknown_words_are_said(home: Path) -> None:
    found = regard("translate", "runs/mine", "big cats see small dogs", cwd=home)
    assert found.stdout.strip()
    found = regard("translate", "runs/mine", "big zebras see dogs", cwd=home)
    assert "[1 unknown word: zebras]" in found.stderr


def test_documents_stay_valid(home: Path) -> None:
    (home / "a.po").write_text('msgid "see %(count)d dogs"\nmsgstr ""\n', encoding="utf-8")
    found = regard("translate", "runs/mine", "--input", "a.po", cwd=home)
    assert found.stdout.count("%(count)d") == 2 and "#, fuzzy" in found.stdout


def test_the_page_answers(home: Path) -> None:
    pytest.importorskip("fastapi")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*REGARD, "serve", "runs/mine", "--pair", "en-de",
               "--port", str(port)]  # fmt: skip
    server = subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL, env={**os.environ})
    try:
        address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 90
        while True:
            try:
                page = urllib.request.urlopen(f"{address}/", timeout=5).read().decode()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline
                time.sleep(0.5)
        assert "<title>" in page
        body = json.dumps({"q": "big cats see dogs", "source": "en", "target": "de"}).encode()
        request = urllib.request.Request(
            f"{address}/translate", body, {"Content-Type": "application/json"}
        )
        answer = json.loads(urllib.request.urlopen(request, timeout=30).read())
        assert answer["translatedText"]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)


def test_a_wheel_runs_without_the_clone(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    built = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path / "dist", ROOT],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode:
        pytest.skip(f"no wheel could be built: {built.stderr[-300:]}")
    (wheel,) = (tmp_path / "dist").glob("regard-*.whl")
    place = tmp_path / "installed"
    install = [*pip, "install", "--quiet", "--no-deps", "--target", place, wheel]
    subprocess.run(install, check=True, capture_output=True)
    assert (place / "regard" / "runs" / "recipes" / "transformer-tiny.toml").is_file()
    assert list((place / "regard" / "serving" / "page").glob("*.html"))
    environment = {**os.environ, "PYTHONPATH": str(place)}
    code = "import regard; print(regard.__file__); regard.find_recipe('transformer-tiny')"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert str(place) in found.stdout
