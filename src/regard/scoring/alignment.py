"""Word alignments: derived from attention, read from gold files, and compared by error rate.

A link is a pair (source word, target word), counted from 0.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

from regard.base.errors import RegardError, SettingsError
from regard.scoring.measures import Score

Link: TypeAlias = tuple[int, int]
Links: TypeAlias = Collection[Link]

LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


class GoldLinks(NamedTuple):
    """Gold links of one sentence pair; every sure link is also a possible one."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def best_links(word_weights: Float[np.ndarray, "target source"]) -> frozenset[Link]:
    """Return a link from each target word to the source word that it attends to most.

    Ties go to the first. A target word whose whole weight is on left-out pieces has no link.
    """
    if word_weights.shape[1] == 0:
        return frozenset()
    best = word_weights.argmax(axis=1)
    return frozenset(
        (int(source), target)
        for target, source in enumerate(best)
        if word_weights[target, source] > 0
    )


def alignment_error_rate(
    hypothesis: Sequence[Links],
    sure: Sequence[Links],
    possible: Sequence[Links] | None = None,
) -> Score:
    """Return the alignment error rate of a corpus, in percent (Och & Ney 2003, eq. 18).

    Counts are summed over all sentences before they are divided. Without `possible`, the possible
    links are the sure ones. Precision is measured on possible links and recall on sure ones.
    """
    gold_possible = sure if possible is None else possible
    if not len(hypothesis) == len(sure) == len(gold_possible):
        raise RegardError(
            f"alignments of {len(hypothesis)} sentences cannot be compared with gold of "
            f"{len(sure)} (sure) and {len(gold_possible)} (possible) sentences."
        )
    if not hypothesis:
        raise RegardError("there is nothing to compare: no alignments and no gold.")

    links = sure_links = links_in_sure = links_in_possible = 0
    for one_hypothesis, one_sure, one_possible in zip(hypothesis, sure, gold_possible, strict=True):
        a, s = frozenset(one_hypothesis), frozenset(one_sure)
        p = s | frozenset(one_possible)
        links += len(a)
        sure_links += len(s)
        links_in_sure += len(a & s)
        links_in_possible += len(a & p)

    # AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    agreement = _share(links_in_sure + links_in_possible, links + sure_links)
    return Score(
        name="AER",
        value=100.0 * (1.0 - agreement),
        signature=f"gold:{'sure' if possible is None else 'sure+possible'}|sum:corpus",
        detail={
            "precision": 100.0 * _share(links_in_possible, links),
            "recall": 100.0 * _share(links_in_sure, sure_links),
            "links": links,
            "sure_links": sure_links,
            "links_in_sure": links_in_sure,
            "links_in_possible": links_in_possible,
            "sentences": len(hypothesis),
        },
    )


def parse_gold(line: str, *, first: int = 1) -> GoldLinks:
    """Return the links of a gold line: `i-j` is sure, `ipj` possible; words count from `first`."""
    sure, possible = set(), set()
    for item in line.split():
        match = LINK.fullmatch(item)
        if match is None:
            raise RegardError(
                f"'{item}' is not an alignment link. Expected i-j (sure) or ipj (possible)."
            )
        link = (int(match[1]) - first, int(match[3]) - first)
        if min(link) < 0:
            raise RegardError(f"alignment link '{item}' lies before the first word, {first}.")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(sure=frozenset(sure), possible=frozenset(possible))


def parse_links(line: str, *, first: int = 0) -> frozenset[Link]:
    """Return the links of a line in Pharaoh format (`0-0 1-2`); words count from `first`."""
    gold = parse_gold(line, first=first)
    if gold.possible != gold.sure:
        raise RegardError(
            "a line of alignments marks links as possible (ipj). Only gold may; expected i-j."
        )
    return gold.sure


def format_links(links: Links) -> str:
    """Return links as a line in Pharaoh format, in the order of the source words."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def _share(part: int, whole: int) -> float:
    """Return part / whole, or 1 if the whole is 0."""
    return part / whole if whole else 1.0


# Horizontal and vertical neighbours first, then diagonal ones (Koehn et al. 2003, section 4).
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
            f"unknown way to symmetrise alignments {method!r}. Choose one of: {', '.join(METHODS)}."
        )
    return METHODS[method](frozenset(forward), frozenset(backward))


def symmetrise_all(
    forward: Sequence[Links], backward: Sequence[Links], *, method: str = "grow-diag-final-and"
) -> list[frozenset[Link]]:
    """Return one alignment from two for each sentence pair."""
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
