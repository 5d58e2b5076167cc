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
            places.setdefault(cause, []).append(index)
    links = {
        (place, index)
        for index, token in enumerate(target)
        for cause in token.causes
        for place in places.get(cause, ())
    }
    return tuple(sorted(links))


def antecedents(source: Sequence[Token]) -> Links:
    """Return (pronoun, last word of the noun that it stands for) in words of the source."""
    last = {cause: index for index, token in enumerate(source) for cause in token.causes}
    return tuple(
        (index, last[node.antecedent, "noun"])
        for index, token in enumerate(source)
        for node, role in token.causes
        if isinstance(node, Pronoun) and node.antecedent is not None
    )
