"""Documents stay valid: markup and placeholders survive every model, and nothing else changes."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import docutils.core
import docx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from regard.base.errors import DataError, SettingsError
from regard.corpora.formats.document import Languages
from regard.corpora.formats.placeholders import find_placeholders
from regard.corpora.formats.registry import read_document
from regard.documents.segments import Splitting, translate_document
from regard.documents.translation import FileOptions
from regard.tasks.attention import AttentionMap
from regard.tasks.translation.results import Translation

Write = Callable[[list[str]], list[tuple[int, str]]]


def model(write: Write) -> Callable[[Sequence[str]], Iterator[tuple[int, Translation]]]:
    """Return a model: `write` says from which source word each target word is made."""

    def translate(texts: Sequence[str]) -> Iterator[tuple[int, Translation]]:
        for index, text in enumerate(texts):
            words = text.split()
            made = write(words)
            weights = np.zeros((max(1, len(made)), len(words)), dtype=np.float32)
            for row, (place, _) in enumerate(made):
                weights[row, place] = 1.0
            target = tuple(word for _, word in made) or ("",)
            numbers = [tuple(range(len(side))) for side in (words, target)]
            seen = AttentionMap(weights, tuple(words), target, *numbers)
            yield index, Translation(text, " ".join(target), 0.0, 0.0, seen)

    return translate


def same(texts: Sequence[str]) -> Iterator[tuple[int, Translation]]:
    for index, text in enumerate(texts):
        yield index, Translation(text, text, 0.0, 0.0, None)


swapped = model(lambda words: [(i, word.swapcase()) for i, word in enumerate(words)])
turned = model(lambda words: [(i, word.upper()) for i, word in enumerate(words)][::-1])
# A model that knows plain words alone, as one with a small vocabulary.
plain = model(lambda words: [(i, word.upper()) for i, word in enumerate(words) if word.isalpha()])
MODELS: dict[str, Any] = {"swapped": swapped, "turned": turned, "plain": plain}


def through(
    kind: str, content: str | bytes, translate: Any, languages: tuple[str, str] = ("", "")
) -> Any:
    given = content.encode() if isinstance(content, str) else content
    path = Path(f"file.{kind}")
    document = read_document(given, path=path, kind=kind, languages=Languages(*languages))
    return translate_document(document, translate, path=path, splitting=Splitting(0, "en"))


MARKDOWN = """---
title: kept as it is
---
# A title with `code` #

