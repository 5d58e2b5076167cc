"""Models that are loaded when they are asked for, and unloaded beyond a limit."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from regard.base.errors import RunError, SettingsError
from regard.serving.app import create_app
from regard.serving.errors import ApiError
from regard.serving.languages import Pair
from regard.serving.limits import ServerSettings, bytes_of
from regard.serving.memory import FAILED_SECONDS, ModelMemory, require_room, resident_bytes
from regard.serving.models import StoredModel, stored_models
from regard.tasks.translation.model import load


class FakeModel:
    """A model that counts its loads, waits for a gate, and may fail."""

    kept = False
    translator = None
    bytes_needed = 10

    def __init__(self, name: str, taken: set[str]):
        self.name = name
        self.taken = taken
        self.error: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()

    def load(self) -> Any:
        self.gate.wait(10)
        if self.error is not None:
            raise self.error
        self.taken.add(self.name)
        return Weights(self)


class Weights:
    """What takes memory as long as it exists."""

    def __init__(self, model: FakeModel):
        self.model = model

    def __del__(self) -> None:
        self.model.taken.discard(self.model.name)


def scene(work: Callable[[ModelMemory, list[FakeModel]], Any], *, limit: int | None = 25) -> Any:
    """Run a coroutine with a memory for two of three models."""

    async def run() -> Any:
        taken: set[str] = set()
        models = [FakeModel(name, taken) for name in "abc"]
        pool = ThreadPoolExecutor(2)
        memory = ModelMemory(limit=limit, pool=pool, resident=lambda: 10 * len(taken))
        for model in models:
            memory.add(model)
        try:
            return await asyncio.wait_for(work(memory, models), 60)
        finally:
            await memory.stop()

    return asyncio.run(run())


async def use(memory: ModelMemory, name: str) -> None:
    async with memory.using(name):
        await asyncio.sleep(0)


def states(memory: ModelMemory) -> list[str]:
    return [memory.state(name) for name in "abc"]


def test_the_least_recently_used_model_leaves() -> None:
    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        assert states(memory) == ["unloaded"] * 3
        for name in "aba":
            await use(memory, name)
        assert states(memory) == ["loaded", "loaded", "unloaded"]
        await use(memory, "c")
        assert states(memory) == ["loaded", "unloaded", "loaded"]
        await use(memory, "b")
        assert states(memory) == ["unloaded", "loaded", "loaded"]
        assert [memory.loads(name) for name in "abc"] == [1, 2, 1]

    scene(work)


def test_without_a_limit_all_stay() -> None:
    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        for name in "abc":
            await use(memory, name)
        assert states(memory) == ["loaded"] * 3

    scene(work, limit=None)


def test_a_model_in_use_stays_until_it_is_free_and_then_makes_room() -> None:
    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        async with memory.using("a"), memory.using("b"):
            third = asyncio.create_task(use(memory, "c"))
            await asyncio.sleep(0.05)
            assert not third.done()
            again = asyncio.create_task(use(memory, "a"))  # it is leaving: no new users
            await asyncio.sleep(0.05)
            assert not again.done()
        await third
        await again
        assert len(models[0].taken) <= 2

    scene(work)


def test_memory_that_a_search_took_is_made_free_afterwards() -> None:
    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        await use(memory, "a")
        async with memory.using("b"):
            memory.limit = 15
        await asyncio.sleep(0.05)
        assert states(memory) == ["unloaded", "loaded", "unloaded"]

    scene(work)


def test_a_failure_is_that_of_its_own_requests_and_is_tried_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]

    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        memory._clock = lambda: now[0]
        for error in (RunError("the weights are damaged"), RuntimeError("a bug")):
            models[0].error = error
            for _ in range(2):
                with pytest.raises(ApiError, match="model a cannot be loaded") as caught:
                    await use(memory, "a")
                assert caught.value.status == 503
            await use(memory, "b")
            assert states(memory)[:2] == ["failed", "loaded"]
            now[0] += 2 * FAILED_SECONDS
        models[0].error = None
        await use(memory, "a")
        assert states(memory)[0] == "loaded"

    with caplog.at_level(logging.ERROR, logger="regard.serving"):
        scene(work)
    assert caplog.text.count("The model a cannot be loaded: the weights are damaged") == 1
    assert "RuntimeError inside the server" in caplog.text


def test_whoever_gives_up_does_not_stop_the_loading() -> None:
    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        models[0].gate.clear()
        impatient = asyncio.create_task(use(memory, "a"))
        patient = asyncio.create_task(use(memory, "a"))
        await asyncio.sleep(0.02)
        assert states(memory)[0] == "loading"
        impatient.cancel()
        models[0].gate.set()
        await patient
        assert memory.loads("a") == 1

    scene(work)


def test_where_the_system_does_not_tell_estimates_count(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(memory: ModelMemory, models: list[FakeModel]) -> None:
        memory._resident = lambda: None
        for name in "abc":
            await use(memory, name)
        assert states(memory) == ["unloaded", "loaded", "loaded"]

    scene(work)
    monkeypatch.setattr(Path, "read_text", _absent)
    assert resident_bytes() is None


def _absent(*_: Any, **__: Any) -> str:
    raise FileNotFoundError


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("500 mb", 500 * 10**6), ("1.5GiB", 3 * 2**29), ("7k", 7_000), ("9", 9)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "2 apples", "0GB", "-1GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="is not a size: write it as 2GB or 500MB"):
        bytes_of(text)


def test_too_small_a_limit_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"--memory 1MiB is too little: .* Allow at least"):
        require_room(2**20)
    require_room(None)
    require_room(2**50)


@pytest.fixture
def runs(random_transformer_run: Path, toy_run: Path, tmp_path: Path) -> list[StoredModel]:
    """Two runs, and one whose weights are damaged."""
    broken = Path(shutil.copytree(toy_run, tmp_path / "broken"))
    (weights,) = (broken / "best").glob("model*.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    folders = [random_transformer_run, toy_run, broken]
    return stored_models(folders, pairs=["en-fr", "en-de", "en-nl"], engine="torch")


def test_a_server_loads_what_is_asked_for(
    runs: list[StoredModel],
    toy_run: Path,
    run_app: Callable[[FastAPI], AbstractContextManager[str]],
) -> None:
    offline = load(toy_run).translate("badal kofen").text
    app = create_app(runs, ServerSettings(deadline_seconds=120))
    with run_app(app) as url, httpx.Client(base_url=url, timeout=120) as client:

        def known() -> list[tuple[str, Any]]:
            models = client.get("/models").json()["models"]
            return [(model["state"], model["parameters"]) for model in models]

        before = known()
        assert [state for state, _ in before] == ["unloaded"] * 3
        fields = {"q": "badal kofen", "source": "en", "target": "de"}
        found = client.post("/translate", json=fields, timeout=30).json()
        assert found == {"translatedText": offline}
        broken = client.post("/translate", json={**fields, "target": "nl"}, timeout=30)
        assert broken.status_code == 503
        assert broken.json()["error"].startswith("The model broken cannot be loaded")
        assert [state for state, _ in known()] == ["unloaded", "loaded", "failed"]
        assert client.get("/health").status_code == 200
        said = client.get("/metrics").text
        name = runs[1].name
        assert f'regard_model_loaded{{model="{name}"}} 1.0' in said
        assert 'regard_model_failed{model="broken"} 1.0' in said
        assert f'regard_model_loads{{model="{runs[0].name}"}} 0.0' in said
    assert before[1] == ("unloaded", sum(p.numel() for p in load(toy_run).model.parameters()))
    assert before[2][1] is None


def test_two_models_that_do_not_fit_together_take_turns(
    runs: list[StoredModel], run_app: Callable[[FastAPI], AbstractContextManager[str]]
) -> None:
    app = create_app(runs[:2], ServerSettings(deadline_seconds=120))
    app.state.server.memory.limit = 1  # so that only the model in use is kept
    expected = {target: model.load().translate("badal").text
                for target, model in zip(("fr", "de"), runs, strict=False)}  # fmt: skip
    with run_app(app) as url, httpx.Client(base_url=url, timeout=120) as client:
        for target in ("fr", "de", "fr", "de"):
            fields = {"q": "badal", "source": "en", "target": target}
            assert client.post("/translate", json=fields).json() == {
                "translatedText": expected[target]
            }
        models = client.get("/models").json()["models"]
        assert [model["state"] for model in models] == ["unloaded", "loaded"]
        attended = client.post("/attend", json={"q": "badal", "model": runs[0].name})
        assert attended.status_code == 200, attended.text
        assert attended.json()["text"] == expected["fr"]
        streamed = client.post("/stream", json={"q": "badal", "model": runs[1].name})
        assert f'"text": "{expected["de"]}"' in streamed.text
    assert Pair("en", "de") == runs[1].pair
