"""Rules that split a paragraph into sentences; joined again, they are the paragraph.

A sentence ends after . ! ? or an ellipsis and any closing quotes and brackets, if white space
follows and then no lower-case letter. In scripts without spaces it ends right after the full stop.
A dot does not end a sentence after an abbreviation, an initial, the number of an item, or an
ordinal number in a language that writes ordinals with a dot. A blank line always ends it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

# In lower case, without the last dot.
ABBREVIATIONS = {
    "en": (
        "mr mrs ms dr prof st rev hon gen col capt lt sgt gov sen rep pres messrs "
        "vol fig figs eq eqs sec ch pp ed eds cf vs viz approx "
        "e.g i.e mt ft al jan feb apr aug sept oct nov dec"
    ),
    "de": (
        "hr fr dr prof st nr bd abb abs art aufl bsp bzw ca d.h evtl ggf geb gest hrsg inkl "
        "kap max min mind mio mrd o.ä sog str tel u.a u.ä usf v.a vgl z.b z.t zzgl "
        "jan feb apr aug sept okt nov dez ing dipl"
    ),
    "fr": (
        "m mm mme mmes mlle mlles dr pr st ste av bd p pp fig cf ex env éd vol chap art n° "
        "janv févr avr juil sept oct nov déc c.-à-d p.ex"
    ),
    "es": (
        "sr sra sres sras srta dr dra prof ud uds d dña st sta av avda pág págs fig núm cf p.ej "
        "vol cap art aprox ene feb abr ago sept oct nov dic"
    ),
    "it": (
        "sig sig.ra sigg dott dott.ssa prof prof.ssa ing avv on st p pp pag fig cfr vol cap art "
        "es ca gen febb apr ago sett ott nov dic"
    ),
    "nl": (
        "dhr mevr mw dr prof ir ing st nr blz bijv bv ca d.w.z fig jl m.b.t o.a t.a.v vgl "
        "jan feb apr aug sept okt nov dec"
    ),
    "pt": (
        "sr sra srs sras dr dra prof profa av pág págs fig núm nº cf p.ex vol cap art aprox "
        "jan fev abr ago set out nov dez"
    ),
    "cs": "p pí sl dr ing mgr prof doc č čl odst str tzv např tj resp cca",
    "pl": "p dr prof inż mgr ul al nr str np tzw tj ok wg red św",
    "ru": "г гг им ул д кв стр рис т.е т.н см ср напр проф акад",
}

# Languages that write ordinal numbers with a dot: the 3rd of May is "3. Mai".
ORDINAL_DOT = frozenset(
    {"bs", "cs", "da", "de", "et", "fi", "fo", "hr", "hu", "is", "lb", "lt", "lv", "nb", "nn", "no",
     "pl", "sk", "sl", "sr", "sv", "tr"}
)  # fmt: skip

# Abbreviations only before a number: "no." is also a word.
BEFORE_NUMBERS = frozenset({"no", "nos", "p", "s", "art"})

# Sentence-final marks of scripts without spaces.
SPACELESS = "。｡！？．"
MARKS = ".!?…؟।॥۔։។"
CLOSING = "\"'”’»›“‘)\\]}」』）】》〉"
OPENING = " \"'“‘„‚«‹([{¿¡「『（【《〈–—-*•"

# Possessive quantifiers (++) never backtrack, so a megabyte of dots takes linear time.
BOUNDARY = re.compile(
    rf"(?P<spaceless>[{SPACELESS}]++[”’」』）】》〉]*+)(?P<gap1>\s*+)"
    rf"|(?<![{MARKS}])(?P<mark>[{MARKS}]++)(?:\s?[»›]|[{CLOSING}])*+(?P<gap2>\s++)"
    r"|(?P<blank>\n[^\S\n]*+\n\s*+)"
)
LINE_BREAK = re.compile(r"\n\s*+")
# Most characters of a sentence that is translated whole, and of the pieces of a longer one.
LONGEST_SENTENCE, PIECE = 2_000, 500
PAUSE = re.compile(r"[,;:–—](?=\s)\s|[、，；：]")
SPACE = re.compile(r"\s")
SPACES = re.compile(r"\s+")
LAST_WORD = re.compile(r"[^\s" + re.escape("\"'“‘„«‹([{¿¡/") + r"]*\Z")
LONGEST_WORD = 40
INITIAL = re.compile(r"(?:[^\W\d_]\.-?)*[^\W\d_]")
ITEM = re.compile(r"(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})(?:\.\d{1,3})*")


class SplitSentence(NamedTuple):
    """A sentence, and the white space between it and the next one."""

    text: str
    gap: str


def split_sentences(
    text: str, *, language: str = "", hard_breaks: bool = False, longest: int | None = None
) -> list[SplitSentence]:
    """Return the sentences of a text; sentences and gaps together are the whole text.

    `language` is a code such as "de"; without it the abbreviations of all languages count. A line
    break ends a sentence only with `hard_breaks`. White space before the first sentence is the gap
    of an empty sentence. A sentence of more than `longest` characters is cut into pieces.
    """
    breaks = [match.span() for match in LINE_BREAK.finditer(text)] if hard_breaks else []
    lines = _cut(text, breaks) if hard_breaks else [SplitSentence(text, "")]
    found = [sentence for line in lines for sentence in _of_line(line, language)]
    if longest is None:
        return found
    return [
        piece
        for sentence in found
        for piece in ([sentence] if len(sentence.text) <= longest else _pieces(sentence))
    ]


def _pieces(sentence: SplitSentence) -> list[SplitSentence]:
    """Return the pieces of a sentence that is too long: cut where it pauses, if it does.

    A word is never cut, except in scripts without spaces.
    """
    text = sentence.text
    pieces, start = [], 0
    while len(text) - start > PIECE:
        window = text[start : start + PIECE]
        places = [*PAUSE.finditer(window, PIECE // 2)] or [*SPACE.finditer(window, 1)]
        if places:
            end = start + places[-1].end()
        elif _is_wide(text[start]):
            end = start + PIECE
        else:
            space = SPACE.search(text, start + PIECE)
            end = space.start() if space else len(text)
        piece = text[start:end].rstrip()
        gap = SPACES.match(text, start + len(piece))
        after = gap.end() if gap else end
        pieces.append(SplitSentence(piece, text[start + len(piece) : after]))
        start = after
    last = SplitSentence(text[start:], sentence.gap)
    return [*pieces, last] if last.text else [*pieces[:-1], pieces[-1]._replace(gap=sentence.gap)]


def join_sentences(sentences: Sequence[SplitSentence], translations: Sequence[str]) -> str:
    """Return the translations joined by the white space between the original sentences.

    Where there was none, as after a Chinese full stop, scripts with spaces get a space.
    """
    parts = []
    for number, (sentence, translation) in enumerate(zip(sentences, translations, strict=True), 1):
        gap = sentence.gap
        if not gap and number < len(sentences) and translation and not _is_wide(translation[-1]):
            gap = " "
        parts += [translation, gap]
    return "".join(parts)


def _of_line(line: SplitSentence, language: str) -> list[SplitSentence]:
    """Return the sentences of a line; the gap after the line goes to the last sentence."""
    *before, last = _cut(line.text, list(_boundaries(line.text, language.lower()[:2])))
    return [*before, SplitSentence(last.text, last.gap + line.gap)]


def _cut(text: str, gaps: Sequence[tuple[int, int]]) -> list[SplitSentence]:
    """Return the sentences between these gaps; any rest is the last sentence."""
    lead = len(text) - len(text.lstrip())
    sentences = [SplitSentence("", text[:lead])] if lead else []
    start = lead
    for gap_start, gap_end in gaps:
        sentence = text[start:gap_start].rstrip()
        if sentence:
            sentences.append(SplitSentence(sentence, text[start + len(sentence) : gap_end]))
            start = gap_end
    rest = text[start:]
    if rest or not sentences:
        kept = rest.rstrip()
        sentences.append(SplitSentence(kept, rest[len(kept) :]))
    return sentences


def _boundaries(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the white space after each sentence."""
    start = 0
    for match in BOUNDARY.finditer(text):
        if match["blank"] is not None:
            gap = match.span()
        elif match["spaceless"] is not None:
            gap = match.span("gap1")
        else:
            gap = match.span("gap2")
            if match["gap2"].count("\n") < 2 and not _ends(text, start, match, language):
                continue
        yield gap
        start = gap[1]


