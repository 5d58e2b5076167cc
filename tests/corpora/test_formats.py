from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.base.errors import DataError, SettingsError
from regard.corpora.formats.document import ColumnReader, Document, Languages, Segment
from regard.corpora.formats.json_lines import FieldReader
from regard.corpora.formats.registry import format_of, read_document
from regard.corpora.formats.srt import balanced

PATH = Path("file")


def read(kind: str, content: str, source: str = "", target: str = "") -> Document:
    return read_document(
        content.encode(), path=PATH, kind=kind, languages=Languages(source, target)
    )


def raised(document: Document) -> str:
    """The document with its texts in capitals and its tags where they were."""
    return document.filled([_capitals(segment) for segment in document.segments])


def _capitals(segment: Segment) -> str:
    written, place = "", 0
    for tag in segment.tags:
        written += segment.write(segment.text[place : tag.position].upper()) + tag.raw
        place = tag.position
    return segment.arrange(written + segment.write(segment.text[place:].upper()))


TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" datatype="plaintext"/><body>
 <!-- a note -->
 <tu tuid='1'><tuv xml:lang="en"><seg>cats &amp; dogs</seg></tuv></tu>
 <tu><tuv xml:lang="en-US"><seg>a <bpt i="1">&lt;b></bpt>dog<ept i="1">&lt;/b></ept></seg></tuv>
  <tuv xml:lang="de"><seg/></tuv></tu>
 <tu><tuv xml:lang="en"><seg>done</seg></tuv><tuv xml:lang="de"><seg>fertig</seg></tuv></tu>
 <tu><tuv xml:lang="fr"><seg>chat</seg></tuv></tu>
 <tu><tuv xml:lang="en"><seg> </seg></tuv></tu>
</body></tmx>
"""
TMX_RAISED = TMX.replace(
    "dogs</seg></tuv>", 'dogs</seg></tuv><tuv xml:lang="de"><seg>CATS &amp; DOGS</seg></tuv>'
).replace("<seg/>", '<seg>A <bpt i="1">&lt;b></bpt>DOG<ept i="1">&lt;/b></ept></seg>')

XLIFF_1 = """<xliff version="1.2"><file source-language="en" target-language="de"><body>
<trans-unit id="1"><source>a <g id="1">big</g> dog<x id="2"/></source></trans-unit>
<trans-unit id="2"><source>new &lt;</source><target state="new"></target></trans-unit>
<trans-unit id="3"><source>old</source><target>alt</target></trans-unit>
<trans-unit id="4" translate="no"><source>name</source></trans-unit>
<trans-unit id="5"><source><![CDATA[a & b]]></source><seg-source>a</seg-source>
 <alt-trans><source>x</source><target>y</target></alt-trans></trans-unit>
</body></file></xliff>"""
XLIFF_1_RAISED = (
    XLIFF_1.replace(
        'dog<x id="2"/></source>',
        'dog<x id="2"/></source><target>A <g id="1">BIG</g> DOG<x id="2"/></target>',
    )
    .replace('<target state="new"></target>', '<target state="new">NEW &lt;</target>')
    .replace("</seg-source>", "</seg-source><target>A &amp; B</target>")
)

XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
<file id="f"><unit id="1"><segment>
<source>a <pc id="1">b</pc> <sc id="2"/>c<ec startRef="2"/></source>
</segment></unit></file></xliff>"""
XLIFF_2_RAISED = XLIFF_2.replace('srcLang="en"', 'srcLang="en" trgLang="de"').replace(
    "</source>",
    '</source><target>A <pc id="1">B</pc> <sc id="2"/>C<ec startRef="2"/></target>',
)

PO = r"""# a comment
msgid ""
msgstr ""
"Language: de\n"

#: main.c:3
#, c-format
msgid "a \"cat\"\n"
msgstr ""

msgctxt "menu"
msgid ""
"two "
"parts"
msgstr ""
""

msgid "done"
msgstr "fertig"

msgid "%d cat"
msgid_plural "%d cats"
msgstr[0] ""
msgstr[1] ""

#~ msgid "old"
#~ msgstr ""
"""
PO_RAISED = (
    PO.replace('\\n"\nmsgstr ""', '\\n"\nmsgstr "A \\"CAT\\"\\n"', 2)
    .replace('msgstr "A \\"CAT\\"\\n"\n"Language', 'msgstr ""\n"Language')
    .replace('parts"\nmsgstr ""\n""\n', 'parts"\nmsgstr "TWO PARTS"\n')
    .replace('msgstr[0] ""', 'msgstr[0] "%D CAT"')
    .replace('msgstr[1] ""', 'msgstr[1] "%D CATS"')
    .replace("#, c-format", "#, fuzzy, c-format")
    .replace("msgctxt", "#, fuzzy\nmsgctxt")
    .replace('msgid "%d cat"', '#, fuzzy\nmsgid "%d cat"')
)

