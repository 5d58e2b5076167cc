"""Inputs for fuzzing: mutations of valid files, and files that are made of the parts of a format.

Every input is a function of a seed, the name of a target and a number, so any can be made again.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from random import Random

import numpy as np

LONGEST = 200_000
NUMBERS = ("0", "-1", "1e308", "nan", "99999999999999999999", "9" * 5_000, "0x10", "-0.0", "1_000")
CHARACTERS = (
    "\0",
    "\r",
    "\n",
    "\u2028",
    "\ufeff",
    "\u202e",
    "é",
    "猫",
    "😀",
    "\t",
    " ",
    "\x7f",
    '"',
)

TEXTS: dict[str, tuple[str, ...]] = {
    "lines": ("a b c\nd e\n", "cats like dogs\r\nfish\r\n", "\ufeffa\n"),
    "tsv": ("a b\tA B\nc\tC\n", "good film\tpositive\nbad film\tnegative\n", "text\tlabel\na\tb\n"),
    "tmx": (
        '<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4">'
        '<header srclang="en"/><body><tu><tuv xml:lang="en"><seg>a <bpt i="1">&lt;b></bpt>dog'
        '<ept i="1"/></seg></tuv><tuv xml:lang="de"><seg>ein <hi>Hund</hi></seg></tuv></tu>'
        '<tu><tuv xml:lang="en"><seg>cats &amp; dogs</seg></tuv></tu></body></tmx>',
    ),
    "xliff": (
        '<xliff version="1.2"><file source-language="en" target-language="de"><body>'
        '<trans-unit id="1"><source>a <g id="1">big</g> dog<x id="2"/></source></trans-unit>'
        '<trans-unit id="2"><source>old</source><target>alt</target></trans-unit></body></file>'
        "</xliff>",
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">'
        '<file id="f"><unit id="1"><segment><source>a <pc id="1">b</pc></source></segment></unit>'
        "</file></xliff>",
    ),
    "po": ('msgid ""\nmsgstr "Language: de\\n"\n\n#, fuzzy\nmsgctxt "a"\nmsgid "one"\n'
           'msgid_plural "many"\nmsgstr[0] ""\nmsgstr[1] "viele"\n',),
    "srt": ("1\n00:00:01,000 --> 00:00:02,500\n<i>cats like</i> dogs\n{\\an8}and fish\n\n2\n"
            "00:00:03,000 --> 00:00:04,000\nyes\n",),
    "html": ('<!doctype html><html lang="en"><body><h1>A <b>big</b> dog</h1><p translate="no">x'
             "</p><pre>code</pre><p>cats &amp; <a href='x'>dogs<br>run</a><!-- n --></p></html>",),
    "markdown": ("---\ntitle: x\n---\n# A *title*\n\nA [link](http://a.b \"t\") and `code`.  \n"
                 "hard\n\n- item **b**\n- [ ] task\n\n| a | b |\n|---|---|\n| c | d |\n\n"
                 "> quote <b>x</b>\n\n```py\nx\n```\n<div>html</div>\n\n[ref]: /u\n",),
    "rst": ("Title\n=====\n\nA *word*, a **strong** `link <http://a.b>`_ and ``code``.\n\n"
            "* item\n\n  1. inner\n\n.. note:: a note\n\n   body\n\n===  ===\na    b\n===  ===\n"
            "c    d\n===  ===\n\n::\n\n   literal\n\n.. _ref: http://a.b\n",),
    "text": ("A paragraph. Another sentence.\n\nA second one, e.g. this.\n",),
    "jsonl": ('{"source": "a", "target": "b"}\n{"translation": {"en": "c", "de": "d"}}\n',
              '{"label": "good", "text": "a fine film"}\n{"label": "bad", "text": "no"}\n'),
    "csv": ("date,value\n2024-01-01,1.5\n2024-01-02,2.5\n", "a;b\n1,5;2\n2,5;3\n", "1\n2\n3\n"),
    "graphml": (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d0" for="node" '
        'attr.name="x" attr.type="double"/><key id="d1" for="node" attr.name="label" '
        'attr.type="string"/><graph edgedefault="undirected"><node id="a"><data key="d0">1</data>'
        '<data key="d1">u</data></node><node id="b"><data key="d0">2</data><data key="d1">v</data>'
        '</node><edge source="a" target="b"/></graph></graphml>',
    ),
    "edges": ("source,target\na,b\nb,c\n",),
    "links": ("0-0 1-2\n\n1-1\n", "1-1 2p2\n"),
    "keys": ("# friends\nalpha\nbeta 2\n",),
    "toml": (
        'task = "translate"\n[model]\nfamily = "transformer"\nlayers = 1\nmodel_dim = 8\n',
        'task = "forecast"\n[data]\nwindow = 3\n[model]\nhidden = 4\n',
        'task = "language-model"\n[model]\nfamily = "recurrent"\nhidden = 4\n',
        'task = "classify-nodes"\n[model]\nlayers = 1\n[training]\nseeds = 2\n',
    ),
    "overrides": ("training.steps=200", "data.train=[a.en,a.de]", "model.dropout=0.1"),
    "http-json": (
        '{"q": "badal kofen", "source": "en", "target": "de", "alternatives": 1}',
        '{"q": ["<b>badal</b> kofen"], "source": "auto", "target": "de", "format": "html"}',
        '{"q": "badal", "model": "m", "prefix": "L", "beam": 2, "top": 3, "prefix_tokens": [5]}',
    ),
    "http-form": ("q=badal+kofen&source=en&target=de", "q=a&q=b&source=auto&target=de"),
    "http-multipart": ('--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nbadal\r\n--x\r\n'
                       'Content-Disposition: form-data; name="source"\r\n\r\nen\r\n--x\r\n'
                       'Content-Disposition: form-data; name="target"\r\n\r\nde\r\n--x--\r\n',),
}  # fmt: skip

XML = ("<", ">", "/>", "</seg>", "<seg>", "<tu>", "</tu>", '<tuv xml:lang="en">', "</tuv>", "&amp;",
       "&#0;", "&lt;", "<![CDATA[", "]]>", "<!--", "-->", "<?x?>", "<g id='1'>", "</g>",
       "<segment>",
       "</segment>", "<source>", "</source>", "<target/>", "<x/>", "<mrk>", "<bpt i='1'/>",
       "<!DOCTYPE a [<!ENTITY b 'c'>]>", "<!DOCTYPE a [<!ATTLIST b c CDATA 'd'>]>")  # fmt: skip
PARTS: dict[str, tuple[str, ...]] = {
    "tmx": XML, "xliff": XML,
    "graphml": (*XML, "<node id='a'>", "</node>", "<edge source='a' target='b'/>", "<graph>",
                "<data key='d0'>", "</data>", "<key id='d0' for='node' attr.type='int'/>"),
    "html": ("<b>", "</b>", "<p>", "<pre>", "</pre>", "<br>", "<a href='", "'>", "&amp", "&#x41;",
             "<!--", "-->", "<![", "]>", "<!", "<?", "<script>", "</script>", "<textarea>",
             "</", "<", ">", "translate='no'", " word ", ". ", "<span>", "</i>", "<svg/>"),
    "markdown": ("# ", "\n", "\n\n", "- ", "1. ", "> ", "```", "`", "*", "**", "_", "[", "](", ")",
                 "!", "|", "---", "<b>", "</b>", "<div>", "\\", "[^1]", "    ", "a word", "&amp;"),
    "rst": ("=====\n", "-----\n", "\n", "\n\n", "* ", "1. ", ".. note:: ", ".. ", "::", "``", "`",
            "`_", "*", "**", "|", "   ", "+---+", "===  ===", "a word", ":ref:`", "_", ">>> "),
    "po": ("msgid ", "msgstr ", "msgstr[0] ", "msgid_plural ", '"a"', '"\\', "\\x41", "\n",
           "#, fuzzy",
           "#~ ", "msgctxt ", '""'),
    "srt": ("1\n", "00:00:01,000 --> 00:00:02,000\n", "<i>", "</i>", "{\\an8}", "a b", "\n\n",
            "<", "-->"),
    "csv": (",", ";", "\t", '"', "\n", "\r", "1", "2,5", "1.000", "2024-01-01", "31.12.2023",
            "x", "nan"),
    "toml": ("[model]\n", "[", "]", "a = ", "layers = ", "1\n", '"', "'''", '"""', "{", "}", ".",
             ",",
             "= ", "0x", "1e400\n", "true\n", "1979-05-27\n", "\\u0041", "family = \"recurrent\"\n",
             "task = \"translate\"\n", "[data]\n", "[training]\n", "steps = ", "beam = ", "#"),
    "jsonl": ("{", "}", "[", "]", '"source"', '"target"', ":", ",", '"a"', "1", "null", "\n",
              '"\\ud800"',
              "1e999", "true", '"text"', '"label"'),
    "http-json": ("{", "}", "[", "]", '"q"', '"source"', '"target"', ":", ",", '"en"', '"de"',
                  "1", "null",
                  '"\\ud800"', '"html"', '"format"', '"badal"', '"<b>"', '"prefix_tokens"', "-1"),
    "http-multipart": ("--x", "--x--", "\r\n", "Content-Disposition: form-data", '; name="q"',
                       ";", ":",
                       "\r", "\n", "badal", "Content-Type: multipart/mixed; boundary=x",
                       '; filename="'),
    "http-form": ("q=", "&", "=", "%", "%ff", "source=en", "target=de", "+", "badal", "%00"),
}  # fmt: skip