def _ends(text: str, start: int, match: re.Match[str], language: str) -> bool:
    """Return whether a sentence that began at `start` ends with this mark and white space."""
    following = text[match.end() : match.end() + LONGEST_WORD].lstrip(OPENING)
    if following and following[0].islower():
        return False
    if match["mark"] != ".":
        return True
    before = text[max(start, match.start() - LONGEST_WORD) : match.start()]
    word = LAST_WORD.search(before)
    last = word[0] if word else ""
    if ITEM.fullmatch(last) and not text[start : match.start() - len(last)].strip(OPENING):
        return False
    known = _abbreviations(language if language in ABBREVIATIONS else None)
    if last.lower() in BEFORE_NUMBERS and following[:1].isdigit():
        return False
    if last.lower() in known or (INITIAL.fullmatch(last) and last[-1].isupper()):
        return False
    return not (language in ORDINAL_DOT and last.isdigit() and len(last) <= 2)


@cache
def _abbreviations(language: str | None) -> frozenset[str]:
    """Return the abbreviations of a language, or of all languages if it is not known."""
    texts = ABBREVIATIONS.values() if language is None else [ABBREVIATIONS[language]]
    return frozenset(word for text in texts for word in text.split())


def _is_wide(letter: str) -> bool:
    """Return whether a letter belongs to a script without spaces between words."""
    return unicodedata.east_asian_width(letter) in "WF"