SRT = """1\r
00:00:01,000 --> 00:00:02,500\r
the <i>first</i>\r
line of two\r
\r
2
00:00:03,000 --> 00:00:04,000 X1:1
{\\an8}<i>short</i>

3
00:00:05,000 --> 00:00:06,000

"""
SRT_RAISED = (
    SRT.replace("the <i>first</i>", "THE <i>FIRST</i>")
    .replace("line of two", "LINE OF TWO")
    .replace("short", "SHORT")
)

HTML = """<!DOCTYPE html><html lang=en><head><title>a title</title>
<style>p { color: red }</style><script>if (a < b) x();</script></head>
<body class="x"><!-- note --><p>one <b>two</b> &amp; <a href="x?a&b">three</a>&nbsp;four<br>five
<p><em>all</em></p><p>say <code>x = 1</code> now</p><pre>code</pre> &mdash; <img src=a.png>
<div translate="no">name <b>x</b></div><span class="notranslate">y</span><td>1 < 2</body></html>
"""
HTML_RAISED = (
    HTML.replace("lang=en", 'lang="de"')
    .replace("a title", "A TITLE")
    .replace("one <b>two", "ONE <b>TWO")
    .replace("three", "THREE")
    .replace("four<br>five", "FOUR<br>FIVE")
    .replace("<em>all", "<em>ALL")
    .replace("say", "SAY")
    .replace("now", "NOW")
    .replace("1 < 2", "1 &lt; 2")
)

TEXT = "A title\n\n  first line\nsecond line.\n \n\nlast"

# Name of the case: format, content, the content with its texts in capitals.
CASES = {
    "TMX": ("tmx", TMX, TMX_RAISED),
    "XLIFF 1.2": ("xliff", XLIFF_1, XLIFF_1_RAISED),
    "XLIFF 2.0": ("xliff", XLIFF_2, XLIFF_2_RAISED),
    "PO": ("po", PO, PO_RAISED),
    "SRT": ("srt", SRT, SRT_RAISED),
    "HTML": ("html", HTML, HTML_RAISED),
    "empty HTML": ("html", "", ""),
    "paragraphs": ("text", TEXT, TEXT.upper()),
}


@pytest.mark.parametrize("case", CASES)
def test_only_texts_change(case: str) -> None:
    kind, content, expected = CASES[case]
    found = raised(read(kind, content, "en", "de"))
    assert found == expected
    if kind in ("tmx", "xliff"):
        ElementTree.fromstring(found)


@pytest.mark.parametrize("case", CASES)
def test_documents_that_are_done_stay_as_they_are(case: str) -> None:
    kind, _, done = CASES[case]
    if kind in ("tmx", "xliff", "po"):
        assert read(kind, done, "en", "de").segments == []


def test_segments_of_html() -> None:
    found = [segment.text for segment in read("html", HTML).segments]
    assert found[:3] == ["a title", "one two & three\u00a0four", "five\n"]


def test_languages_of_a_memory_are_found() -> None:
    two = TMX.replace('<tu><tuv xml:lang="fr"><seg>chat</seg></tuv></tu>', "")
    assert raised(read("tmx", two)) == TMX_RAISED.replace(
        '<tu><tuv xml:lang="fr"><seg>chat</seg></tuv></tu>', ""
    )


BOMB = """<?xml version="1.0"?>
<!DOCTYPE tmx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><tmx>&b;</tmx>"""
OUTSIDE = """<!DOCTYPE tmx [
<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx>&a;</tmx>"""

