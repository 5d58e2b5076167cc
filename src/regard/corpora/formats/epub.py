"""Books (EPUB): their pages as HTML, and the titles of the table of contents."""

import re
from pathlib import Path

from regard.corpora.formats.document import Document, Languages
from regard.corpora.formats.html import read_html
from regard.corpora.formats.office import marked_texts
from regard.corpora.formats.packages import PackageDocument, entry_text, read_package

PAGES = (".xhtml", ".html", ".htm")
LANGUAGE = re.compile(r"(<(?:\w+:)?language\b[^>]*>)([^<]*)(?=</)")


def read_epub(content: bytes, path: Path, languages: Languages) -> PackageDocument:
    """Return a book with the texts of its pages as segments, in the target language if known."""

    def read(name: str, inside: bytes) -> Document | None:
        lowered = name.lower()
        if lowered.endswith(PAGES):
            return read_html(entry_text(inside, name, path), Path(f"{path}/{name}"), languages)
        if lowered.endswith(".ncx"):
            return marked_texts(entry_text(inside, name, path), path, elements=("text", "ncx:text"))
        if lowered.endswith(".opf") and languages.target:
            text = entry_text(inside, name, path)
            return Document((LANGUAGE.sub(rf"\g<1>{languages.target}", text, count=1),))
        return None

    return read_package(content, path, read, needed="META-INF/container.xml")
