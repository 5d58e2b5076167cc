"""Two alignments of the same sentence pair, one from each direction, made into one.

Both directions are given as links (source word, target word), counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from regard.base.errors import RegardError, SettingsError
from regard.scoring.alignment import Link, Links

# Beside a link first, then across its corners (Koehn et al. 2003, section 4).
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def symmetrise(
    forward: Links, backward: Links, *, method: str = "grow-diag-final-and"
) -> frozenset[Link]:
    """Return one alignment from two (Och & Ney 2003, section 6; Koehn et al. 2005).

    All methods but union begin with the links that both directions have. `grow-diag` adds links of
    either that touch one already there, if they give a word its first link. `final` then adds
    links of either direction that give one word its first link, `final-and` only those that do so
    for both words.
    """
    if method not in METHODS:
        raise SettingsError(
            f"{method!r} is no way to symmetrise alignments; known are: {', '.join(METHODS)}."
        )
    return METHODS[method](frozenset(forward), frozenset(backward))


def symmetrise_all(
    forward: Sequence[Links], backward: Sequence[Links], *, method: str = "grow-diag-final-and"
) -> list[frozenset[Link]]:
    """Return one alignment of each sentence pair from two."""
    if len(forward) != len(backward):
        raise RegardError(
            f"alignments of {len(forward)} sentences cannot be joined with those of "
            f"{len(backward)} sentences of the other direction."
        )
    return [
        symmetrise(one, other, method=method) for one, other in zip(forward, backward, strict=True)
    ]


def _grown(forward: frozenset[Link], backward: frozenset[Link]) -> set[Link]:
    """Grow the intersection towards the union, until nothing that touches it can be added."""
    union = forward | backward
    links = set(forward & backward)
    waiting = sorted(links)
    while waiting:
        source, target = waiting.pop(0)
        for down, right in NEIGHBOURS:
            near = (source + down, target + right)
            if near in union and near not in links and _is_new(near, links, both=False):
                links.add(near)
                waiting.append(near)
    return links


def _finished(links: set[Link], more: Iterable[Link], *, both: bool) -> set[Link]:
    """Add links whose words have none yet: both of them, or at least one."""
    for link in sorted(more):
        if link not in links and _is_new(link, links, both=both):
            links.add(link)
    return links


def _is_new(link: Link, links: set[Link], *, both: bool) -> bool:
    source_is_new = all(source != link[0] for source, _ in links)
    target_is_new = all(target != link[1] for _, target in links)
    return (source_is_new and target_is_new) if both else (source_is_new or target_is_new)


def _grow_diag_final(
    forward: frozenset[Link], backward: frozenset[Link], *, both: bool
) -> frozenset[Link]:
    links = _grown(forward, backward)
    for direction in (forward, backward):
        links = _finished(links, direction, both=both)
    return frozenset(links)


METHODS: dict[str, Callable[[frozenset[Link], frozenset[Link]], frozenset[Link]]] = {
    "intersection": lambda forward, backward: forward & backward,
    "union": lambda forward, backward: forward | backward,
    "grow-diag": lambda forward, backward: frozenset(_grown(forward, backward)),
    "grow-diag-final": lambda forward, backward: _grow_diag_final(forward, backward, both=False),
    "grow-diag-final-and": lambda forward, backward: _grow_diag_final(forward, backward, both=True),
}
