"""The page's modules by themselves: maps, states, trees, differences and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from regard.tasks.attention import merge_to_words

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


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("badal kofen", False),
        ("badal kofen.", False),
        ("3.14 is pi", False),
        ("badal. Kofen", True),
        ("“badal!” kofen", True),
        ("猫。犬", True),
        ("one\ntwo", True),
    ],
)
def test_texts_of_one_sentence_need_no_splitting(module, text, several):
    assert module("whole", "m.mayBeSeveral(given[0])", text) == several


def test_translations_are_joined_by_the_white_space_of_the_text(module):
    sentences = [
        {"text": "猫。", "gap": ""},
        {"text": "犬。", "gap": "\n\n"},
        {"text": "x", "gap": ""},
    ]
    found = [{"text": "A cat."}, {"text": "A dog."}, {"error": "too long"}]
    assert module("whole", "m.joined(given[0], given[1])", sentences, found) == "A cat. A dog.\n\nx"
    same = [{"text": each["text"]} for each in sentences]
    assert module("whole", "m.joined(given[0], given[1])", sentences, same) == "猫。犬。\n\nx"


@given(text=some.text("ab. \n", max_size=40), most=some.integers(3, 12))
@quick
def test_parts_of_a_long_text_are_the_whole_text(module, text, most):
    parts = module("api", "m.partsOf(given[0], given[1])", text, most)
    assert all(0 < len(part) <= most for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "forces"),
    [("", {}), ("5,8", {"0": [5, 8]}), ("5;2:7,9", {"0": [5], "2": [7, 9]})],
)
def test_what_is_forced_is_kept_by_sentence(module, text, forces):
    assert module("state", "m.forcesOf(given[0])", text) == forces
    assert module("state", "m.writeForces(given[0])", forces) == text
