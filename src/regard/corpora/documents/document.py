"""A document as what stays and what is translated, in the order of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.corpora.documents.inline import Tag


@dataclass(frozen=True)
class Segment:
    """A text to translate, without markup and escapes.

    `write` puts a translation into the form of the file, by escapes or quotes, and `arrange` lays
    out what was written. `tags` stood inside the text, and `hard_breaks` says that its line breaks
    mean something.
    """

    text: str
    write: Callable[[str], str] = str
    arrange: Callable[[str], str] = str
    tags: tuple[Tag, ...] = ()
    hard_breaks: bool = False
    line: int | None = None


@dataclass(frozen=True)
class Document:
    """Fixed texts and segments, in the order of the file."""

    parts: tuple[str | Segment, ...]

    @property
    def segments(self) -> list[Segment]:
        """What is to be translated."""
        return [part for part in self.parts if isinstance(part, Segment)]

    def filled(self, translations: Sequence[str]) -> str:
        """Return the document with these texts, already written as the format wants them."""
        texts = iter(translations)
        written = [next(texts) if isinstance(part, Segment) else part for part in self.parts]
        return "".join(written)


@dataclass(frozen=True)
class Languages:
    """Codes of the two languages, as "de"; empty where the user did not name them."""

    source: str = ""
    target: str = ""
