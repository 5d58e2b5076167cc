"""Automata for a required opening and forbidden words, however the text is split into tokens.

A `CharacterAutomaton` reads characters, a `TokenAutomaton` reads the tokens of one vocabulary, and
a `BatchAutomaton` follows the rows of a search, each in the automaton of its sentence.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import SettingsError
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import END
from regard.compute.device import Movable, on_host
from regard.decoding.search import IMPOSSIBLE

DEAD = 0
# Classes of characters that no phrase has: those of words, and all others.
OTHER_WORD_CHARACTER, OTHER_CHARACTER = 0, 1


def is_word_character(character: str) -> bool:
    """Return whether a character belongs to a word, as digits and underscores do."""
    return character.isalnum() or character in "_\ufffd"


class _State(NamedTuple):
    """How much of the opening is written, and which forbidden phrases have begun."""

    opened: int
    begun: frozenset[tuple[int, int]]  # phrase, and how many of its characters are written
    in_word: bool


class CharacterAutomaton:
    """Reads text character by character; the first state is DEAD, the second the start.

    A forbidden phrase counts only as whole words: "cat" is not found in "category".
    """

    def __init__(self, *, opening: str = "", forbidden: Sequence[str] = ()):
        self._opening = opening
        self._forbidden = [phrase for phrase in forbidden if phrase]
        self._starting: dict[str, list[int]] = {}  # the phrases that begin with a character
        for number, phrase in enumerate(self._forbidden):
            self._starting.setdefault(phrase[0], []).append(number)
        known = sorted(set(opening).union(*self._forbidden))
        self._class = {
            character: number for number, character in enumerate(known, OTHER_CHARACTER + 1)
        }
        self._examples = ["\ufffd", "\x00", *known]  # one character of each class
        self.table: NDArray[np.int32]
        """The next state for each state and class of characters."""
        self.final: NDArray[np.bool_]
        """Whether the text may end in each state."""
        self._explore()

    def classes(self, text: str) -> list[int]:
        """Return the class of each character."""
        return [
            self._class.get(
                character,
                OTHER_WORD_CHARACTER if is_word_character(character) else OTHER_CHARACTER,
            )
            for character in text
        ]

    def _explore(self) -> None:
        """Number the reachable states and tabulate their transitions."""
        start = _State(0, frozenset(), in_word=False)
        numbers = {start: DEAD + 1}
        queue, rows = [start], [[DEAD] * len(self._examples)]
        for state in queue:  # grows while it is read
            row = []
            for number, character in enumerate(self._examples):
                after = self._after(state, character, known=number > OTHER_CHARACTER)
                if after is not None and after not in numbers:
                    numbers[after] = len(numbers) + 1
                    queue.append(after)
                row.append(DEAD if after is None else numbers[after])
            rows.append(row)
        self.table = np.array(rows, dtype=np.int32)
        self.final = np.array([False, *(self._may_end(state) for state in queue)])

    def _after(self, state: _State, character: str, *, known: bool) -> _State | None:
        """Return the state after one more character, or None if it is not allowed."""
        opened = state.opened
        if opened < len(self._opening):
            if known and character == self._opening[opened]:
                opened += 1
            elif opened or character != " ":  # the space before the first word is not written
                return None
        in_word, begun = is_word_character(character), set()
        for phrase, count in state.begun:
            text = self._forbidden[phrase]
            if count == len(text):
                if not in_word:
                    return None
            elif known and character == text[count]:
                begun.add((phrase, count + 1))
        if known and not (state.in_word and in_word):
            begun.update((phrase, 1) for phrase in self._starting.get(character, ()))
        if any(self._is_complete(*some) for some in begun):
            return None
        return _State(opened, frozenset(begun), in_word)

    def _is_complete(self, phrase: int, count: int) -> bool:
        """Return whether the phrase is complete whatever follows; a word may still go on."""
        text = self._forbidden[phrase]
        return count == len(text) and not is_word_character(text[-1])

    def _may_end(self, state: _State) -> bool:
        complete = any(count == len(self._forbidden[phrase]) for phrase, count in state.begun)
        return state.opened == len(self._opening) and not complete


# States times tokens: a larger table would take gigabytes.
MOST_ENTRIES = 60_000_000
FAR = 30_000  # steps to an end that cannot be reached


class TokenAutomaton:
    """The next state for each state and token, and how many tokens then lead to an end."""

    following: Int[Tensor, "states vocab"]
    steps: Int[Tensor, "states vocab"]
    joins: Bool[Tensor, "vocab"]
    """Which tokens continue the word before them."""

    def __init__(
        self, surfaces: Sequence[str], *, opening: str = "", forbidden: Sequence[str] = ()
    ):
        """Take the text that each token adds, the opening of the text and its forbidden words."""
        characters = CharacterAutomaton(opening=opening, forbidden=forbidden)
        states = len(characters.table)
        if states * len(surfaces) > MOST_ENTRIES:
            raise SettingsError(
                f"{len(forbidden)} forbidden words are too many for one search: they take "
                f"{states * len(surfaces):,} table entries, and {MOST_ENTRIES:,} is the most."
            )
        following = _by_token(characters, surfaces)
        if opening or forbidden:
            # A token without text may change how the next one is joined to the text.
            silent = [n for n, surface in enumerate(surfaces) if n > END and not surface]
            following[:, silent] = DEAD
        distances = _distances(following, characters.final)
        steps = distances[following]
        steps[:, END] = np.where(characters.final, 0, FAR)
        self.following = torch.from_numpy(following)
        self.steps = torch.from_numpy(steps)
        self.joins = _joins(surfaces)

    def __getstate__(self) -> dict[str, NDArray[Any]]:
        """Return arrays: tensors would be sent to other processes through open files."""
        return {name: tensor.numpy() for name, tensor in vars(self).items()}

    def __setstate__(self, state: dict[str, NDArray[Any]]) -> None:
        for name, array in state.items():
            setattr(self, name, torch.from_numpy(array))


def _by_token(characters: CharacterAutomaton, surfaces: Sequence[str]) -> NDArray[np.int32]:
    """Return the next state for each state and token."""
    classes = [characters.classes(surface) for surface in surfaces]
    lengths = np.array([len(row) for row in classes])
    padded = np.zeros((len(classes), max(1, int(lengths.max()))), dtype=np.int64)
    for number, row in enumerate(classes):
        padded[number, : len(row)] = row
    states = np.arange(len(characters.table), dtype=np.int32)
    following = np.repeat(states[:, None], len(classes), axis=1)
    for place in range(padded.shape[1]):
        longer = np.flatnonzero(lengths > place)
        following[:, longer] = characters.table[following[:, longer], padded[longer, place]]
    return following


def _distances(following: NDArray[np.int32], final: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Return how many tokens, end mark included, the shortest output from each state has."""
    distances = np.where(final, 1, FAR).astype(np.int16)
    usable = np.ones(following.shape[1], dtype=bool)
    usable[: END + 1] = False  # special tokens have no text
    while True:
        reached = np.minimum(distances[following[:, usable]].min(axis=1, initial=FAR) + 1, FAR)
        nearer = np.minimum(distances, reached).astype(np.int16)
        nearer[DEAD] = FAR
        if np.array_equal(nearer, distances):
            return distances
        distances = nearer


