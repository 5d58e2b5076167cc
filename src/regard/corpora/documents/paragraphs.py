"""Plain text in paragraphs, which blank lines separate; line breaks inside them are only spaces."""

from __future__ import annotations

import re
from pathlib import Path

from regard.corpora.documents.document import Document, Languages, Segment

BREAK = re.compile(r"((?:^|\n)(?:[^\S\n]*\n)+)")


def read_paragraphs(content: str, path: Path, languages: Languages) -> Document:
    """Return a text whose paragraphs are to be translated."""
    parts: list[str | Segment] = []
    line = 1
    for index, part in enumerate(BREAK.split(content)):
        if index % 2 or not part.strip():
            parts.append(part)
        else:
            parts.append(Segment(part, line=line))
        line += part.count("\n")
    return Document(tuple(parts))
