"""`regard serve`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[uvicorn.Server]:
    """The servers that would have begun."""
    found: list[uvicorn.Server] = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, sockets: found.append(server))
    return found


def test_runs_are_served(
    run: Callable[..., Any], served: list[uvicorn.Server], random_transformer_run: Path
) -> None:
    answer = run(
        "serve", random_transformer_run, "--pair", "en-de", "--port", 0, "--engine", "torch",
        "--one-at-a-time", "--origin", "*", "--max-characters", 50, "--verbose",
    )  # fmt: skip
    assert answer.code == 0
    assert "transformer: en-de, engine torch" in answer.err
    assert "Serving at http://127.0.0.1:" in answer.err
    app = served[0].config.app
    assert app.state.server.settings.batch_sentences == 1  # type: ignore[union-attr]
    with TestClient(app) as client:  # type: ignore[arg-type]
        assert client.get("/frontend/settings").json()["charLimit"] == 50


def test_keys_are_read(
    run: Callable[..., Any],
    served: list[uvicorn.Server],
    random_transformer_run: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "keys").write_text("alpha\n")
    options = ("--pair", "en-de", "--port", 0, "--engine", "torch", "--keys", tmp_path / "keys")
    assert run("serve", random_transformer_run, *options).code == 0
    assert served[0].config.app.state.server.rate_limiter.requires_key  # type: ignore[union-attr]


def test_a_run_whose_data_names_no_languages_is_served(
    run: Callable[..., Any], served: list[uvicorn.Server], random_transformer_run: Path
) -> None:
    answer = run("serve", random_transformer_run, "--port", 0, "--engine", "torch")
    assert answer.code == 0
    assert len(served) == 1
    assert "transformer: src-tgt, engine torch" in answer.err
    assert "The data names no languages: name them with --pair, as en-de." in answer.err


@pytest.mark.usefixtures("served")
def test_mistakes_are_named(
    refuse: Callable[..., str], random_transformer_run: Path, tmp_path: Path
) -> None:
    run = random_transformer_run
    assert "is not a pair of languages" in refuse("serve", run, "--port", 0, "--pair", "x")
    assert "There is no run at" in refuse("serve", tmp_path / "none", "--port", 0)
    assert "no keys" in refuse("serve", run, "--keys", _written(tmp_path / "keys"), "--port", 0)


def test_what_is_not_installed_is_named(
    refuse: Callable[..., str], random_transformer_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "uvicorn" else 1)
    assert refuse("serve", random_transformer_run) == (
        "Error: The server needs packages that are not installed (uvicorn): "
        "pip install fastapi uvicorn prometheus-client py3langid python-multipart."
    )


def _written(path: Path) -> Path:
    path.write_text("# none\n")
    return path
