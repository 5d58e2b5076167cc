"""What is asked of translations: beginnings, required and forbidden words, terminology."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.base.errors import DataError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.corpora.lines import read_lines
from regard.decoding.constraints.automaton import Spelling
from regard.decoding.constraints.phrases import Constraints

# In this order: a URL may hold numbers, and a placeholder letters that look like a word.
VERBATIM = re.compile(
    r"""
      (?:https?|ftp)://[^\s<>"]*[^\s<>".,;:!?)\]}']      # URLs, without the full stop behind them
    | www\.[^\s<>"]*[^\s<>".,;:!?)\]}']
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                       # addresses
    | \{\{?[\w.:-]*\}?\}                                 # {name}, {0}, {{name}}
    | %(?:\([\w.]+\))?(?:\d+\$)?[sdif]\b                 # %s, %(name)s, %1$s
    | \$\{?\w+\}?                                        # $name, ${name}, $5
    | </?\w+/?>                                          # <b>, </b>, <br/>
    | __\w+__
    | (?<!\w)\d+(?:[.,:/-]\d+)*(?!\w)                    # numbers, dates and times
    """,
    re.VERBOSE,
)


def verbatim_words(text: str) -> list[str]:
    """Return placeholders, URLs, addresses and numbers, each once, in order."""
    return list(dict.fromkeys(VERBATIM.findall(text)))


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


TERMS = "a source term, a tab and its translation a line"


class Terminology:
    """Turns what is asked of all translations into what is asked of the one of a sentence.

    `terms` are source terms and their translations: where the one stands in a sentence, the other
    must stand in its translation.
    """

    def __init__(
        self,
        *,
        prefix: str = "",
        required: tuple[str, ...] = (),
        forbidden: tuple[str, ...] = (),
        terms: Mapping[str, str] | None = None,
    ):
        self._always = TextConstraints(prefix, required, forbidden)
        self._terms = {source.lower(): target for source, target in (terms or {}).items()}

    def __bool__(self) -> bool:
        return bool(self._always or self._terms)

    def of(self, text: str) -> TextConstraints:
        """Return what is asked of the translation of this sentence."""
        if not self._terms:
            return self._always
        found = dict.fromkeys(self._terms[m[0].lower()] for m in self._pattern.finditer(text))
        required = dict.fromkeys((*self._always.required, *found))
        return TextConstraints(self._always.prefix, tuple(required), self._always.forbidden)

    def to_dict(self) -> dict[str, object]:
        """Return plain values that tell these wishes from others."""
        always = self._always
        return {
            "prefix": always.prefix,
            "required": list(always.required),
            "forbidden": list(always.forbidden),
            "terms": self._terms,
        }

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Whole words; of terms that begin alike the longest is found."""
        longest_first = sorted(self._terms, key=len, reverse=True)
        return re.compile(
            rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE
        )


def read_terms(path: Path) -> dict[str, str]:
    """Read a list of terms: source term, tab, translation."""
    terms = {}
    for number, line in enumerate(read_lines(path, expected=TERMS), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) < 2 or not cells[0] or not cells[1]:
            raise DataError(
                "a term without a translation",
                path=path,
                line=number,
                remedy=f"The file should hold {TERMS}.",
            )
        terms[cells[0]] = cells[1]
    return terms
