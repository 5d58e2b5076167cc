"""Unknown words of a translation, replaced by the source words that they look at."""

from __future__ import annotations

from collections.abc import Sequence

from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.recipes.attention_map import AttentionMap


def with_source_words(
    text: str, tokens: Sequence[int], *, source: str, attention: AttentionMap | None
) -> str:
    """Return the text with the most attended source word for each unknown symbol.

    Where there is no attention, or the source has no words, the text stays as it is.
    """
    mark = SPECIALS[UNKNOWN]
    places = [place for place, token in enumerate(tokens) if token == UNKNOWN]
    parts = text.split(mark)
    if not places or attention is None or len(parts) != len(places) + 1:
        return text
    written = [parts[0]]
    for place, part in zip(places, parts[1:], strict=True):
        written += [_most_attended(place, source, attention) or mark, part]
    return "".join(written)


def _most_attended(place: int, source: str, attention: AttentionMap) -> str:
    """Return the source word, or where symbols are letters the letter, that has most weight."""
    weights = attention.weights[place, :-1]  # the last column is the end mark
    if not len(weights):
        return ""
    best = int(weights.argmax())
    if len(weights) == len(source):
        return source[best]
    words = source.split()
    word = attention.source_words[best]
    return words[word] if 0 <= word < len(words) else ""