# Name of the case: format, content, message.
MISTAKES = {
    "cut XML": ("tmx", "<tmx>\n<body>", r"file, line 2: not well-formed XML at column \d+ \(no el"),
    "crossed": ("xliff", "<xliff>\n<a></b></xliff>", "file, line 2: .*mismatched tag"),
    "no XML": ("xliff", "", "file, line 1: not well-formed XML .*no element"),
    "bomb": ("tmx", BOMB, r"file, line 2: the document declares an entity \(a\)"),
    "outside": ("tmx", OUTSIDE, r"file, line 2: the document declares an entity \(a\)"),
    "Latin-1": (
        "tmx",
        '<?xml version="1.0" encoding="latin-1"?><a/>',
        "the encoding latin-1",
    ),
    "languages": ("tmx", "<tmx></tmx>", "target language is unclear: the memory has none"),
    "not XLIFF": ("xliff", "<html/>", "file, line 1: the file begins with <html>, not <xliff>"),
    "no trgLang": ("xliff", XLIFF_2, r"does not name its target language \(trgLang\)"),
    "PO quotes": ("po", 'msgid "a"\nmsgstr "b\n', "file, line 2: a text whose quotation marks"),
    "PO order": ("po", 'msgstr "b"\n', "file, line 1: msgstr without a msgid"),
    "PO twice": ("po", 'msgid "a"\nmsgid "b"\n', "file, line 2: a second msgid"),
    "PO end": ("po", 'msgid "a"\n', "file, line 1: msgid without a msgstr at the end"),
    "PO words": ("po", "hello\n", "file, line 1: a line that begins with 'hello'"),
    "PO text": ("po", '"hello"\n', "file, line 1: text without a keyword"),
    "SRT": ("srt", "1\nhello\n", "file, line 2: neither a number nor a time stands before 'hello'"),
    "NUL": ("text", "a\nb\0", "file, line 2: a NUL byte"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named_with_their_line(case: str) -> None:
    kind, content, message = MISTAKES[case]
    with pytest.raises(DataError, match=message):
        read(kind, content)


def test_invalid_text() -> None:
    with pytest.raises(DataError, match=r"file, line 2: invalid UTF-8 \(0xff\)"):
        read_document(b"a\n\xff", path=PATH, kind="text", languages=Languages())


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.txt", "lines"), ("a.TMX", "tmx"), ("a.xlf", "xliff"), ("a.htm", "html"), ("a", "lines")],
)
def test_format_by_ending(name: str, kind: str) -> None:
    assert format_of(Path(name)) == kind
    assert format_of(Path(name), named="po") == "po"
    assert format_of(None) == "lines"


def test_unknown_format() -> None:
    with pytest.raises(SettingsError, match=r"Unknown format 'htlm'. Did you mean 'html'"):
        format_of(None, named="htlm")


def line(reader: ColumnReader | FieldReader, *lines: str) -> str:
    return [raised(reader(text, number)) for number, text in enumerate(lines, 1)][-1]


def test_columns() -> None:
    assert line(ColumnReader("2", path=PATH), "a\tb\tc") == "a\tB\tc"
    assert line(ColumnReader("1", path=PATH), "") == ""
    named = ColumnReader("text", path=PATH)
    assert line(named, "id\ttext") == "id\ttext"
    assert line(named, "id\ttext", "1\tcat") == "1\tCAT"
    segment = ColumnReader("1", path=PATH)("a\tb", 1).segments[0]
    assert segment.write("a\tb") == "a b"
    with pytest.raises(DataError, match="file, line 1: 1 column, but column 2 is to be"):
        line(ColumnReader("2", path=PATH), "a")
    with pytest.raises(DataError, match=r"no column 'txet'. Did you mean 'text'"):
        line(ColumnReader("txet", path=PATH), "id\ttext")


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        pytest.param("b", '{"a": 1,  "b" : "cat"}', '{"a": 1,  "b" : "CAT"}', id="spacing stays"),
        pytest.param("a.b", '{"a": {"c": [1], "b": "é"}, "b": "x"}',
                     '{"a": {"c": [1], "b": "É"}, "b": "x"}', id="nested"),
        pytest.param("b", r'{"b": "\u00e9 \"q\""}', r'{"b": "\u00c9 \"Q\""}', id="escapes stay"),
        pytest.param("b", '{"b": null}', '{"b": null}', id="null"),
        pytest.param("b", "  ", "  ", id="blank"),
        pytest.param("b", ' { "b":"x" , "c":{} } ', ' { "b":"X" , "c":{} } ', id="outer space"),
    ],
)  # fmt: skip
def test_fields(field: str, before: str, after: str) -> None:
    assert line(FieldReader(field, path=PATH), before) == after


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param('{"text": ', r"file, line 1: not valid JSON at character \d+", id="cut"),
        pytest.param("[1]", "file, line 1: the line is JSON, but not an object", id="list"),
        pytest.param('{"txet": "a"}', "there is no field 'text'. Did you mean 'txet'", id="name"),
        pytest.param("{}", "there is no field 'text'. Name another", id="none"),
        pytest.param('{"text": [1]}', r"the field 'text' is not text: \[1\]", id="number"),
        pytest.param('{"text": "\\ud800"}', "half a character", id="half a pair"),
        pytest.param("[" * 100_000, "the JSON is nested too deeply", id="deep"),
    ],
)
def test_fields_that_cannot_be_used(content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        line(FieldReader("text", path=PATH), content)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["a", "dog", "translation"]), min_size=1), st.integers(1, 4))
def test_subtitles_keep_their_words(words: list[str], lines: int) -> None:
    found = balanced(" ".join(words), lines=lines)
    assert found.split() == words
    assert len(found.splitlines()) == min(lines, len(words))


def test_lines_of_subtitles_are_not_broken_inside_tags() -> None:
    assert balanced('a <font color="x y">b</font>', lines=2) == 'a\n<font color="x y">b</font>'
