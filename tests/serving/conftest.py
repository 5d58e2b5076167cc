"""A real server in a thread, with two small runs: a Transformer and a recurrent translator."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from fastapi import FastAPI

from regard.engines.torch_engine import Engine
from regard.serving.app import create_app
from regard.serving.languages import Pair
from regard.serving.limits import Keys, ServerSettings
from regard.serving.models import ServedModel
from regard.serving.server import listening_socket, make_server
from regard.tasks.translation.model import LoadedTranslator, load

TOY_EXAMPLES = ("badal kofen migon", "rulis zepur batam kodal", "mifen rugon")


@pytest.fixture(scope="session")
def served_models(random_transformer_run: Path, toy_run: Path) -> list[ServedModel]:
    """An untrained Transformer, and a recurrent model trained on the toy language."""
    runs = {"transformer": random_transformer_run, "attention": toy_run}
    pairs = {"transformer": Pair("en", "fr"), "attention": Pair("en", "de")}
    return [ServedModel(name, pairs[name], load(run), TOY_EXAMPLES) for name, run in runs.items()]


class Running(NamedTuple):
    """A server that runs in a thread."""

    url: str
    stop: Callable[[], None]
    """Starts to stop it."""


@contextmanager
def running_server(app: FastAPI) -> Iterator[Running]:
    """Run a real server in a thread until the block ends."""
    listening = listening_socket("127.0.0.1", 0)
    server = make_server(app, drain_seconds=10.0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()

    def stop() -> None:
        server.should_exit = True

    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server ended before it had started")
            time.sleep(0.01)
        yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}", stop)
    finally:
        stop()
        thread.join(timeout=30)
        listening.close()


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Run a real server in a thread, and yield its address."""
    with running_server(app) as server:
        yield server.url


@pytest.fixture(scope="session")
def run_app() -> Callable[[FastAPI], AbstractContextManager[str]]:
    """Return a function that runs an app as a real server while a block lasts."""
    return running


@pytest.fixture(scope="session")
def server_url(served_models: list[ServedModel]) -> Iterator[str]:
    """The address of a server with both models and the default settings."""
    with running(create_app(served_models, ServerSettings())) as url:
        yield url


@pytest.fixture(scope="session")
def client(server_url: str) -> Iterator[httpx.Client]:
    """A client of the shared server."""
    with httpx.Client(base_url=server_url, timeout=30) as found:
        yield found


@pytest.fixture
def start(served_models: list[ServedModel]) -> Iterator[Callable[..., httpx.Client]]:
    """Return a function that starts a server with other settings, and returns a client of it."""
    with ExitStack() as stack:

        def call(keys: Keys | None = None, **changes: Any) -> httpx.Client:
            app = create_app(served_models, ServerSettings(**changes), keys=keys)
            url = stack.enter_context(running(app))
            return stack.enter_context(httpx.Client(base_url=url, timeout=30))

        yield call


class GatedEngine:
    """An engine that signals when it starts, waits for its gate, and counts its sentences."""

    name = "gated"
    batch_tokens = 1_000
    attends = True

    def __init__(self, engine: Engine):
        self._engine = engine
        self.begun = threading.Semaphore(0)
        self.gate = threading.Event()
        self.searched = 0

    def lacks(self, settings: Any, constraints: Any = None) -> str | None:
        return self._engine.lacks(settings, constraints)

    def concurrent_searches(self, settings: Any, *, constrained: bool) -> int:
        return 1

    def search(self, sources: Any, settings: Any, **options: Any) -> Any:
        self.begun.release()
        self.gate.wait(20)
        self.searched += len(sources)
        return self._engine.search(sources, settings, **options)


class GatedServer(NamedTuple):
    """A server whose model waits until the gate of its engine is opened."""

    engine: GatedEngine
    url: str
    stop: Callable[[], None]
    """Starts to stop the server."""


@pytest.fixture
def gated(served_models: list[ServedModel]) -> Iterator[Callable[..., GatedServer]]:
    """Return a function that starts a server with one model that waits for its gate."""
    with ExitStack() as stack:

        def call(**changes: Any) -> GatedServer:
            loaded = served_models[1].translator
            engine = GatedEngine(loaded.engine)
            translator = LoadedTranslator(
                model=loaded.model,
                source_tokenizer=loaded.source_tokenizer,
                target_tokenizer=loaded.target_tokenizer,
                recipe=loaded.recipe,
                engine=engine,
            )
            model = ServedModel("gated", Pair("en", "de"), translator)
            app = create_app([model], ServerSettings(**{"wait_ms": 0, **changes}))
            server = stack.enter_context(running_server(app))
            stack.callback(engine.gate.set)  # before the server stops, as it waits for the model
            return GatedServer(engine, server.url, server.stop)

        yield call
