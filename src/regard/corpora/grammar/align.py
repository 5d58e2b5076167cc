"""Gold alignments: words of both sides that have a cause in common."""

from __future__ import annotations

from collections.abc import Sequence

from regard.corpora.grammar.realise import Cause, Token
from regard.corpora.grammar.tree import Pronoun

Links = tuple[tuple[int, int], ...]


def align(source: Sequence[Token], target: Sequence[Token]) -> Links:
    """Return (source word, target word) wherever both have a cause in common."""
    places: dict[Cause, list[int]] = {}
    for index, token in enumerate(source):
        for cause in token.causes:
            if cause in places:
                places[cause].append(index)
            else:
                places[cause] = [index]
    links = [
        (place, index)
        for index, token in enumerate(target)
        for cause in token.causes
        for place in places.get(cause, ())
    ]
    return tuple(sorted(set(links)))


def antecedents(source: Sequence[Token]) -> Links:
    """Return (pronoun, last word of the noun that it stands for) in words of the source."""
    found = []
    for index, token in enumerate(source):
        if token.text in ("it", "they"):
            ((node, _),) = token.causes
            if isinstance(node, Pronoun) and node.antecedent is not None:
                cause = (node.antecedent, "noun")
                noun = max(place for place, word in enumerate(source) if cause in word.causes)
                found.append((index, noun))
    return tuple(found)