Some *emphasis* and **strong words**, [a link](http://x.org "T (x)"), [ref] and
[Other][], ![an image](a.png) and <b>bold</b> text &copy; you.\\
After a hard break %s and {name}.

> a quotation
lazy line
> of three - lines

- item one, snake\\_case and 5 * 3 = 15
  goes on here
- [ ] a task

1. 1. nested item

| a head | b \\| c |
|--------|--------|
| cell `x` here | z |

Under
lined
=====

<div>some html</div>

    code stays

```
code stays
```

[ref]: http://x.org "T"
[other]: http://y.org
"""
RST = """.. _top:

=====
Title
=====

A title with ``code``
=====================

A paragraph with :func:`open` and *emphasis* words,
**strong** `a link <http://x.org>`_ and `Title`_ and top_ [1]_.
It says %(count)d words::

    code stays

.. note:: A note that
   goes on here.

   Its second part |sub| here.

.. code-block:: python
   :number-lines:

   code = "stays"

.. versionadded:: 3.2
   The new thing.

.. figure:: a.png
   :alt: kept

   A caption of words.

- item one
  goes on
- item two

1. first
2. second

:param x: the value
    of a thing
:type x: int

term
    the meaning of it

| line block
| second line

===== =====
A     B
===== =====
kept  kept
===== =====

+------+
| kept |
+------+

>>> print("kept")
kept

.. [1] A note at the foot.

.. |sub| replace:: kept

.. a comment that
   is kept

----

The end of it.
"""
PO = r"""#: main.c:3
#, python-format
msgid "Deleted %(count)d files of \"%(name)s\"."
msgstr ""

#| msgid "old"
msgctxt "menu"
msgid "See :func:`open`, {name} and <b>this</b>."
msgstr ""

msgid "%s: %d"
msgstr ""

msgid "one\n"
"two %s\n"
msgstr ""
"""


def word_file() -> bytes:
    document = docx.Document()
    document.add_heading("A title", 1)
    paragraph = document.add_paragraph("Cats do ")
    paragraph.add_run("not like").bold = True
    paragraph.add_run(" dogs & mice.\tA tab ")
    paragraph.add_run("ends it").italic = True
    document.add_paragraph("12345")
    document.add_table(1, 1).cell(0, 0).text = "in a cell"
    document.sections[0].header.paragraphs[0].text = "a running head"
    saved = io.BytesIO()
    document.save(saved)
    return saved.getvalue()


def archive(**entries: str | bytes) -> bytes:
    saved = io.BytesIO()
    with zipfile.ZipFile(saved, "w") as made:
        made.writestr(zipfile.ZipInfo("mimetype"), "application/x")
        for name, content in entries.items():
            made.writestr(name, content, compress_type=zipfile.ZIP_DEFLATED)
    return saved.getvalue()


ODT_XML = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="o" xmlns:text="t" xmlns:xlink="x"><office:text>
<text:h text:outline-level="1">A title</text:h><text:p text:style-name="P1">Cats do
 <text:span text:style-name="T1">not like</text:span> dogs &amp; the cat&apos;s mice.
<text:line-break/><text:a xlink:href="http://x.org">a link</text:a></text:p><text:p/>
<text:p>12345</text:p>
</office:text></office:document-content>"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en"><head><title>One</title></head>
<body><h1>Chapter one</h1><p>Cats do <b>not</b> like&#160;dogs.<br/>The end</p>
<p lang="en-GB">colour</p><p lang="fr">chat</p></body></html>"""
ODT = archive(
    **{"content.xml": ODT_XML, "Pictures/a.png": b"\x89PNG\0", "META-INF/manifest.xml": "<m/>"}
)
EPUB = archive(
    **{
        "META-INF/container.xml": "<container/>",
        "OEBPS/content.opf": "<package><dc:language>en</dc:language></package>",
        "OEBPS/one.xhtml": PAGE,
        "toc.ncx": "<ncx><navLabel><text>Chapter one</text></navLabel></ncx>",
    }
)
HTML = '<html lang="en"><body><p>a <b>big</b> cat &amp;&nbsp;co</p><p lang="fr">x</p></body></html>'
DOCUMENTS: dict[str, str | bytes] = {
    "markdown": MARKDOWN, "rst": RST, "html": HTML, "docx": word_file(), "odt": ODT, "epub": EPUB,
}  # fmt: skip


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_model_that_changes_nothing_gives_back_the_same_bytes(kind: str) -> None:
    assert through(kind, DOCUMENTS[kind], same) == DOCUMENTS[kind]


def test_a_space_that_does_not_break_has_no_name_in_xhtml() -> None:
    raised = model(lambda words: [(0, "A\u00a0b")])
    assert "<p>A&#160;b</p>" in through("html", '<?xml version="1.0"?><p>a</p>', raised)
    assert "<p>A&nbsp;b</p>" in through("html", "<p>a</p>", raised)


@pytest.mark.parametrize("kind", ["markdown", "rst"])
def test_only_words_change(kind: str) -> None:
    found = through(kind, DOCUMENTS[kind], swapped)
    before = str(DOCUMENTS[kind]).replace("[ref] and", "[ref][ref] and").replace("[]", "[Other]")
    assert found.lower() == before.lower()
    assert found != before
    kept = re.findall(r".*(?:kept|stays).*", before)
    assert re.findall(r".*(?:kept|stays).*", found) == kept


@pytest.mark.parametrize("name", MODELS)
def test_markdown_keeps_its_structure(name: str) -> None:
    found = through("markdown", MARKDOWN, MODELS[name])
    parser = MarkdownIt("commonmark").enable("table")
    before, after = (
        [(token.type, token.tag, token.level) for token in parser.parse(text.split("---\n", 2)[2])]
        for text in (MARKDOWN, found)
    )
    assert after == before
    html = parser.render(found.split("---\n", 2)[2])
    for part in ('href="http://x.org"', 'href="http://y.org"', 'src="a.png"', "<code>code</code>",
                 "snake_case", "%s", "{name}", "©"):  # fmt: skip
        assert part in html, part


def messages(text: str) -> list[str]:
    said = io.StringIO()
    changes = {"warning_stream": said, "report_level": 2, "file_insertion_enabled": False}
    docutils.core.publish_doctree(text, settings_overrides=changes)
    roles = ("Unknown interpreted text role", "No role entry", "Unknown directive", "versionadded")
    return [line for line in said.getvalue().splitlines()
            if re.search(r"\((?:ERROR|WARNING|SEVERE)", line)
            and not any(role in line for role in roles)]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_restructured_text_stays_valid(name: str) -> None:
    found = through("rst", RST, MODELS[name])
    assert messages(found) == messages(RST) == []
    for part in (":func:`open`", "%(count)d", "``code``", "<http://x.org>`_", "`Title`_", "[1]_",
                 "|sub|", "top_"):  # fmt: skip
        assert found.count(part) == RST.count(part), part


def test_the_line_under_a_title_grows() -> None:
    longer = model(lambda words: [(i, word * 3) for i, word in enumerate(words)])
    assert through("rst", "==\nAb\n==\n\nCd\n--\n", longer) == (
        "======\nAbAbAb\n======\n\nCdCdCd\n------\n"
    )
    wide = model(lambda words: [(0, "猫")])
    assert through("rst", "Ab\n--\n", wide) == "猫\n--\n"


def test_what_looks_like_markup_in_a_translation_is_escaped() -> None:
    odd = model(lambda words: [(0, "a*b*"), (0, "[c]"), (0, "d_")])
    assert through("markdown", "word\n", odd) == "a\\*b\\* \\[c\\] d\\_\n"
    assert through("rst", "word\n", odd) == "a\\*b\\* [c] d\\_\n"
    heading = model(lambda words: [(0, "#"), (0, "x"), (0, "-"), (0, "y")])
    assert through("markdown", "one\ntwo\n", heading) == "\\#\nx - y\n"


@pytest.mark.parametrize("name", ["same", *MODELS])
def test_placeholders_of_a_catalogue_survive_every_model(name: str) -> None:
    found = through("po", PO, {"same": same, **MODELS}[name])
    sources = re.findall(r'msgid "(.*)"\nmsgstr "(.+)"', found)
    assert len(sources) == 3
    for source, target in sources:
        before, after = ([t[s:e] for s, e in find_placeholders(t)] for t in (source, target))
        assert sorted(before) == sorted(after)
    assert "#, fuzzy, python-format\n" in found
    assert '#, fuzzy\n#| msgid "old"\nmsgctxt' in found
    assert 'msgid "%s: %d"\nmsgstr "%s: %d"' in found


def test_a_placeholder_goes_where_attention_says() -> None:
    def german(words: list[str]) -> list[tuple[int, str]]:
        known = {"Delete": "lösche", "all": "alle", "files": "Dateien"}
        made = [(i, known[word]) for i, word in enumerate(words) if word in known]
        return [*made[1:], *made[:1]]

    found = through("po", 'msgid "Delete all %d files"\nmsgstr ""\n', model(german))
    assert 'msgstr "alle %d Dateien lösche"' in found


def test_catalogues_without_the_mark() -> None:
    path = Path("file.po")
    document = read_document(PO.encode(), path=path, kind="po", languages=Languages(), fuzzy=False)
    found = translate_document(document, same, path=path, splitting=Splitting(0))
    assert isinstance(found, str) and "fuzzy" not in found


def test_placeholders_of_xliff() -> None:
    xliff = (
        '<xliff version="1.2"><file source-language="en"><body><trans-unit id="1">'
        "<source>Hi %s, see <g id='1'>{name}</g> &amp; &lt;b&gt;go</source></trans-unit>"
        "</body></file></xliff>"
    )
    found = through("xliff", xliff, plain, ("en", "de"))
    target = re.search("<target>(.*)</target>", found)
    assert target is not None
    for part in ("%s", "{name}", "&lt;b&gt;", "<g id='1'>", "</g>"):
        assert target[1].count(part) == 1, part
    assert '<file target-language="de" source-language="en">' in found


def test_the_language_of_a_page() -> None:
    assert '<html lang="de">' in through("html", HTML, same, ("en", "de"))
    assert '<p lang="fr">' in through("html", HTML, same, ("en", "de"))
    assert through("html", "<html><p>a</p></html>", same, ("", "de")).startswith('<html lang="de">')


def entries(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        return {info.filename: opened.read(info) for info in opened.infolist()}


def test_a_word_document_keeps_its_formats() -> None:
    before = word_file()
    found = through("docx", before, swapped)
    after = docx.Document(io.BytesIO(found))
    runs = [(run.text, run.bold, run.italic) for run in after.paragraphs[1].runs]
    assert runs == [
        ("cATS DO ", None, None), ("NOT LIKE", True, None), (" DOGS & MICE.", None, None),
        ("\t", None, None), ("a TAB ", None, None), ("ENDS IT", None, True),
    ]  # fmt: skip
    assert after.tables[0].cell(0, 0).text == "IN A CELL"
    assert after.sections[0].header.paragraphs[0].text == "A RUNNING HEAD"
    assert list(entries(found)) == list(entries(before))
    changed = [n for n, content in entries(before).items() if entries(found)[n] != content]
    assert all(re.fullmatch(r"word/(document|header\d)\.xml", name) for name in changed)


def test_formats_follow_their_words() -> None:
    found = docx.Document(io.BytesIO(through("docx", word_file(), turned)))
    bold = [run.text for run in found.paragraphs[1].runs if run.bold]
    assert bold == ["LIKE NOT"]


def test_an_open_document_keeps_its_markup() -> None:
    found = entries(through("odt", ODT, swapped))
    text = found["content.xml"].decode()
    assert text.lower().replace("'", "&apos;").split() == ODT_XML.lower().split()
    assert next(iter(found)) == "mimetype" and found["Pictures/a.png"] == b"\x89PNG\0"


def test_a_book_keeps_its_pages() -> None:
    found = entries(through("epub", EPUB, swapped, ("en", "de")))
    page = found["OEBPS/one.xhtml"].decode()
    assert 'lang="de" xml:lang="de"' in page and '<p lang="de">COLOUR' in page
    assert '<p lang="fr">' in page
    assert "LIKE DOGS.<br/>tHE END" in page
    assert b"<dc:language>de<" in found["OEBPS/content.opf"]
    assert b"<text>cHAPTER ONE</text>" in found["toc.ncx"]


def test_archives_that_are_none() -> None:
    with pytest.raises(DataError, match=r"DOCX cannot be read: it is no whole zip archive"):
        through("docx", b"PK no", same)
    with pytest.raises(DataError, match=r"ODT cannot be read: it holds no content\.xml"):
        through("odt", archive(x="y"), same)
    with pytest.raises(DataError, match=r"'content\.xml' is not UTF-8"):
        through("odt", archive(**{"content.xml": b"\xff"}), same)
    with pytest.raises(DataError, match="not well-formed XML"):
        through("odt", archive(**{"content.xml": "<a>"}), same)
    with pytest.raises(SettingsError, match="is not printed: give --output FILE"):
        FileOptions(source=Path("a.docx")).check()


@pytest.mark.parametrize("marks", ["\ufdd39\ufdd4", "\ufdd31\ufdd4" * 3, "\ufdd5" + "9" * 5_000])
def test_characters_that_stand_for_marks_may_be_in_the_file(marks: str) -> None:
    runs = f"<r><t>a {marks} dog</t></r><r><rPr><b/></rPr><t> runs {marks}</t></r>"
    page = f"<document><p>{runs}</p></document>"
    found = through("docx", archive(**{"word/document.xml": page}), same)
    assert b"dog" in entries(found)["word/document.xml"]


def test_archives_that_would_fill_the_memory() -> None:
    bomb = archive(**{"content.xml": b"<a>" + b" " * (130 << 20) + b"</a>"})
    assert len(bomb) < 200_000
    with pytest.raises(DataError, match="bytes unpack to more than"):
        through("odt", bomb, same)


def test_paragraphs_that_nobody_has_written() -> None:
    for kind in ("markdown", "rst"):
        with pytest.raises(DataError, match="line 1: a paragraph of 60,000 characters"):
            through(kind, "[a](" * 15_000, same)


WORDS = st.sampled_from(
    ["cats", "*like*", "**big", "dogs**", "`code`", "[a](b)", "_x_", "5 * 3", "\\*", "<b>", "</b>",
     "|", ":func:`x`", "``y``", "ref_", "%s", "# a", "- b", "1. c", "> d", "\n", "\n\n",
     "\n  ", "a::",
     ".. note::", "=====", "é", "{x}", "&amp;", "http://x.org"]
)  # fmt: skip


@settings(deadline=None, max_examples=200)
@given(pieces=st.lists(WORDS, max_size=25), kind=st.sampled_from(["markdown", "rst"]))
def test_any_text_comes_back_unchanged(pieces: list[str], kind: str) -> None:
    text = " ".join(pieces)
    assert through(kind, text, same) == text
    found = through(kind, text, plain)  # never fails, never loses a placeholder
    assert found.count("%s") == text.count("%s")
    assert found.count("`code`") == text.count("`code`")
