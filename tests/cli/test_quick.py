from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADED = "; import sys; print(*sorted({'torch', 'matplotlib', 'sacrebleu'} & set(sys.modules)))"


@pytest.mark.parametrize(
    "code",
    [
        "import regard; regard.__version__",
        "import regard.cli.app",
        "from typer.testing import CliRunner; from regard.cli.app import app;"
        "assert 'translate' in CliRunner().invoke(app, ['--help']).output",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", code + LOADED], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


# Every top-level module of an extra: a plain installation has none of them.
EXTRAS = (
    "fastapi", "starlette", "uvicorn", "prometheus_client", "py3langid", "multipart", "tokenizers",
    "transformers", "networkx", "sklearn", "tensorboard", "torch_geometric", "keras", "onnx",
    "onnxruntime", "pyarrow", "pandas", "docx", "odf", "docutils",
)  # fmt: skip
COMMANDS = (
    ["--help"], ["recipes"], ["demo", "--help"], ["serve", "--help"], ["import", "--help"],
    ["corpus", "grammar", "--size", "20", "--valid-size", "2", "--test-size", "2", "--out", "c"],
    ["train", "demo-attention", "--out", "run", "--set", "data.train=['c/train.en','c/train.de']",
     "--set", "data.valid=['c/valid.en','c/valid.de']", "--set", "training.steps=2"],
    ["translate", "run", "cats sleep"],
    ["look", "run", "cats sleep", "--out", "cats.png"],
)  # fmt: skip
PLAIN = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None  # importing it is an ImportError
from regard.cli.app import app
from typer.testing import CliRunner
for command in COMMANDS:
    result = CliRunner().invoke(app, command)
    assert result.exit_code in (0, 2), (command, result.output, result.exception)
    assert not isinstance(result.exception, ImportError), command
    if command[0] != "import":
        assert result.exit_code == 0, (command, result.output)
"""


def test_a_plain_installation_needs_no_extra(tmp_path: Path) -> None:
    code = PLAIN.replace("COMMANDS:", repr(COMMANDS) + ":")
    found = subprocess.run(
        [sys.executable, "-c", code, ",".join(EXTRAS)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr


def test_a_name_that_regard_does_not_have() -> None:
    import regard

    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'lode'"):
        regard.lode  # noqa: B018
    assert issubclass(regard.RegardError, Exception)
