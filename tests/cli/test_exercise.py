from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_start_and_check(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "causal-mask" in run("exercise", "list").out
    assert run("exercise", "list", "--json").json["softmax"]["title"] == "Weights from scores"
    assert "Wrote causal_mask.py" in run("exercise", "start", "causal-mask").out
    begun = run("exercise", "check", "causal_mask.py")
    assert begun.code == 1
    assert "Nothing is written yet" in begun.out
    text = Path("causal_mask.py").read_text()
    right = "return torch.ones(length, length).tril().bool()"
    Path("causal_mask.py").write_text(text.replace("raise NotImplementedError", right))
    assert run("exercise", "check", "causal_mask.py").out == "causal-mask: right.\n"
    answer = run("exercise", "check", "causal_mask.py", "--json").json
    assert answer == {"exercise": "causal-mask", "mistake": None}
    again = run("exercise", "start", "causal-mask")
    assert (again.code, "exists already" in again.err) == (2, True)
