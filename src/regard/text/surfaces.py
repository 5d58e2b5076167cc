"""The text that each piece adds: which word it belongs to, and how a person should read it."""

from __future__ import annotations

from collections.abc import Sequence

# Pictures of whitespace, so that a heat map's labels and a terminal can show it.
VISIBLE = str.maketrans({" ": "␣", "\t": "⇥", "\n": "⏎", "\r": "␍", "\u00a0": "⍽"})


def words_of_surfaces(surfaces: Sequence[str]) -> list[int]:
    """Return for each piece the index of the whitespace-separated word that it belongs to.

    `surfaces` are the stretches of text that the pieces add, in order. A piece belongs to the word
    that its first letter is in; whitespace by itself to the word that follows, and at the end of
    the text to the last word. A piece that adds nothing (a special symbol, the second byte of a
    letter) belongs to the word it stands in.
    """
    words = []
    word, inside = -1, False
    for surface in surfaces:
        first = None
        for letter in surface:
            if letter.isspace():
                inside = False
            elif not inside:
                word, inside = word + 1, True
            if inside and first is None:
                first = word
        if first is None:
            first = word if inside else word + 1
        words.append(first)
    return [min(number, max(word, 0)) for number in words]


def visible(surface: str) -> str:
    """Return a piece's text with its whitespace made visible."""
    return surface.translate(VISIBLE)


def surfaces_of_bytes(pieces: Sequence[bytes]) -> list[str]:
    """Return the text that each piece adds; a letter spelled in bytes belongs to its first byte."""
    surfaces: list[str] = []
    position = 0
    text = b"".join(pieces)
    for piece in pieces:
        end = position + len(piece)
        start = position
        while start < end and text[start] & 0xC0 == 0x80:  # a byte that continues a letter
            start += 1
        while start < end < len(text) and text[end] & 0xC0 == 0x80:
            end += 1
        surfaces.append(text[start:end].decode("utf-8", errors="replace"))
        position += len(piece)
    return surfaces
