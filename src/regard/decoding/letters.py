"""An automaton over letters: what a text must begin with, and which words it may not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEAD = 0
OTHER_LETTER, OTHER_SIGN = 0, 1  # classes of letters and signs that no phrase has


def is_word_letter(letter: str) -> bool:
    """Return whether a letter belongs to a word, as digits and underscores do."""
    return letter.isalnum() or letter in "_\ufffd"


class _Place(NamedTuple):
    """A state: how much of the opening is written, and what could become a forbidden phrase."""

    opened: int
    begun: frozenset[tuple[int, int]]  # phrase, and how many of its letters are there
    in_word: bool


class LetterAutomaton:
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
            self._class.get(letter, OTHER_LETTER if is_word_letter(letter) else OTHER_SIGN)
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
        in_word, begun = is_word_letter(letter), set()
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
        return count == len(text) and not is_word_letter(text[-1])

    def _may_end(self, place: _Place) -> bool:
        complete = any(count == len(self._forbidden[phrase]) for phrase, count in place.begun)
        return place.opened == len(self._opening) and not complete
