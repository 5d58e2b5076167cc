"""What a person asks of a translation, turned into constraints on its symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from regard.base.errors import SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.decoding.constraints.automaton import Spelling
from regard.decoding.constraints.phrases import Constraints

KEPT_SPELLINGS = 64


@dataclass(frozen=True)
class TextConstraints:
    """What the translation of one sentence must and must not say.

    The prefix is what it begins with; its last word may be unfinished, unless a space follows.
    Required and forbidden are words or phrases, as they should or should not be written.
    """

    prefix: str = ""
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.forbidden)


class ConstraintEncoder:
    """Turns words into constraints in the symbols of one target vocabulary."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self._spellings: dict[tuple[str, tuple[str, ...]], Spelling] = {}

    def encode(
        self, wanted: TextConstraints, *, copied: Sequence[str] = (), room: int = 0
    ) -> Constraints:
        """Return the constraints of one sentence.

        `copied` are words that should be kept if that is possible: those that the vocabulary cannot
        write, and those beyond `room` symbols, are left out.
        """
        prefix, opening = self._prefix(wanted.prefix)
        required = [self._phrase(word) for word in wanted.required]
        room -= len(prefix) + sum(map(len, required))
        for word in copied:
            ids = self._symbols(word)
            if ids is not None and len(ids) <= room:
                required.append(ids)
                room -= len(ids)
        spelled = bool(opening or wanted.forbidden or required)
        return Constraints(
            prefix=prefix,
            required=tuple(dict.fromkeys(required)),
            spelling=self._spelling(opening, wanted.forbidden) if spelled else None,
        )

    def _prefix(self, text: str) -> tuple[tuple[int, ...], str]:
        """Return the symbols of the finished words, and the whole text if a word is unfinished.

        The unfinished word is only spelled, so that the search may cut it into symbols as it likes.
        """
        text = text.lstrip()
        whole, space, _ = text.rpartition(" ")
        finished = text.rstrip() if text != text.rstrip() else whole.rstrip() if space else ""
        ids = self._symbols(finished) if finished else ()
        if ids is None:
            raise SettingsError(
                f"The prefix {finished!r} cannot be written: the vocabulary has no symbols for it."
            )
        return ids, text.rstrip() if finished != text.rstrip() else ""

    def _phrase(self, word: str) -> tuple[int, ...]:
        ids = self._symbols(word.strip())
        if not ids:
            raise SettingsError(
                f"The required word {word!r} cannot be written: the vocabulary has no symbols for "
                "it."
            )
        return ids

    def _symbols(self, text: str) -> tuple[int, ...] | None:
        """Return the symbols of a text, or None if they would not say just that."""
        ids = tuple(self.tokenizer.encode(text))
        return None if UNKNOWN in ids or self.tokenizer.decode(ids) != text else ids

    def _spelling(self, opening: str, forbidden: tuple[str, ...]) -> Spelling:
        """Return the automaton of what may be spelled; the same one for the same wishes."""
        key = (opening, forbidden)
        if key not in self._spellings:
            if len(self._spellings) >= KEPT_SPELLINGS:
                self._spellings.clear()
            self._spellings[key] = Spelling(self._surfaces, opening=opening, forbidden=forbidden)
        return self._spellings[key]

    @cached_property
    def _surfaces(self) -> list[str]:
        """What each symbol adds to a text: what it looks like behind another symbol."""
        decode, ordinary = self.tokenizer.decode, range(len(SPECIALS), self.tokenizer.size)
        letters = (number for number in ordinary if decode([number]).strip().isalnum())
        first = next(letters, UNKNOWN)
        before = len(decode([first]))
        unknown = decode([first, UNKNOWN])[before:]
        return ["", unknown, "", "", *(decode([first, number])[before:] for number in ordinary)]