def mutated(seed: bytes, parts: Sequence[str], random: Random) -> bytes:
    """Return valid content with one to eight changes."""
    content = bytearray(seed)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + int(random.expovariate(0.1)))
        kind = random.randrange(9)
        if kind == 0 and content:
            content[min(start, len(content) - 1)] ^= 1 << random.randrange(8)
        elif kind == 1:
            del content[start:end]
        elif kind == 2:
            del content[start:]
        elif kind == 3:
            content[start:start] = content[start:end] * random.choice((1, 2, 10, 300))
        elif kind == 4:
            content[start:end] = random.randbytes(random.randrange(1, 9))
        elif kind == 5:
            content[start:start] = random.choice(CHARACTERS).encode("utf-8", "surrogatepass")
        elif kind == 6:
            content[start:end] = random.choice(NUMBERS).encode()
        elif kind == 7 and parts:
            piece = random.choice(parts).encode()
            content[start:start] = piece * random.choice((1, 1, 2, 50, 2_000))
        else:
            other = random.randrange(len(content) + 1)
            content[start:start] = content[other : other + (end - start)]
    return bytes(content[:LONGEST])


def assembled(parts: Sequence[str], random: Random) -> bytes:
    """Return content made of the parts of a format at random."""
    pieces = []
    for _ in range(random.choice((3, 10, 40, 200))):
        pool = random.choice((parts, parts, parts, CHARACTERS, NUMBERS))
        pieces.append(random.choice(pool) * random.choice((1, 1, 1, 1, 3, 100)))
    return "".join(pieces).encode("utf-8", "surrogatepass")[:LONGEST]


