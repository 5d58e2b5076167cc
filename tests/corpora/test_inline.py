from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.corpora.formats.inline import AlignedWord, Tag, paired, peeled, place_tags

TAG = re.compile(r"<(/?)(\w+)(/?)>")


def parsed(marked: str) -> tuple[str, tuple[Tag, ...]]:
    """Return a text and its tags."""
    text, tags, end = "", [], 0
    for match in TAG.finditer(marked):
        text += marked[end : match.start()]
        kind = "alone" if match[3] else "close" if match[1] else "open"
        tags.append(Tag(len(text), match[0], kind, match[2]))  # type: ignore[arg-type]
        end = match.end()
    return text + marked[end:], paired(tags)


def words_of(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def placed(marked: str, target: str, links: dict[int, int]) -> str:
    """Put the tags into the target; links say which source word each target word stands for."""
    text, tags = parsed(marked)
    sources = words_of(text)
    words = [
        AlignedWord(start, end, sources[links[number]] if number in links else None)
        for number, (start, end) in enumerate(words_of(target))
    ]
    return place_tags(text, tags, target=target, words=words)


SAME = {number: number for number in range(9)}

# Name of the case: source with tags, target, links from target to source words, result.
CASES = {
    "one word": ("the <b>red</b> car", "la voiture rouge", {0: 0, 1: 2, 2: 1},
                 "la voiture <b>rouge</b>"),
    "far apart": ("a <b>big red</b> car", "une grande voiture rouge", {0: 0, 1: 1, 2: 3, 3: 2},
                  "une <b>grande voiture rouge</b>"),
    "comma outside": ("<b>Yes</b>, sir", "Ja, Herr", SAME, "<b>Ja</b>, Herr"),
    "comma inside": ("<b>Yes,</b> sir", "Ja, Herr", SAME, "<b>Ja,</b> Herr"),
    "bracket": ("say (<b>no</b>) now", "sag (nein) jetzt", SAME, "sag (<b>nein</b>) jetzt"),
    "nested": ("<a>one <b>two</b></a> three", "drei eins zwei", {0: 2, 1: 0, 2: 1},
               "drei <a>eins <b>zwei</b></a>"),
    "siblings swap": ("<a>one</a> <b>two</b>", "zwei eins", {0: 1, 1: 0},
                      "<b>zwei</b> <a>eins</a>"),
    "siblings mixed": ("<a>one two</a> <b>three four</b>", "1 3 2 4", {0: 0, 1: 2, 2: 1, 3: 3},
                       "<a>1</a> <b>3</b> 2 4"),
    "no words": ("one <b></b>two", "eins zwei", SAME, "eins <b></b>zwei"),
    "not translated": ("one <b>two</b> three", "eins drei", {0: 0, 1: 2}, "eins <b></b>drei"),
    "image": ("one <img/> two", "zwei eins", {0: 1, 1: 0}, "<img/>zwei eins"),
    "note behind": ("one<ref/> two", "zwei eins", {0: 1, 1: 0}, "zwei eins<ref/>"),
    "nothing known": ("one <b>two</b><x/>", "eins zwei", {}, "eins zwei<b></b><x/>"),
    "empty target": ("<b>one</b> <x/>two", "", {}, "<b></b><x/>"),
    "without a partner": ("one <b>two", "eins zwei", SAME, "eins <b>zwei"),
    "crossing": ("<a>1 <b>2</a> 3</b>", "1 2 3", SAME, "<a>1 <b>2</a> 3</b>"),
    "point inside another": ("<x/>one <b>two three</b>", "2 1 3", {0: 1, 1: 0, 2: 2},
                             "<x/><b>2 1 3</b>"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_tags_go_with_their_words(case: str) -> None:
    marked, target, links, expected = CASES[case]
    assert placed(marked, target, links) == expected


@pytest.mark.parametrize(
    ("marked", "inside"),
    [
        pytest.param("<p><b>all of it</b></p>", [], id="around all"),
        pytest.param("<b>one</b> two", ["<b>", "</b>"], id="around a part"),
        pytest.param("<a><b>one</b> two</a>", ["<b>", "</b>"], id="one of both"),
        pytest.param("<img/> one <img/>", [], id="alone at both ends"),
        pytest.param("<b>one", [], id="without a partner"),
        pytest.param("<b>one</b><img/>", [], id="behind a pair"),
        pytest.param("one <x/> two</b>", ["<x/>"], id="closing at the end"),
    ],
)
def test_outer_tags_stay_outside(marked: str, inside: list[str]) -> None:
    text, tags = parsed(marked)
    first, last = peeled(text, tags)
    assert [tag.raw for tag in tags[first:last]] == inside


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> str:
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            name = draw(st.sampled_from("abc"))
            parts.append(f"<{name}>{draw(trees(depth - 1))}</{name}>")
        else:
            parts.append(draw(st.sampled_from(["x ", "yy, ", "z", " ", "<img/>", "."])))
    return "".join(parts)


@settings(deadline=None, max_examples=150)
@given(trees(), st.lists(st.sampled_from(["A", "B,", "(C)"]), max_size=6), st.data())
def test_tags_come_once_and_stay_nested(
    marked: str, target_words: list[str], data: st.DataObject
) -> None:
    count = len(words_of(parsed(marked)[0]))
    links = {
        number: data.draw(st.integers(0, count - 1))
        for number in range(len(target_words))
        if count and data.draw(st.booleans())
    }
    target = " ".join(target_words)
    found = placed(marked, target, links)
    assert TAG.sub("", found) == target
    assert sorted(TAG.findall(found)) == sorted(TAG.findall(marked))
    opened = []
    for closing, name, alone in TAG.findall(found):
        if closing:
            assert opened.pop() == name
        elif not alone:
            opened.append(name)
    assert not opened
