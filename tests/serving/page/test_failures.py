"""Failures: the page says what went wrong and offers a way to continue."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

OTHER = "rulis zepur batam kodal"

# The server's response, as arguments of `fulfill` (None: no server), and the message on the page.
FAILURES = {
    "no server": (None, "The server does not answer. Is “regard serve” still running?"),
    "an error without words": (
        {"status": 500, "body": "oops"},
        "The server answered with an error (500).",
    ),
    "busy, without a time": ({"status": 429, "body": ""}, "The server is busy."),
    "an error on the way": (
        {"events": [("token", {"text": "BA"}), ("error", {"error": "Too slow."})]},
        "Too slow.",
    ),
    "half an answer": (
        {"events": [("token", {"text": "BA"})]},
        "The server stopped in the middle of the answer.",
    ),
    "an answer that is none": (
        {"content_type": "text/event-stream", "body": "event: done\ndata: {\n\n"},
        "The connection to the server broke off.",
    ),
}
REFUSALS = {
    "too long": ({"status": 413, "json": {"error": "At most 9 signs."}}, "At most 9 signs."),
    "too long, without words": (
        {"status": 413, "body": ""},
        "The sentence is too long for this server.",
    ),
    "refused on the way": (
        {"events": [("error", {"error": "Too long to look at.", "status": 400})]},
        "Too long to look at.",
    ),
    "wrong": ({"status": 400, "json": {"error": "No such model."}}, "No such model."),
}


def route_of(events: Any, what: dict[str, Any] | None) -> dict[str, Any]:
    if what is None:
        return {"**/stream": lambda route: route.abort()}
    if "events" in what:
        what = {"content_type": "text/event-stream", "body": events(*what["events"])}
    return {"**/stream": lambda route: route.fulfill(**what)}


@pytest.mark.parametrize("case", FAILURES)
def test_failures_can_be_tried_again(visit, attend, events, case):
    what, message = FAILURES[case]
    screen = visit(routes=route_of(events, what), errors="Failed to load resource")
    notice = screen.page.locator(".pane .notice")
    screen.expect(notice).to_have_text(f"{message} Try again")
    screen.page.unroute("**/stream")
    notice.get_by_role("button").click()
    screen.shows(attend())
    screen.expect(notice).to_be_hidden()


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refused_sentence_is_not_tried_again(visit, attend, events, case):
    what, message = REFUSALS[case]
    screen = visit(routes=route_of(events, what), errors="Failed to load resource")
    notice = screen.page.locator(".pane .notice")
    screen.expect(notice).to_have_text(message)
    assert screen.violations() == []
    screen.page.unroute("**/stream")
    screen.sentence().fill(OTHER)
    screen.shows(attend(OTHER))
    screen.expect(notice).to_be_hidden()


def test_a_busy_server_is_tried_again_automatically(visit, attend):
    busy = {"status": 429, "json": {"error": "Too many."}, "headers": {"Retry-After": "1"}}
    screen = visit(routes=route_of(None, busy), errors="429")
    notice = screen.page.locator(".pane .notice")
    screen.expect(notice).to_have_text(re.compile(r"^Too many\. Trying again in 1.s$"))
    screen.page.unroute("**/stream")
    screen.shows(attend())


def test_a_server_with_keys_asks_for_one(visit, answering):
    answer = answering([("JA", 0)], ["JA"])["**/stream"]
    sent: list[str | None] = []

    def require_key(route: Any) -> None:
        sent.append(route.request.post_data_json.get("api_key"))
        if sent[-1] == "secret":
            answer(route)
        else:
            route.fulfill(status=403, json={"error": "Please give an API key."})

    screen = visit(routes={"**/stream": require_key}, errors="403")
    screen.page.get_by_label("API key").fill("secret")
    assert screen.violations() == []
    screen.page.keyboard.press("Enter")
    screen.expect(screen.target()).to_have_text(["JA", "end"])
    assert sent == [None, "secret"]
    assert "secret" not in screen.page.url


def test_a_page_that_finds_no_models_tries_again(visit, attend):
    screen = visit(routes={"**/models": lambda route: route.abort()}, errors="Failed to load")
    screen.expect(screen.page.locator("#notice")).to_contain_text("The server does not answer.")
    screen.page.unroute("**/models")
    screen.page.get_by_role("button", name="Try again").click()
    screen.shows(attend())
