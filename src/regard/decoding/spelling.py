"""What the text of an output may say, in whatever symbols it is spelled.

A word can be cut into symbols in many ways, so what is forbidden or begun as text is followed
letter by letter: an automaton over letters, carried over to symbols by what each of them spells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import SettingsError
from regard.base.shapes import Bool, Int, Tensor
from regard.base.special_tokens import END
from regard.decoding.letters import DEAD, LetterAutomaton, is_word_letter

# Of all states and symbols together: above it, the table would take gigabytes.
MOST_ENTRIES = 60_000_000
FAR = 30_000  # steps to an end that cannot be reached


class Spelling:
    """For each state and symbol, the next state, and how many symbols then lead to an end."""

    def __init__(
        self, surfaces: Sequence[str], *, opening: str = "", forbidden: Sequence[str] = ()
    ):
        """Take what each symbol adds to the text, what it begins with and what it never holds."""
        letters = LetterAutomaton(opening=opening, forbidden=forbidden)
        states = len(letters.table)
        if states * len(surfaces) > MOST_ENTRIES:
            raise SettingsError(
                f"{len(forbidden)} forbidden words are too many for one search: they take "
                f"{states * len(surfaces):,} table entries, and {MOST_ENTRIES:,} is the most."
            )
        following = _by_symbol(letters, surfaces)
        if opening or forbidden:
            # A symbol that spells nothing may change how the next one is joined to the text.
            silent = [n for n, surface in enumerate(surfaces) if n > END and not surface]
            following[:, silent] = DEAD
        distances = _distances(following, letters.final)
        steps = distances[following]
        steps[:, END] = np.where(letters.final, 0, FAR)
        self.following: Int[Tensor, "states vocab"] = torch.from_numpy(following)
        self.steps: Int[Tensor, "states vocab"] = torch.from_numpy(steps)
        self.glued: Bool[Tensor, "vocab"] = _glued(surfaces)
        """Which symbols continue the word before them."""


def _by_symbol(letters: LetterAutomaton, surfaces: Sequence[str]) -> NDArray[np.int32]:
    """Return where each symbol leads from each state."""
    classes = [letters.classes(surface) for surface in surfaces]
    lengths = np.array([len(row) for row in classes])
    padded = np.zeros((len(classes), max(1, int(lengths.max()))), dtype=np.int64)
    for number, row in enumerate(classes):
        padded[number, : len(row)] = row
    states = np.arange(len(letters.table), dtype=np.int32)
    following = np.repeat(states[:, None], len(classes), axis=1)
    for place in range(padded.shape[1]):
        longer = np.flatnonzero(lengths > place)
        following[:, longer] = letters.table[following[:, longer], padded[longer, place]]
    return following


def _distances(following: NDArray[np.int32], final: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Return for each state how many symbols, end mark included, the shortest output needs."""
    distances = np.where(final, 1, FAR).astype(np.int16)
    usable = np.ones(following.shape[1], dtype=bool)
    usable[: END + 1] = False  # special symbols spell nothing
    while True:
        reached = np.minimum(distances[following[:, usable]].min(axis=1, initial=FAR) + 1, FAR)
        nearer = np.minimum(distances, reached).astype(np.int16)
        nearer[DEAD] = FAR
        if np.array_equal(nearer, distances):
            return distances
        distances = nearer


def _glued(surfaces: Sequence[str]) -> Bool[Tensor, "vocab"]:
    """Return which symbols begin with a letter; none where a space is always its own symbol."""
    marked = any(len(s) > 1 and s[0] == " " and is_word_letter(s[1]) for s in surfaces)
    return torch.tensor([marked and s != "" and is_word_letter(s[0]) for s in surfaces])
