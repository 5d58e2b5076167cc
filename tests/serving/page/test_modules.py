"""The page's modules by themselves: maps, states, trees, differences and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from regard.scoring.alignment import merge_to_words

pytestmark = pytest.mark.browser

Call = Callable[..., Any]
quick = settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def module(page: Any, server_url: str) -> Call:
    """Return a function that evaluates an expression with a module `m` and what is `given`."""
    page.goto(f"{server_url}/static/icon.svg")

    def call(name: str, expression: str, *given: Any) -> Any:
        code = f"const m = await import('/static/{name}.js'); return {expression};"
        return page.evaluate(f"async (given) => {{ {code} }}", list(given))

    return call


def units(words: list[int]) -> str:
    side = {
        "tokens": [f"p{place}" for place in range(len(words))],
        "words": words,
        "word_texts": [f"w{word}" for word in range(max(words) + 1)],
    }
    return f"m.unitsOf({side}, false)"


@given(
    rows=some.lists(some.integers(1, 3), min_size=1, max_size=4),
    columns=some.lists(some.integers(1, 3), min_size=1, max_size=4),
)
@quick
def test_pieces_are_merged_as_the_scores_merge_them(module, rows, columns):
    target, source = (np.repeat(np.arange(len(s)), s).tolist() for s in (rows, columns))
    weights = np.random.default_rng(1).random((len(target), len(source)))
    call = f"m.merge(given[0], {units(target)}, {units(source)})"
    merged = merge_to_words(weights, source_words=source, target_words=target)
    assert np.array(module("maps", call, weights.tolist())) == pytest.approx(merged)


@given(
    state=some.fixed_dictionaries(
        {},
        optional={
            "q": some.text(some.characters(exclude_categories=["Cs"])),
            "model": some.text("ab-&=#+% ü"),
            "with": some.text("ab-&=#+% ü"),
            "view": some.sampled_from(["cross", "encoder", "decoder"]),
            "layer": some.sampled_from(["", "mean", "0", "12"]),
            "head": some.sampled_from(["mean", "0", "12"]),
            "pieces": some.sampled_from(["", "yes", "no"]),
            "force": some.sampled_from(["", "5", "5,60,7"]),
        },
    )
)
@quick
def test_a_state_survives_the_address(module, state):
    read = module("state", "m.readState(m.writeState({...m.DEFAULTS, ...given[0]}))", state)
    assert {name: read[name] for name in state} == state


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["▁ein", "▁Hu", "nd", "</s>"], "ein Hund"),
        (["ein", "Hund", "</s>"], "ein Hund"),
        (["er", "sagt", "⁀", ":", "gut"], "er sagt: gut"),
        (["e", "i", "n", "␣", "x"], "ein x"),
    ],
)
def test_tokens_become_text_again(module, tokens, text):
    assert module("tree", "m.joinTokens(given[0], given[0])", tokens) == text


def test_a_tree_has_every_shared_beginning_once(module):
    beams = [
        {
            "text": text,
            "score": 0,
            "ids": [ord(sign) for sign in text],
            "tokens": list(text),
            "log_probabilities": [-1] * len(text),
        }
        for text in ("abcd", "abx", "abcz", "ab")
    ]
    root = module("tree", "m.prefixTree(given[0])", beams)
    assert root["tokens"] == ["a", "b"]
    assert root["end"]["rank"] == 3
    assert [child["tokens"] for child in root["children"]] == [["c"], ["x"]]
    leaves = root["children"][0]["children"]
    assert [leaf["tokens"] for leaf in leaves] == [["d"], ["z"]]
    assert leaves[1]["path"] == [ord(sign) for sign in "abcz"]


@pytest.mark.parametrize(
    ("mine", "other", "different"),
    [
        ("a b c", "a b c", []),
        ("a x c", "a b c", [1]),
        ("a b c", "", [0, 1, 2]),
        ("", "a", []),
        ("b a b", "a b", [0]),
    ],
)
def test_words_that_the_other_does_not_have(module, mine, other, different):
    assert module("difference", "m.differences(...given)", mine.split(), other.split()) == different


READ = """await (async ([text, size]) => {
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream({start(stream) {
    for (let at = 0; at < bytes.length; at += size) stream.enqueue(bytes.slice(at, at + size));
    stream.close();
  }});
  const found = [];
  for await (const event of m.readEvents(body)) found.push([event.name, event.data]);
  return found;
})(given)"""


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_events_may_come_in_any_portions(module, size):
    sent = ': hello\r\n\r\nevent: token\r\ndata: {"text": "ü"}\r\n\r\ndata: 1\ndata: 2\n\n'
    expected = [["token", '{"text": "ü"}'], ["message", "1\n2"]]
    assert module("events", READ, sent, size) == expected


@pytest.mark.parametrize(
    ("code", "name", "tag"), [("de", "German", "de"), ("xx", "xx", None), ("x_1!", "x_1!", None)]
)
def test_unknown_languages_are_named_by_their_code(module, code, name, tag):
    assert module("models", "[m.languageName(given[0]), m.languageTag(given[0])]", code) == [
        name,
        tag,
    ]
