"""The automaton over characters: required beginnings and forbidden words, in any tokenisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import SettingsError
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import END
from regard.decoding.search import IMPOSSIBLE

DEAD = 0
OTHER_LETTER, OTHER_SIGN = 0, 1  # classes of letters and signs that no phrase has


def is_word_character(letter: str) -> bool:
    """Return whether a letter belongs to a word, as digits and underscores do."""
    return letter.isalnum() or letter in "_\ufffd"


class _Place(NamedTuple):
    """A state: how much of the opening is written, and what could become a forbidden phrase."""

    opened: int
    begun: frozenset[tuple[int, int]]  # phrase, and how many of its letters are there
    in_word: bool


class CharacterAutomaton:
    """Follows text letter by letter; the first state is DEAD, the second the start.

    A forbidden phrase counts only as whole words: "cat" does not stand in "category".
    """

    def __init__(self, *, opening: str = "", forbidden: Sequence[str] = ()):
        self._opening = opening
        self._forbidden = [phrase for phrase in forbidden if phrase]
        self._starting: dict[str, list[int]] = {}  # the phrases that begin with a letter
        for number, phrase in enumerate(self._forbidden):
            self._starting.setdefault(phrase[0], []).append(number)
        known = sorted(set(opening).union(*self._forbidden))
        self._class = {letter: number for number, letter in enumerate(known, OTHER_SIGN + 1)}
        self._letters = ["\ufffd", "\x00", *known]  # one of each class
        self.table: NDArray[np.int32]
        """The state after each state and class of letters."""
        self.final: NDArray[np.bool_]
        """Whether the text may end in each state."""
        self._explore()

    def classes(self, text: str) -> list[int]:
        """Return the class of each letter."""
        return [
            self._class.get(letter, OTHER_LETTER if is_word_character(letter) else OTHER_SIGN)
            for letter in text
        ]

    def _explore(self) -> None:
        """Number the states that can be reached, and note where every class leads."""
        start = _Place(0, frozenset(), in_word=False)
        numbers = {start: DEAD + 1}
        waiting, rows = [start], [[DEAD] * len(self._letters)]
        for place in waiting:  # grows as it is read
            row = []
            for number, letter in enumerate(self._letters):
                after = self._after(place, letter, known=number > OTHER_SIGN)
                if after is not None and after not in numbers:
                    numbers[after] = len(numbers) + 1
                    waiting.append(after)
                row.append(DEAD if after is None else numbers[after])
            rows.append(row)
        self.table = np.array(rows, dtype=np.int32)
        self.final = np.array([False, *(self._may_end(place) for place in waiting)])

    def _after(self, place: _Place, letter: str, *, known: bool) -> _Place | None:
        """Return the state after one letter more, or None if it may not come."""
        opened = place.opened
        if opened < len(self._opening):
            if known and letter == self._opening[opened]:
                opened += 1
            elif opened or letter != " ":  # the space before the first word is not written
                return None
        in_word, begun = is_word_character(letter), set()
        for phrase, count in place.begun:
            text = self._forbidden[phrase]
            if count == len(text):
                if not in_word:
                    return None
            elif known and letter == text[count]:
                begun.add((phrase, count + 1))
        if known and not (place.in_word and in_word):
            begun.update((phrase, 1) for phrase in self._starting.get(letter, ()))
        if any(self._is_complete(*some) for some in begun):
            return None
        return _Place(opened, frozenset(begun), in_word)

    def _is_complete(self, phrase: int, count: int) -> bool:
        """Return whether the phrase is there whatever follows; after a letter it may go on."""
        text = self._forbidden[phrase]
        return count == len(text) and not is_word_character(text[-1])

    def _may_end(self, place: _Place) -> bool:
        complete = any(count == len(self._forbidden[phrase]) for phrase, count in place.begun)
        return place.opened == len(self._opening) and not complete


# Of all states and symbols together: above it, the table would take gigabytes.
MOST_ENTRIES = 60_000_000
FAR = 30_000  # steps to an end that cannot be reached


class Spelling:
    """For each state and symbol, the next state, and how many symbols then lead to an end."""

    def __init__(
        self, surfaces: Sequence[str], *, opening: str = "", forbidden: Sequence[str] = ()
    ):
        """Take what each symbol adds to the text, what it begins with and what it never holds."""
        letters = CharacterAutomaton(opening=opening, forbidden=forbidden)
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


def _by_symbol(letters: CharacterAutomaton, surfaces: Sequence[str]) -> NDArray[np.int32]:
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
    marked = any(len(s) > 1 and s[0] == " " and is_word_character(s[1]) for s in surfaces)
    return torch.tensor([marked and s != "" and is_word_character(s[0]) for s in surfaces])


class Spelled:
    """Follows the spelling of each row; a sentence without one may spell anything."""

    def __init__(self, spellings: Sequence[Spelling | None], *, vocab: int):
        free = None if all(spellings) else Spelling(["?"] * vocab)
        each = [some or free for some in spellings]
        different = list({id(some): some for some in each if some is not None}.values())
        self.any = any(spellings)
        sizes = [len(some.following) for some in different]
        first = {id(some): sum(sizes[:n]) for n, some in enumerate(different)}
        self.starts = torch.tensor([first[id(some)] + DEAD + 1 for some in each])
        self._following = _joined([some.following + first[id(some)] for some in different])
        self._steps = _joined([some.steps for some in different])
        self._glued = torch.stack([some.glued for some in different])
        self._of_state = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))

    def follow(
        self, states: Int[Tensor, "rows"], symbols: Int[Tensor, "rows"]
    ) -> Int[Tensor, "rows"]:
        """Return the state of each row after its next symbol."""
        return self._following[states, symbols].long() if self.any else states

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        states: Int[Tensor, "rows"],
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Ban symbols after which no allowed output can be finished in time."""
        if self.any:
            values.masked_fill_(self._steps[states] > remaining[:, None], IMPOSSIBLE)

    def ban_glued(
        self,
        values: Float[Tensor, "rows vocab"],
        states: Int[Tensor, "rows"],
        *,
        after: Bool[Tensor, "rows"],
    ) -> None:
        """Ban symbols that would lengthen the last word, in these rows."""
        if self.any and bool(after.any()):
            values.masked_fill_(self._glued[self._of_state[states]] & after[:, None], IMPOSSIBLE)

    def needs(self, states: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
        """Return how many symbols, end mark included, must at least follow."""
        if not self.any:
            return torch.ones_like(states)
        return self._steps[states].amin(dim=1).long() + 1

    def is_dead(self, states: Int[Tensor, "rows"]) -> bool:
        """Return whether nothing can be finished from here."""
        return self.any and bool((self._steps[states].amin(dim=1) >= FAR).any())


def _joined(tables: Sequence[Tensor]) -> Tensor:
    return tables[0] if len(tables) == 1 else torch.cat(list(tables))
