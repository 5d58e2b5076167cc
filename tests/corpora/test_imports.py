"""Importing the readers and tokenizers: cheap, and without the grammar."""

import subprocess
import sys
from pathlib import Path

import regard

ROOT = Path(regard.__file__).parent
TRACED = """
import importlib, os, sys
ran = set()
def trace(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(sys.argv[1] + os.sep):
        ran.add(f"{code.co_filename}: {code.co_name}")
sys.setprofile(trace)
for name in sys.argv[2:]:
    importlib.import_module(name)
sys.setprofile(None)
print(*sorted(ran), sep="\\n", end="")
"""
READ = """
import sys
from regard.tasks.translation.data import read_splits
from regard.tasks.translation.settings import DataSettings
files = [sys.argv[1], sys.argv[1]]
read_splits(DataSettings(train=files, valid=files))
print(*(name for name in sys.modules if name.startswith("regard.corpora.grammar")), end="")
"""


def output_of(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_importing_corpora_and_text_runs_no_function_of_the_package() -> None:
    files = [file for room in ("corpora", "text") for file in sorted((ROOT / room).rglob("*.py"))]
    modules = [
        ".".join(("regard", *file.relative_to(ROOT).with_suffix("").parts)) for file in files
    ]
    assert output_of(TRACED, str(ROOT), *modules) == ""


def test_a_corpus_of_files_is_read_without_the_grammar(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("a\nb\n" * 10, encoding="utf-8")
    assert output_of(READ, str(file)) == ""
