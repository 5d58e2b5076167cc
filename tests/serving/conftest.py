"""A real server in a thread, with two small runs: a Transformer and a recurrent translator."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from regard.recipes.loaded import load
from regard.serving.app import create_app
from regard.serving.languages import Pair
from regard.serving.process import listening_socket, make_server
from regard.serving.served import ServedModel
from regard.serving.settings import ServerSettings

TOY_EXAMPLES = ("badal kofen migon", "rulis zepur batam kodal", "mifen rugon")


@pytest.fixture(scope="session")
def served_models(random_transformer_run: Path, toy_run: Path) -> list[ServedModel]:
    """A Transformer that was never trained, and a recurrent model that knows the toy language."""
    runs = {"transformer": random_transformer_run, "attention": toy_run}
    pairs = {"transformer": Pair("en", "fr"), "attention": Pair("en", "de")}
    return [ServedModel(name, pairs[name], load(run), TOY_EXAMPLES) for name, run in runs.items()]


@contextmanager
def running(app: FastAPI, *, drain_seconds: float = 10.0) -> Iterator[str]:
    """Run a real server in a thread, and yield its address; it has ended after the block."""
    listening = listening_socket("127.0.0.1", 0)
    server = make_server(app, drain_seconds=drain_seconds)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server has ended before it began")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        listening.close()


@pytest.fixture(scope="session")
def server_url(served_models: list[ServedModel]) -> Iterator[str]:
    """The address of a server with both models and the default settings."""
    with running(create_app(served_models, ServerSettings())) as url:
        yield url


@pytest.fixture(scope="session")
def client(server_url: str) -> Iterator[httpx.Client]:
    """A client of the server that all tests share."""
    with httpx.Client(base_url=server_url, timeout=30) as found:
        yield found


@pytest.fixture
def start(served_models: list[ServedModel]) -> Iterator[Callable[..., httpx.Client]]:
    """Return a function that starts a server with other settings, and returns a client of it."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def call(keys: object = None, **changes: object) -> httpx.Client:
            app = create_app(served_models, ServerSettings(**changes), keys=keys)
            url = stack.enter_context(running(app))
            return stack.enter_context(httpx.Client(base_url=url, timeout=30))

        yield call