def text_input(kind: str, random: Random) -> bytes:
    """Return one input in a text format."""
    parts = PARTS.get(kind, CHARACTERS)
    if random.random() < 0.3:
        return assembled(parts, random)
    return mutated(random.choice(TEXTS[kind]).encode(), parts, random)


TYPES = ("<i8", "<f4", "<f8", "<U3", "|u1", "<i2", "|b1", "<M8[D]", "|S2", "<c8")
NAMES = ("x", "y", "edges", "x_data", "x_indices", "x_indptr", "x_shape", "idx_train", "idx_val",
         "idx_test", "names", "classes")  # fmt: skip


def npz_input(random: Random) -> bytes:
    """Return arrays of a graph, some of them of odd types and shapes, or damaged."""
    arrays: dict[str, np.ndarray] = {
        "x": np.eye(4, dtype=np.float32), "y": np.array([0, 1, 0, 1]),
        "edges": np.array([[0, 1, 2], [1, 2, 3]]),
        "idx_train": np.array([0, 1]), "idx_val": np.array([2]), "idx_test": np.array([3]),
    }  # fmt: skip
    for _ in range(random.randrange(4)):
        shape = tuple(random.choice((0, 1, 2, 4)) for _ in range(random.randrange(4)))
        values = np.array(
            [random.choice((0, 1, 3, -1, 9, 10**11)) for _ in range(int(np.prod(shape)))]
        )
        try:
            arrays[random.choice(NAMES)] = values.reshape(shape).astype(random.choice(TYPES))
        except (TypeError, ValueError):
            arrays.pop(random.choice(NAMES), None)
    held = io.BytesIO()
    np.savez(held, **arrays)
    content = held.getvalue()
    return mutated(content, (), random) if random.random() < 0.6 else content


def zip_input(random: Random) -> bytes:
    """Return a zip archive with odd members, or a damaged one."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in random.sample(("a.npy", "../a", "/etc/x", "y.npy", "", "word/document.xml"), 3):
            archive.writestr(name or "x", random.randbytes(random.randrange(99)))
    return mutated(held.getvalue(), (), random)


def odd_value(random: Random, depth: int = 0) -> object:
    """Return a JSON value that nobody expects."""
    kind = random.randrange(9 if depth < 3 else 7)
    if kind == 7:
        return [odd_value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 8:
        return {random.choice(CHARACTERS): odd_value(random, depth + 1)}
    return (None, True, -1, 10**30, 1e308, "", "\ud800")[kind]


def json_file_input(content: bytes, random: Random) -> bytes:
    """Return a JSON file of a run with a value replaced, or its bytes mutated."""
    try:
        value = json.loads(content)
    except ValueError:
        return mutated(content, ("{", "}", "null"), random)
    if random.random() < 0.5:
        return mutated(content, ("{", "}", "[", "]", "null", "-1"), random)
    place, key = None, None
    here = value
    while isinstance(here, dict | list) and here and (place is None or random.random() < 0.7):
        place = here
        key = random.choice(list(here)) if isinstance(here, dict) else random.randrange(len(here))
        here = here[key]
    if place is None or key is None:
        return json.dumps(odd_value(random)).encode()
    if isinstance(place, dict) and random.random() < 0.3:
        del place[key]
    else:
        place[key] = odd_value(random)
    return json.dumps(value).encode()


Maker = Callable[[Random], bytes]
