"""Constraints on translations: prefixes, required and forbidden words, terminology."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.base.errors import DataError, SettingsError
from regard.base.protocols import Tokenizer
from regard.base.special_tokens import SPECIALS, UNKNOWN
from regard.corpora.lines import read_lines
from regard.decoding.constraints.automaton import TokenAutomaton
from regard.decoding.constraints.phrases import Constraints

# In this order, since a URL may hold numbers, and a placeholder may hold a word.
VERBATIM = re.compile(
    r"""
      (?:https?|ftp)://[^\s<>"]*[^\s<>".,;:!?)\]}']      # URLs, without a full stop at the end
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
    """Return the placeholders, URLs, addresses and numbers of a text, each once, in order."""
    return list(dict.fromkeys(VERBATIM.findall(text)))


MOST_AUTOMATA = 64  # that are kept for later sentences


@dataclass(frozen=True)
class TextConstraints:
    """What the translation of one sentence must begin with, must hold and must not hold.

    The last word of the prefix may be unfinished, unless a space follows it. Required and forbidden
    words or phrases are matched as they are written.
    """

    prefix: str = ""
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.forbidden)


class ConstraintEncoder:
    """Turns words into constraints on the tokens of one target vocabulary."""

    def __init__(self, tokenizer: Tokenizer):
        self.opening: tuple[int, ...] = getattr(tokenizer, "opening", ())
        """What every output begins with: the language tag of an imported model."""
        self.tokenizer: Tokenizer = getattr(tokenizer, "plain", tokenizer)
        self._automata: dict[tuple[str, tuple[str, ...]], TokenAutomaton] = {}

    def encode(
        self, wanted: TextConstraints, *, copied: Sequence[str] = (), room: int = 0
    ) -> Constraints:
        """Return the constraints of one sentence.

        `copied` are words that are required if possible: those that the vocabulary cannot write,
        and those beyond `room` tokens, are left out.
        """
        prefix, opening = self._prefix(wanted.prefix)
        required = [self._phrase(word) for word in wanted.required]
        room -= len(prefix) + sum(map(len, required))
        for word in copied:
            ids = self._tokens(word)
            if ids is not None and len(ids) <= room:
                required.append(ids)
                room -= len(ids)
        needs_automaton = bool(opening or wanted.forbidden or required)
        return Constraints(
            prefix=(*self.opening, *prefix),
            required=tuple(dict.fromkeys(required)),
            automaton=self._automaton(opening, wanted.forbidden) if needs_automaton else None,
        )

    def _prefix(self, text: str) -> tuple[tuple[int, ...], str]:
        """Return the tokens of the finished words, and the whole text if a word is unfinished.

        An unfinished word is left to the automaton, so that it can be split into any tokens.
        """
        text = text.lstrip()
        whole, space, _ = text.rpartition(" ")
        finished = text.rstrip() if text != text.rstrip() else whole.rstrip() if space else ""
        ids = self._tokens(finished) if finished else ()
        if ids is None:
            raise SettingsError(
                f"The prefix {finished!r} cannot be written: the vocabulary has no tokens for it."
            )
        return ids, text.rstrip() if finished != text.rstrip() else ""

    def _phrase(self, word: str) -> tuple[int, ...]:
        ids = self._tokens(word.strip())
        if not ids:
            raise SettingsError(
                f"The required word {word!r} cannot be written: the vocabulary has no tokens for "
                "it."
            )
        return ids

    def _tokens(self, text: str) -> tuple[int, ...] | None:
        """Return the tokens of a text, or None if they do not decode to the same text."""
        ids = tuple(self.tokenizer.encode(text))
        return None if UNKNOWN in ids or self.tokenizer.decode(ids) != text else ids

    def _automaton(self, opening: str, forbidden: tuple[str, ...]) -> TokenAutomaton:
        """Return the automaton of the allowed texts; the same one for the same constraints."""
        key = (opening, forbidden)
        if key not in self._automata:
            if len(self._automata) >= MOST_AUTOMATA:
                self._automata.clear()
            found = TokenAutomaton(self._surfaces, opening=opening, forbidden=forbidden)
            self._automata[key] = found
        return self._automata[key]

    @cached_property
    def _surfaces(self) -> list[str]:
        """The text that each token adds when it follows another token."""
        decode, ordinary = self.tokenizer.decode, range(len(SPECIALS), self.tokenizer.size)
        words = (number for number in ordinary if decode([number]).strip().isalnum())
        first = next(words, UNKNOWN)
        before = len(decode([first]))
        unknown = decode([first, UNKNOWN])[before:]
        return ["", unknown, "", "", *(decode([first, number])[before:] for number in ordinary)]


TERMS = "a source term, a tab and its translation on each line"


class TranslationConstraints:
    """Constraints on all translations, from which those of each sentence follow.

    `terms` are source terms and their translations: if the one occurs in a sentence, the other must
    occur in its translation.
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

    def for_sentence(self, text: str) -> TextConstraints:
        """Return the constraints on the translation of this sentence."""
        if not self._terms:
            return self._always
        found = dict.fromkeys(self._terms[m[0].lower()] for m in self._pattern.finditer(text))
        required = dict.fromkeys((*self._always.required, *found))
        return TextConstraints(self._always.prefix, tuple(required), self._always.forbidden)

    def to_dict(self) -> dict[str, object]:
        """Return plain values that identify these constraints."""
        always = self._always
        return {
            "prefix": always.prefix,
            "required": list(always.required),
            "forbidden": list(always.forbidden),
            "terms": self._terms,
        }

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Whole words; of terms that begin alike, the longest matches."""
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
