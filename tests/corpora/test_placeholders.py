from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora.formats.document import Segment
from regard.corpora.formats.inline import Tag, paired
from regard.corpora.formats.placeholders import (
    copied,
    find_placeholders,
    spaced,
    translatable,
    without_placeholders,
)

# A text and the placeholders in it.
FOUND = {
    "Delete %s files": ["%s"],
    "%(count)d of %(total)5.2f, %1$s, %-10s and %lu": [
        "%(count)d", "%(total)5.2f", "%1$s", "%-10s", "%lu",
    ],
    "100 % der Leute, 50% of them, 5 %off": [],
    "100%% sure": ["%%"],
    "%PATH% is $HOME or ${user.name}, for $5": ["%PATH%", "$HOME", "${user.name}"],
    "{name}, {0:>5}, {x!r}, {}, {{y}} {see below}": ["{name}", "{0:>5}", "{x!r}", "{}", "{{y}}"],
    "{n, plural, one {# cat} other {# cats}} here": ["{n, plural, one {# cat} other {# cats}}"],
    "a { b": [],
    "<a href='x'>b</a> <0>c</0> 1 < 2 > 1": ["<a href='x'>", "</a>", "<0>", "</0>"],
    "Q&amp;A &#160; R&D; x": ["&amp;", "&#160;"],
    "see https://a.org/b?c=d. or me@a.org": ["https://a.org/b?c=d", "me@a.org"],
    "call __init__ now": ["__init__"],
}  # fmt: skip


@pytest.mark.parametrize("text", FOUND)
def test_placeholders_are_found(text: str) -> None:
    assert [text[start:end] for start, end in find_placeholders(text)] == FOUND[text]


def segment(text: str) -> Segment:
    return Segment(text, protected=tuple(find_placeholders(text)))


@pytest.mark.parametrize(
    ("source", "target", "whole"),
    [
        ("%s of %s", "%s von %s", True),
        ("%s of %s", "%s von", False),
        ("%s", "%s %s", False),
        ("%s", "%s {0}", False),
        ("{a} b", "B {a}", True),
    ],
)
def test_a_model_may_copy_them_itself(source: str, target: str, whole: bool) -> None:
    assert copied(segment(source), target) is whole


def test_words_that_hold_one_are_taken_out() -> None:
    found = without_placeholders(segment("Open (%s), then file_%d.txt now."))
    assert found.text == "Open then now."
    assert [tag.position for tag in found.tags] == [5, 10]
    assert "(%s)," in found.tags[0].raw and "file_%d.txt" in found.tags[1].raw
    assert found.protected == ()


def test_scripts_without_spaces_keep_their_words() -> None:
    assert without_placeholders(segment("删除%s个文件")).text == "删除个文件"


def test_tags_stay_in_their_order() -> None:
    tags = paired([Tag(0, "<b>", "open", "b"), Tag(6, "</b>", "close", "b"), Tag(9, "<i/>")])
    source = Segment("ab %s cd ef", tags=tags, protected=((3, 5),))
    found = without_placeholders(source)
    assert found.text == "ab cd ef"
    names = [tag.raw.strip("\ufdd0\ufdd1") for tag in found.tags]
    assert names == ["<b>", "%s", "</b>", "<i/>"]


def test_only_placeholders_are_not_translated() -> None:
    assert not translatable(segment("%s: {0}, 12"))
    assert translatable(segment("%s: {0}, a"))


def test_spaces_around_them() -> None:
    assert spaced("a\ufdd0%s\ufdd1b") == "a %s b"
    assert spaced("\ufdd0%s\ufdd1 b") == "%s b"
    assert spaced("a \ufdd0%s\ufdd1.") == "a %s."
    assert spaced("(\ufdd0%s\ufdd1)") == "(%s)"
    assert spaced("a\ufdd0%s\ufdd1\ufdd0%d\ufdd1") == "a %s %d"


PIECES = st.sampled_from(
    ["%s", "%(n)d", "{x}", "{0}", "cats", "and", "dogs", "<b>", "&amp;", "$v", "1", ",", "a.b"]
)


@settings(deadline=None, max_examples=100)
@given(words=st.lists(PIECES, min_size=1, max_size=8))
def test_each_is_taken_out_exactly_once(words: list[str]) -> None:
    source = segment(" ".join(words))
    found = without_placeholders(source)
    assert not find_placeholders(found.text)
    back = "".join(tag.raw for tag in found.tags)
    for start, end in source.protected:
        part = source.text[start:end]
        assert back.count(part) == source.text.count(part)
