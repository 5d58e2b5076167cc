"""The first hour of a new user: a TSV, Ctrl-C, --resume, scores, report, translation, page.

The wheel of this clone is built and installed into a new virtual environment, from which alone the
program is run; what it depends on is taken from the environment of the tests. Every step is a
command in a process of its own, in a folder far from the clone, and what it prints is checked.
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
import venv
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WORDS = {"cats": "Katzen", "dogs": "Hunde", "mice": "Mäuse", "birds": "Vögel", "see": "sehen",
         "like": "mögen", "hear": "hören", "big": "große", "small": "kleine",
         "old": "alte"}  # fmt: skip
SMALL = ["--set", "tokenizer.kind=word",
         "--set", "model.hidden=32", "--set", "model.embedding=16", "--set", "model.dropout=0",
         "--set", "training.validate_every=50", "--set", "training.warmup=10"]  # fmt: skip


class Home(NamedTuple):
    """A user's folder, and the program that was installed for it."""

    folder: Path
    program: Path

    def command(self, *arguments: object) -> list[str]:
        return [str(self.program), *map(str, arguments)]

    def regard(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command here; it must end with this code and without a traceback."""
        found = subprocess.run(
            self.command(*arguments),
            cwd=self.folder, env=plain(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert found.returncode == code, found.stdout + found.stderr
        assert "Traceback" not in found.stderr
        return found


def plain() -> dict[str, str]:
    """Return the environment without what leads to the clone, 80 columns wide."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "COLUMNS": "80"
    }


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return `regard` in a new environment that has the wheel of this clone."""
    place = tmp_path_factory.mktemp("environment")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    built = subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", place / "dist", ROOT],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode:
        pytest.skip(f"no wheel could be built: {built.stderr[-300:]}")
    (wheel,) = (place / "dist").glob("regard-*.whl")
    venv.create(place / "venv", with_pip=False)
    (packages,) = (place / "venv" / "lib").glob("python*/site-packages")
    lent = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    (packages / "dependencies.pth").write_text(f"{lent}\n", encoding="utf-8")
    python = place / "venv" / "bin" / "python"
    install = [*pip, "--python", python, "install", "--quiet", "--no-deps", "--ignore-installed"]
    subprocess.run([*install, wheel], check=True, capture_output=True, env=plain())
    return python.with_name("regard")


@pytest.fixture(scope="module")
def home(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
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
    return Home(folder, program)


def test_the_program_is_the_installed_one(home: Home) -> None:
    python = home.program.with_name("python")
    code = "import regard; print(regard.__file__); regard.find_recipe('transformer-tiny')"
    found = subprocess.run(
        [python, "-c", code], cwd=home.folder, env=plain(), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    installed = Path(found.stdout.strip()).parent
    assert installed.is_relative_to(home.program.parent.parent)
    assert list((installed / "serving" / "page").glob("*.html"))


def test_a_setting_is_found(home: Home) -> None:
    assert "training.minutes" in home.regard("recipes", "--search", "minutes").stdout
    assert "stop after this many minutes" in home.regard("recipes", "transformer-tiny").stdout


def test_a_plan_writes_nothing(home: Home) -> None:
    found = home.regard("train", "seq2seq-attention", "--data", "pairs.tsv", "--dry-run", *SMALL)
    told = found.stdout + found.stderr
    for part in ("Held out of 2,000 pairs", "vocabulary", "parameters", "memory", "time"):
        assert part in told
    assert not (home.folder / "runs").exists()


def test_forgotten_data_is_an_error(home: Home) -> None:
    found = home.regard("train", "seq2seq-attention", "--out", "runs/none", code=2)
    assert "--data" in found.stderr and "--built-in" in found.stderr
    assert not (home.folder / "runs" / "none").exists()


def test_training_stops_and_goes_on(home: Home) -> None:
    command = home.command("train", "seq2seq-attention", "--data",
                           "pairs.tsv", "--minutes", "1", "--out", "runs/mine", *SMALL)  # fmt: skip
    process = subprocess.Popen(
        command,
        cwd=home.folder,
        env=plain(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    metrics = home.folder / "runs" / "mine" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "regard train --resume runs/mine" in said
    assert "Traceback" not in said
    found = home.regard("train", "--resume", "runs/mine", "--set", "training.minutes=0.5")
    told = found.stdout + found.stderr
    for part in ("esuming at update", "BLEU", "chrF", "Best translations", "Worst translations",
                 "Next:", "regard translate runs/mine"):  # fmt: skip
        assert part in told


def test_the_report_shows_translations(home: Home) -> None:
    page = (home.folder / "runs" / "mine" / "report.html").read_text(encoding="utf-8")
    assert "BLEU" in page and "<svg" in page


def test_a_sentence_is_translated_and_unknown_words_are_said(home: Home) -> None:
    found = home.regard("translate", "runs/mine", "big cats see small dogs")
    assert found.stdout.strip()
    found = home.regard("translate", "runs/mine", "big zebras see dogs")
    assert "[1 unknown word: zebras]" in found.stderr


def test_documents_stay_valid(home: Home) -> None:
    (home.folder / "a.po").write_text('msgid "see %(count)d dogs"\nmsgstr ""\n', encoding="utf-8")
    found = home.regard("translate", "runs/mine", "--input", "a.po")
    assert found.stdout.count("%(count)d") == 2 and "#, fuzzy" in found.stdout


def test_the_page_answers(home: Home) -> None:
    pytest.importorskip("fastapi")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = home.command("serve", "runs/mine", "--pair", "en-de", "--port", port)
    server = subprocess.Popen(command, cwd=home.folder, env=plain(), stdout=subprocess.DEVNULL)
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
