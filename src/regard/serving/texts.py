"""Texts and pages as sentences to translate, and back: line breaks, spaces and tags are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.corpora.formats.document import Document, Languages, Segment
from regard.corpora.formats.html import read_html
from regard.recipes.segments import LinkedText, SplitSegments, Splitting
from regard.serving.errors import bad_request
from regard.serving.languages import Pair

# Line breaks that sentence splitting takes for spaces.
OTHER_BREAK = re.compile("(\r(?!\n)|[\v\f\x85\u2028\u2029])")

Format = Literal["text", "html"]
# Putting tags back takes time that grows with the square of their number.
MOST_TAGS = 200


@dataclass(frozen=True)
class Prepared:
    """A text whose sentences wait for their translations."""

    document: Document
    split: SplitSegments

    @property
    def sentences(self) -> list[str]:
        """What is to be translated."""
        return self.split.sentences

    @property
    def tagged(self) -> bool:
        """Whether tags have to be put around words."""
        return any(segment.tags for segment in self.split.segments)

    def filled(self, translations: Sequence[LinkedText]) -> str:
        """Return the text with these translations of its sentences."""
        return self.document.filled(self.split.written(translations))


def prepare(text: str, *, kind: Format, pair: Pair) -> Prepared:
    """Split a text into sentences, at its line breaks too, or a page into those of its blocks."""
    if kind == "html":
        document = read_html(text, Path("q"), Languages(pair.source, pair.target))
        tags = max((len(segment.tags) for segment in document.segments), default=0)
        if tags > MOST_TAGS:
            raise bad_request(f"A paragraph has {tags} tags inside it, more than {MOST_TAGS}.")
    else:
        lines = enumerate(OTHER_BREAK.split(text))
        document = Document(
            tuple(part if odd % 2 else Segment(part, hard_breaks=True) for odd, part in lines)
        )
    splitting = Splitting(beyond=0, language=pair.source)
    return Prepared(document, SplitSegments.of(document.segments, splitting))
