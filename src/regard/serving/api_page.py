"""`/docs`, the routes as a page that needs nothing from elsewhere, and `/metrics`, the figures."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from regard.serving.state import server_of

router = APIRouter(include_in_schema=False)

STYLE = Path(__file__).parent / "api_page.css"


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Return all routes with what they take."""
    return HTMLResponse(render(request.app.openapi()))


@router.get("/docs.css")
async def style() -> Response:
    """Return how that page looks."""
    return FileResponse(STYLE, media_type="text/css")


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return the figures in Prometheus' format."""
    return Response(server_of(request).metrics.text(), media_type="text/plain; version=0.0.4")


def render(api: dict[str, Any]) -> str:
    """Return an OpenAPI description as a page."""
    title = escape(api["info"]["title"])
    routes = "".join(
        _route(path, method.upper(), about)
        for path, methods in api["paths"].items()
        for method, about in methods.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/docs.css"></head><body><main>'
        f"<h1>{title}: API</h1><p>{escape(api['info'].get('description', ''))} "
        'For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{routes}</main></body></html>"
    )


def _route(path: str, method: str, about: dict[str, Any]) -> str:
    heading = f"<h2><span>{escape(method)}</span> {escape(path)}</h2>"
    said = f"<p><b>{escape(about['summary'])}.</b> {escape(about['description'])}</p>"
    content = about.get("requestBody", {}).get("content", {})
    if not content:
        return f"<section>{heading}{said}</section>"
    schema = next(iter(content.values()))["schema"]
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td>"
        f"<td>{_kind(field)}{'' if name in schema.get('required', ()) else ', optional'}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    forms = " or ".join(map(escape, content))
    return (
        f"<section>{heading}{said}<p>Body: {forms}.</p><div class=wide><table>"
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
