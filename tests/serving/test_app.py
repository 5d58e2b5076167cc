"""Headers, metrics, documentation, API keys, the page's files and internal errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from regard.serving import app as app_module
from regard.serving.app import render
from regard.serving.limits import Keys
from regard.serving.models import ServedModel
from regard.serving.worker import ModelWorker

FIELDS = {"q": "badal", "source": "en", "target": "de"}


def test_health(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}


@pytest.mark.parametrize("path", ["/health", "/docs", "/nothing", "/languages"])
def test_responses_carry_security_headers(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_metrics_are_counted_by_route(client: httpx.Client) -> None:
    client.post("/translate", json=FIELDS)
    client.get("/no/such/place")
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain")
    assert 'regard_requests_total{route="/translate",status="200"}' in found.text
    assert 'regard_requests_total{route="other",status="404"}' in found.text
    assert 'regard_request_seconds_bucket{le="0.1",route="/translate"}' in found.text
    assert 'regard_queue_sentences{model="attention"} 0.0' in found.text
    assert 'regard_batch_sentences_bucket{le="64.0",model="attention"}' in found.text
    assert 'regard_sentences_total{model="attention"}' in found.text
    assert 'regard_source_tokens_total{model="attention"}' in found.text
    assert "process_resident_memory_bytes" in found.text
    assert "/no/such/place" not in found.text


def test_the_routes_are_described(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]
    assert {"/translate", "/detect", "/languages", "/attend", "/stream", "/models"} <= set(
        described
    )
    page = client.get("/docs").text
    assert all(path in page for path in described)
    assert "<code>alternatives</code>" in page
    assert "string or list of strings" in page
    assert "http" not in page.replace("https", "http").replace("/openapi.json", "")
    assert client.get("/docs.css").headers["content-type"].startswith("text/css")
    assert client.get("/favicon.ico").status_code == 204


def test_a_description_cannot_break_its_page() -> None:
    about = {"summary": "<b>", "description": "&", "requestBody": {"content": {"x": {"schema": {
        "properties": {"<i>": {"type": "any", "description": "<u>"}, "n": {}}}}}}}  # fmt: skip
    page = render({"info": {"title": "<script>"}, "paths": {"/<": {"get": about}}})
    assert not any(tag in page for tag in ("<script>", "<b><b>", "<i>", "<u>", "/<<"))


def test_the_page_is_at_the_root(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(app_module, "PAGE", tmp_path)
    answer = client.get("/")
    assert answer.status_code == 404
    assert answer.json() == {"error": "This server has no page; its API is described at /docs."}
    (tmp_path / "index.html").write_text("<title>page</title>")
    answer = client.get("/")
    assert answer.text == "<title>page</title>"
    assert answer.headers["cache-control"] == "no-cache"


def test_the_files_of_the_page_are_of_one_version(client: httpx.Client) -> None:
    answer = client.get("/static/main.js")
    assert answer.headers["cache-control"] == "no-cache"
    again = client.get("/static/main.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"]) == (304, "no-cache")


def test_keys_are_required(start: Callable[..., httpx.Client], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("alpha\nbeta 1\n")
    client = start(keys=Keys.read(tmp_path / "keys"))
    assert client.post("/translate", json=FIELDS).status_code == 403
    assert client.post("/translate", json={**FIELDS, "api_key": "x"}).json() == {
        "error": "Invalid API key"
    }
    assert client.post("/translate", json={**FIELDS, "api_key": "alpha"}).status_code == 200
    assert client.post("/translate", json=FIELDS, headers={"X-Api-Key": "alpha"}).is_success
    assert client.post("/detect", json={"q": "a"}).status_code == 403
    assert client.post("/attend", json={"q": "badal"}).status_code == 403
    assert client.post("/stream", json={"q": "badal"}).status_code == 403
    for path in ("/metrics", "/models"):
        assert client.get(path).status_code == 403
        assert client.get(path, headers={"X-Api-Key": "alpha"}).is_success
        assert client.get(path, headers={"Authorization": "Bearer alpha"}).is_success
    assert client.get("/languages").is_success
    assert client.get("/frontend/settings").json()["keyRequired"]
    found = [client.post("/detect", json={"q": "a", "api_key": "beta"}) for _ in range(2)]
    assert [answer.status_code for answer in found] == [200, 429]
    assert int(found[1].headers["retry-after"]) > 50


def test_keys_cannot_be_guessed(start: Callable[..., httpx.Client], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("alpha\n")
    client = start(keys=Keys.read(tmp_path / "keys"))
    found = [
        client.post("/detect", json={"q": "a", "api_key": f"guess {n}"}).status_code
        for n in range(40)
    ]
    assert found[:20] == [403] * 20
    assert found[-5:] == [429] * 5


def test_the_health_tells_when_a_model_has_stopped(
    start: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    monkeypatch.setattr(ModelWorker, "running", False)
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (
        503, {"error": "The model transformer has stopped."},
    )  # fmt: skip


def test_addresses_have_a_rate(start: Callable[..., httpx.Client]) -> None:
    client = start(requests_per_minute=2)
    found = [client.post("/detect", data={"q": "a"}).status_code for _ in range(3)]
    assert found == [200, 200, 429]
    proxied = client.post("/detect", data={"q": "a"}, headers={"X-Forwarded-For": "10.1.2.3"})
    assert proxied.is_success  # the proxy is on this machine, so it is believed


def test_named_origins_may_send_requests(
    client: httpx.Client, start: Callable[..., httpx.Client]
) -> None:
    origin = {"Origin": "https://example.org"}
    wanted = {**origin, "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in client.get("/health", headers=origin).headers
    open_client = start(origins=("https://example.org",))
    for answer in (
        open_client.get("/health", headers=origin),
        open_client.options("/translate", headers=wanted),
        open_client.post("/translate", content=b"{", headers=origin),
    ):
        assert answer.headers["access-control-allow-origin"] == "https://example.org"


def test_an_internal_error_reveals_nothing(
    start: Callable[..., httpx.Client],
    served_models: list[ServedModel],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret text")

    client = start()
    monkeypatch.setattr(served_models[1].translator, "stream", broken)
    monkeypatch.setattr("regard.serving.attention.attention_view", broken)
    with caplog.at_level(logging.INFO, logger="regard.serving"):
        answer = client.post("/translate", json=FIELDS)
        client.get("/health?q=secret")
        stream = client.post("/stream", json={"q": "badal", "model": "attention"})
    assert (answer.status_code, answer.json()) == (
        500, {"error": "Something went wrong inside the server."},
    )  # fmt: skip
    said = '{"error": "Something went wrong inside the server.", "status": 500}'
    assert stream.text.endswith(f"{said}\n\n")
    assert caplog.text.count("RuntimeError inside the server") == 2
    assert "test_app.py" in caplog.text
    assert "POST /translate 500" in caplog.text
    assert "secret" not in caplog.text.replace('"the secret text"', "")
    assert "badal" not in caplog.text
