"""Changes of texts that robust models should bear: case, typos, punctuation, markup and more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from random import Random

BothSides = tuple[str, str]
"""A source and its translation."""

TYPO_EVERY = 25  # letters, on average
# Rows of letters on a keyboard of the Latin alphabet.
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
TAGS = ("b", "i", "em", "u", "a", "g", "x1", "t2")
SYLLABLES = ("ba", "de", "fi", "ga", "ka", "lo", "ma", "ne", "ro", "sa", "ti", "vo", "yu", "zen")
COPYABLE = re.compile(r"[A-Z][\w'-]+|\d[\d.,:]*\d|\d")
STROKES = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "ı": "i"})


def changed_case(text: str, draw: Random) -> str:
    """Return a text in capitals, in small letters, or with a capital in every word."""
    chosen = draw.randrange(3)
    return (text.upper(), text.lower(), text.title())[chosen]


def with_typos(text: str, draw: Random) -> str:
    """Return a text with mistyped letters, one in some 25 and at least one."""
    letters = list(text)
    places = [place for place, letter in enumerate(text) if letter.isalpha()]
    if not places:
        return text
    for place in sorted(draw.sample(places, max(1, len(places) // TYPO_EVERY)), reverse=True):
        letter, kind = letters[place], draw.randrange(4)
        near = _beside(letter.lower())
        if kind == 0 and place + 1 < len(letters):
            letters[place : place + 2] = [letters[place + 1], letter]
        elif kind == 1 and len(letters) > 1:
            del letters[place]
        elif kind == 2 or not near:
            letters.insert(place, letter)
        else:
            typed = draw.choice(near)
            letters[place] = typed.upper() if letter.isupper() else typed
    return "".join(letters)


def _beside(letter: str) -> str:
    """Return the letters that are left and right of one on the keyboard."""
    row = next((row for row in KEYBOARD if letter in row), "")
    place = row.find(letter)
    return row[max(0, place - 1) : place] + row[place + 1 : place + 2]


def changed_punctuation(text: str, draw: Random) -> str:
    """Return a text with its marks left out, or with its last one doubled or added."""
    last = text.rstrip()
    ends = bool(last) and unicodedata.category(last[-1]).startswith("P")
    kind = draw.randrange(3)
    if kind == 0:
        kept = (" " if c in ",;:" else "" if unicodedata.category(c) == "Po" else c for c in last)
        return " ".join("".join(kept).split()) or text
    if ends:
        return last[:-1] if kind == 1 and len(last) > 1 else last + last[-1] * draw.randint(1, 2)
    return last + draw.choice((".", "!", " ."))


def without_diacritics(text: str, draw: Random | None = None) -> str:
    """Return a text with plain letters, as "uber" for "über"."""
    parts = unicodedata.normalize("NFD", text.translate(STROKES))
    plain = "".join(letter for letter in parts if unicodedata.category(letter) != "Mn")
    return unicodedata.normalize("NFC", plain)


def with_markup(texts: BothSides, draw: Random) -> BothSides:
    """Return both sides with the same tag around a word that is copied, or around all."""
    tag = draw.choice(TAGS)
    word = _copied_word(texts, draw)
    if word and draw.random() < 0.5:
        source, target = (text.replace(word, f"<{tag}>{word}</{tag}>", 1) for text in texts)
    else:
        source, target = (f"<{tag}>{text}</{tag}>" for text in texts)
    return source, target


def with_copied(texts: BothSides, draw: Random) -> BothSides:
    """Return both sides with another name or number: in place of a copied one, or at the end."""
    word = _copied_word(texts, draw)
    if word:
        made = _number(draw, len(word)) if word[0].isdigit() else _name(draw)
        source, target = (text.replace(word, made, 1) for text in texts)
    else:
        made = f"{_name(draw)} {_number(draw, draw.randint(1, 4))}"
        source, target = (f"{text} ({made})" for text in texts)
    return source, target


def _copied_word(texts: BothSides, draw: Random) -> str:
    """Return a name or number that both sides have once as a whole word; empty without one."""
    source, target = (COPYABLE.findall(text) for text in texts)
    shared = [word for word in source if source.count(word) == target.count(word) == 1]
    return draw.choice(shared) if shared else ""


def _number(draw: Random, digits: int) -> str:
    return str(draw.randrange(10 ** (min(digits, 9) - 1), 10 ** min(digits, 9)))


def _name(draw: Random) -> str:
    return "".join(draw.choice(SYLLABLES) for _ in range(draw.randint(2, 3))).capitalize()


# In the order in which they are applied: what both sides share comes before what spoils one.
OF_BOTH: Mapping[str, Callable[[BothSides, Random], BothSides]] = {
    "copied": with_copied,
    "markup": with_markup,
}
OF_SOURCE: Mapping[str, Callable[[str, Random], str]] = {
    "diacritics": without_diacritics,
    "case": changed_case,
    "typos": with_typos,
    "punctuation": changed_punctuation,
}
KINDS = ("joined", *OF_BOTH, *OF_SOURCE)


def perturbed(
    texts: BothSides, shares: Mapping[str, float], draw: Random, *, other: Callable[[], BothSides]
) -> BothSides:
    """Return a pair with each change at random, with the probability that is its share.

    `other` gives another pair, for lines that are joined.
    """
    if draw.random() < shares.get("joined", 0.0):
        first, second = texts, other()
        texts = (f"{first[0]} {second[0]}", f"{first[1]} {second[1]}")
    for name, change in OF_BOTH.items():
        if draw.random() < shares.get(name, 0.0):
            texts = change(texts, draw)
    source, target = texts
    for name, spoil in OF_SOURCE.items():
        if draw.random() < shares.get(name, 0.0):
            source = spoil(source, draw)
    return source, target
