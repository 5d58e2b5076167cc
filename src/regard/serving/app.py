"""The application: routes, the page, and what stands around every request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from regard import __version__
from regard.base.errors import RegardError
from regard.serving import api_page, libretranslate, own_api
from regard.serving.errors import ApiError, user_mistake
from regard.serving.guard import INSIDE, Guard
from regard.serving.limits import Keys
from regard.serving.served import ServedModel
from regard.serving.settings import ServerSettings
from regard.serving.state import Server

PAGE = Path(__file__).parent / "page"
# A browser asks whether a file has changed before it shows an old one: all must be of one version.
FRESH = {"Cache-Control": "no-cache"}
ROUTERS = (libretranslate.router, own_api.router, api_page.router)


def create_app(
    models: Sequence[ServedModel],
    settings: ServerSettings | None = None,
    *,
    keys: Keys | None = None,
) -> FastAPI:
    """Return the application that serves these models."""
    server = Server.of(models, settings or ServerSettings.model_validate({}), keys)
    app = FastAPI(
        title="Regard",
        version=__version__,
        description="Translates, and shows what the model attends to.",
        docs_url=None,  # it would load its scripts from elsewhere
        redoc_url=None,
        lifespan=_working,
    )
    app.state.server = server
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_api_route("/favicon.ico", _no_icon, include_in_schema=False)
    app.mount("/static", _PageFiles(directory=PAGE, check_dir=False), name="static")
    for kind in (ApiError, RegardError, HTTPException):
        app.add_exception_handler(kind, _refused)
    if server.settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(server.settings.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
    paths = [getattr(route, "path", "") for router in ROUTERS for route in router.routes]
    app.add_middleware(Guard, metrics=server.metrics, routes=["/", "/openapi.json", *paths])
    return app


@asynccontextmanager
async def _working(app: FastAPI) -> AsyncIterator[None]:
    """Let all models work while the application runs."""
    server: Server = app.state.server
    for desk in server.desks:
        desk.start()
    yield
    for desk in server.desks:
        await desk.stop()


class _PageFiles(StaticFiles):
    """The files that the page asks for."""

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
    """Spare browsers, which ask for an icon of themselves, an error."""
    return Response(status_code=204)


async def _refused(request: Request, error: Exception) -> Response:
    """Answer every refusal in the same form, those of the router itself too."""
    if isinstance(error, HTTPException):
        response = ApiError(error.status_code, f"{error.detail}: {request.url.path}").response()
        response.headers.update(error.headers or {})
        return response
    if isinstance(error, RegardError):
        error = user_mistake(error)
    return error.response() if isinstance(error, ApiError) else ApiError(500, INSIDE).response()
