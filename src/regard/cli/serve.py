"""`regard serve`: a page and an API for trained translators."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError
from regard.cli.translate import EngineChoice, EngineOption, Threads, Verbose
from regard.serving.limits import ServerSettings, bytes_of
from regard.settings.recipe import validate

if TYPE_CHECKING:
    from regard.serving.models import AnyServedModel
    from regard.serving.task_models import TaskModel

DEFAULTS = ServerSettings()  # type: ignore[call-arg]


def serve(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of trained runs.")],
    host: Annotated[
        str, typer.Option("--host", help="Address to listen at; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port; 0 for any that is free.")
    ] = 5000,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pair",
            metavar="SOURCE-TARGET",
            help="Languages, as en-de: once for all runs, or once for each.",
        ),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            help="Serve only those with an API key: one a line, and its requests a "
            "minute behind it if it has a rate of its own.",
        ),
    ] = None,
    requests_per_minute: Annotated[
        int, typer.Option(help="Most requests of an address or key; 0 for any number.", min=0)
    ] = DEFAULTS.requests_per_minute,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="CORS: a site whose pages may ask; * for all. May be given often.",
        ),
    ] = None,
    batch_sentences: Annotated[
        int, typer.Option(help="Most sentences that are translated at once.", min=1)
    ] = DEFAULTS.batch_sentences,
    wait_ms: Annotated[
        float, typer.Option(help="How long an idle server waits for company.", min=0)
    ] = DEFAULTS.wait_ms,
    queue: Annotated[
        int, typer.Option(help="Sentences that may wait for a model; then 429.", min=1)
    ] = DEFAULTS.queue,
    seconds: Annotated[
        float, typer.Option(help="Most seconds for one request; then 503.", min=0.1)
    ] = DEFAULTS.deadline_seconds,
    max_characters: Annotated[
        int, typer.Option(help="Most characters of one request.", min=1)
    ] = DEFAULTS.max_characters,
    one_at_a_time: Annotated[
        bool, typer.Option("--one-at-a-time", help="Do not gather sentences: to compare with.")
    ] = False,
    examples: Annotated[
        bool, typer.Option(help="Offer the run's example sentences on the page.")
    ] = True,
    proxies: Annotated[
        str,
        typer.Option(
            "--proxies", metavar="ADDRESSES", help="Reverse proxies that may say whom they ask for."
        ),
    ] = "127.0.0.1",
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="Memory of the server, as 2GB: beyond it the models that were used least "
            "recently are unloaded.",
        ),
    ] = None,
    engine: EngineOption = EngineChoice.auto,
    threads: Threads = None,
    verbose: Verbose = False,
) -> None:
    """Serve a page and an API, LibreTranslate's among it, for one or more runs of any task.

    Example: regard serve runs/demo/attention runs/demo/transformer
    """
    settings = validate(
        {
            "requests_per_minute": requests_per_minute,
            "origins": tuple(origins or ()),
            "batch_sentences": 1 if one_at_a_time else batch_sentences,
            "wait_ms": 0.0 if one_at_a_time else wait_ms,
            "queue": queue,
            "deadline_seconds": seconds,
            "max_characters": max_characters,
            "memory": None if memory is None else bytes_of(memory),
        },
        ServerSettings,
        origin="serve",
    )
    _require_packages()
    import logging

    from regard.serving.app import create_app
    from regard.serving.limits import Keys
    from regard.serving.memory import require_room
    from regard.serving.models import stored_models
    from regard.serving.server import listening_socket, make_server

    known = Keys.read(keys) if keys is not None else None
    listening = listening_socket(host, port)
    try:
        stored = stored_models(
            runs,
            pairs=pairs or (),
            engine=engine.value,
            threads=threads,
            examples=examples,
            report=(lambda sentence: typer.echo(sentence, err=True)) if verbose else None,
        )
        require_room(settings.memory)
        # A single model is loaded at once, so that a damaged one is noticed now.
        models = [stored[0].loaded()] if len(stored) == 1 else stored
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("regard.serving").setLevel(logging.INFO if verbose else logging.WARNING)
        server = make_server(create_app(models, settings, keys=known), proxies=proxies)
        _announce(models)
        shown = f"[{host}]" if ":" in host else host
        typer.echo(
            f"Serving at http://{shown}:{listening.getsockname()[1]} (Ctrl-C ends it)", err=True
        )
        server.run(sockets=[listening])
    finally:
        listening.close()


def _announce(models: "Sequence[AnyServedModel | TaskModel]") -> None:
    from regard.serving.languages import UNNAMED
    from regard.serving.task_models import TaskModel

    for model in models:
        if isinstance(model, TaskModel):
            typer.echo(f"{model.name}: {model.recipe.task}", err=True)
            continue
        translator = model.translator
        engine_name = f", engine {translator.engine.name}" if translator else ""
        typer.echo(f"{model.name}: {model.pair}{engine_name}", err=True)
    if len(models) > 1:
        typer.echo("Each model is loaded when it is first asked for.", err=True)
    if any(not isinstance(model, TaskModel) and model.pair == UNNAMED for model in models):
        typer.echo("The data names no languages: name them with --pair, as en-de.", err=True)


def _require_packages() -> None:
    from importlib.util import find_spec

    needed = ("fastapi", "uvicorn", "prometheus_client", "py3langid")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise SettingsError(
            f"The server needs packages that are not installed ({', '.join(missing)}): "
            "pip install fastapi uvicorn prometheus-client py3langid python-multipart."
        )
