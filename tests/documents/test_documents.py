from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import DataError
from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.registry import read_document
from regard.decoding.constraints.phrases import ImpossibleConstraintsError
from regard.documents.segments import (
    LinkedText,
    Splitting,
    aligned_words,
    run_fingerprint,
    translate_document,
)
from regard.tasks.attention import AttentionMap
from regard.tasks.translation.results import Translation


def turned(texts: Sequence[str], *, attention: bool = True) -> Iterator[tuple[int, Translation]]:
    """A model that writes the words of a sentence in capitals and from back to front."""
    for index, text in enumerate(texts):
        if "impossible" in text:
            raise ImpossibleConstraintsError(index, "the words do not fit")
        words = text.split()
        count = len(words)
        order = tuple(range(count))
        weights = np.ascontiguousarray(np.eye(count, dtype=np.float32)[::-1])
        seen = AttentionMap(weights, tuple(words), tuple(words[::-1]), order, order)
        target = " ".join(words[::-1]).upper()
        yield index, Translation(text, target, 0.0, 0.0, seen if attention else None)


def unseen(texts: Sequence[str]) -> Iterator[tuple[int, Translation]]:
    yield from turned(texts, attention=False)


def through(kind: str, content: str, beyond: int | None = 0) -> str:
    document = read_document(
        content.encode(), path=Path("file"), kind=kind, languages=Languages("en", "de")
    )
    return translate_document(
        document, turned, path=Path("file"), splitting=Splitting(beyond, "en")
    )


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        pytest.param("html", "<p> a <b>b</b>\n c.  D &amp; <i>e</i>!</p>",
                     "<p> C. <b>B</b> A  <i>E</i>! &amp; D</p>", id="tags of two sentences"),
        pytest.param("text", "One two.\nThree\nfour.\n\nFive",
                     "TWO. ONE\nFOUR. THREE\n\nFIVE", id="line breaks between sentences stay"),
        pytest.param("po", 'msgid " a b\\nc d\\n"\nmsgstr ""\n',
                     '#, fuzzy\nmsgid " a b\\nc d\\n"\nmsgstr " B A\\nD C\\n"\n',
                     id="lines of messages"),
        pytest.param("srt", "1\n00:00:01,000 --> 00:00:02,000\na bb\nccc dddd\n",
                     "1\n00:00:01,000 --> 00:00:02,000\nDDDD CCC\nBB A\n", id="subtitles"),
    ],
)  # fmt: skip
def test_documents(kind: str, before: str, after: str) -> None:
    assert through(kind, before) == after


def test_lines_of_messages_stay_without_splitting() -> None:
    po = 'msgid "a b. C\\nd"\nmsgstr ""\n'
    assert 'msgstr "C B. A\\nD"' in through("po", po, beyond=None)


def test_without_attention_tags_stay_at_their_share() -> None:
    document = read_document(
        b"<p>a <b>b</b></p>", path=Path("file"), kind="html", languages=Languages()
    )
    found = translate_document(document, unseen, path=Path("file"), splitting=Splitting(0))
    assert found == "<p>B <b>A</b></p>"


def test_what_cannot_be_asked_for_is_said_with_the_line() -> None:
    with pytest.raises(DataError, match=r"file, line 3: the words do not fit\. Ask for less"):
        through("text", "fine\n\nimpossible")


def test_words_without_links() -> None:
    words = aligned_words("a b", LinkedText("x y", frozenset({(0, 1), (7, 0)})), 10, 20)
    assert words == [(20, 21, None), (22, 23, (10, 11))]


def test_white_space_alone_is_not_translated() -> None:
    document = Document(("<", Segment(" \n"), ">"))
    assert translate_document(document, turned, path=Path("x"), splitting=Splitting(0)) == "< \n>"


def test_fingerprint(toy_run: Path) -> None:
    assert run_fingerprint(toy_run) == run_fingerprint(toy_run)
    assert len(run_fingerprint(toy_run)) == 32
