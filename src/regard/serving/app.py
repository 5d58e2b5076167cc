"""The application: all routes, the page and its files, and the answers to errors."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from regard.base.errors import RegardError
from regard.serving import api, libretranslate, views
from regard.serving.errors import ApiError, user_mistake
from regard.serving.limits import Keys, ServerSettings
from regard.serving.middleware import INTERNAL_ERROR, RequestMiddleware
from regard.serving.models import AnyServedModel
from regard.serving.state import Server, server_of
from regard.serving.task_models import TaskModel

router = APIRouter(include_in_schema=False)

STYLE = Path(__file__).parent / "api_page.css"


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Return a page that describes all routes and their fields."""
    return HTMLResponse(render(request.app.openapi()))


@router.get("/docs.css")
async def style() -> Response:
    """Return the style sheet of that page."""
    return FileResponse(STYLE, media_type="text/css")


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return the metrics in the text format of Prometheus."""
    server = server_of(request)
    server.require_key(request)
    return Response(server.metrics.text(), media_type="text/plain; version=0.0.4")


def render(description: dict[str, Any]) -> str:
    """Return an OpenAPI description as a page."""
    title = escape(description["info"]["title"])
    routes = "".join(
        _route(path, method.upper(), about)
        for path, methods in description["paths"].items()
        for method, about in methods.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/docs.css"></head><body><main>'
        f"<h1>{title}: API</h1><p>{escape(description['info'].get('description', ''))} "
        'For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{routes}</main></body></html>"
    )


def _route(path: str, method: str, about: dict[str, Any]) -> str:
    heading = f"<h2><span>{escape(method)}</span> {escape(path)}</h2>"
    summary = f"<p><b>{escape(about['summary'])}.</b> {escape(about['description'])}</p>"
    content = about.get("requestBody", {}).get("content", {})
    if not content:
        return f"<section>{heading}{summary}</section>"
    schema = next(iter(content.values()))["schema"]
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td>"
        f"<td>{_kind(field)}{'' if name in schema.get('required', ()) else ', optional'}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    forms = " or ".join(map(escape, content))
    return (
        f"<section>{heading}{summary}<p>Body: {forms}.</p><div class=wide><table>"
        f"<tr><th>field</th><th>type</th><th>meaning</th></tr>{rows}</table></div></section>"
    )


def _kind(field: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "enum" in field:
        return " or ".join(escape(f'"{value}"') for value in field["enum"])
    if "anyOf" in field:
        kinds = [_kind(one) for one in field["anyOf"] if one.get("type") != "null"]
        return " or ".join(kinds)
    if field.get("type") == "array":
        return f"list of {_kind(field['items'])}s"
    return escape(str(field.get("type", "any")))


PAGE = Path(__file__).parent / "page"
# Browsers must check that a cached file is current: all files have to be of one version.
FRESH = {"Cache-Control": "no-cache"}
ROUTERS = (libretranslate.router, api.router, views.router, router)


def create_app(
    models: Sequence[AnyServedModel | TaskModel],
    settings: ServerSettings | None = None,
    *,
    keys: Keys | None = None,
) -> FastAPI:
    """Return the application that serves these models."""
    server = Server.of(models, settings or ServerSettings.model_validate({}), keys)
    app = FastAPI(
        title="Regard",
        version=version("regard"),
        description="Translates, and shows what the model attends to.",
        docs_url=None,  # FastAPI's own page loads scripts from another server
        redoc_url=None,
        redirect_slashes=False,  # it would redirect to whatever Host a request names
        lifespan=_run_workers,
    )
    app.state.server = server
    for each in ROUTERS:
        app.include_router(each)
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_api_route("/favicon.ico", _no_icon, include_in_schema=False)
    app.mount("/static", _PageFiles(directory=PAGE, check_dir=False), name="static")
    for kind in (ApiError, RegardError, HTTPException):
        app.add_exception_handler(kind, _error_response)
    if server.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(server.settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    paths = [getattr(route, "path", "") for each in ROUTERS for route in each.routes]
    app.add_middleware(
        RequestMiddleware, metrics=server.metrics, routes=["/", "/openapi.json", *paths]
    )
    return app


@asynccontextmanager
async def _run_workers(app: FastAPI) -> AsyncIterator[None]:
    """Run all model workers as long as the application runs."""
    server: Server = app.state.server
    for worker in server.workers:
        worker.start()
    yield
    for viewer in server.viewers:
        await viewer.stop()
    await server.memory.stop()


class _PageFiles(StaticFiles):
    """The scripts, style sheets and images of the page."""

    def file_response(self, *args: Any, **options: Any) -> Response:
        """Return a file, or that it has not changed."""
        response = super().file_response(*args, **options)
        response.headers.update(FRESH)
        return response


async def _page() -> Response:
    """Return the page."""
    if not (PAGE / "index.html").is_file():
        raise ApiError(404, "This server has no page; its API is described at /docs.")
    return FileResponse(PAGE / "index.html", headers=FRESH)


async def _no_icon() -> Response:
    """Answer browsers that look for an icon here with no content."""
    return Response(status_code=204)


async def _error_response(request: Request, error: Exception) -> Response:
    """Return every error in the same form, including those of the router itself."""
    if isinstance(error, HTTPException):
        response = ApiError(
            error.status_code, f"{error.detail}: {request.scope['path']}"
        ).response()
        response.headers.update(error.headers or {})
        return response
    if isinstance(error, RegardError):
        error = user_mistake(error)
    return (
        error.response()
        if isinstance(error, ApiError)
        else ApiError(500, INTERNAL_ERROR).response()
    )