def _joins(surfaces: Sequence[str]) -> Bool[Tensor, "vocab"]:
    """Return which tokens begin inside a word; none if a space is always a token of its own."""
    marked = any(len(s) > 1 and s[0] == " " and is_word_character(s[1]) for s in surfaces)
    return torch.tensor([marked and s != "" and is_word_character(s[0]) for s in surfaces])


class BatchAutomaton(Movable):
    """Follows each row in the automaton of its sentence; without one, all text is allowed."""

    def __init__(self, automata: Sequence[TokenAutomaton | None], *, vocab: int):
        free = None if all(automata) else TokenAutomaton(["?"] * vocab)
        each = [some or free for some in automata]
        different = list({id(some): some for some in each if some is not None}.values())
        self.any = any(automata)
        sizes = [len(some.following) for some in different]
        first = {id(some): sum(sizes[:n]) for n, some in enumerate(different)}
        self.starts = torch.tensor([first[id(some)] + DEAD + 1 for some in each])
        self._following = _joined([some.following + first[id(some)] for some in different])
        self._steps = _joined([some.steps for some in different])
        self._joins = torch.stack([some.joins for some in different])
        self._of_state = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))

    def follow(
        self, states: Int[Tensor, "rows"], tokens: Int[Tensor, "rows"]
    ) -> Int[Tensor, "rows"]:
        """Return the state of each row after its next token."""
        return self._following[states, tokens].long() if self.any else states

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        states: Int[Tensor, "rows"],
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Ban tokens after which no allowed output can be finished within the limit."""
        if self.any:
            values.masked_fill_(self._steps[states] > remaining[:, None], IMPOSSIBLE)

    def ban_joins(
        self,
        values: Float[Tensor, "rows vocab"],
        states: Int[Tensor, "rows"],
        *,
        after: Bool[Tensor, "rows"],
    ) -> None:
        """Ban tokens that would continue the last word, in these rows."""
        if self.any and (not on_host(after) or bool(after.any())):
            values.masked_fill_(self._joins[self._of_state[states]] & after[:, None], IMPOSSIBLE)

    def needs(self, states: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
        """Return how many tokens, end mark included, must at least follow."""
        if not self.any:
            return torch.ones_like(states)
        return self._steps[states].amin(dim=1).long() + 1

    def is_dead(self, states: Int[Tensor, "rows"]) -> bool:
        """Return whether no allowed output can be finished from here."""
        return self.any and bool((self._steps[states].amin(dim=1) >= FAR).any())


def _joined(tables: Sequence[Tensor]) -> Tensor:
    return tables[0] if len(tables) == 1 else torch.cat(list(tables))
