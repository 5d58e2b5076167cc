from __future__ import annotations

import subprocess
import sys

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


def test_a_name_that_regard_does_not_have() -> None:
    import regard

    with pytest.raises(AttributeError, match="module 'regard' has no attribute 'lode'"):
        regard.lode  # noqa: B018
    assert issubclass(regard.RegardError, Exception)
