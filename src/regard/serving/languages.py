"""Languages: codes and names, the pair of a run, and language detection."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.base.errors import SettingsError
from regard.tasks.translation.settings import DataSettings
from regard.text.languages import NAMES, language_code

CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})?")
COMPRESSED = frozenset((".gz", ".xz", ".bz2", ".zst"))


class Pair(NamedTuple):
    """Codes of a source and a target language."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


# What a model translates between if nothing tells.
UNNAMED = Pair("src", "tgt")
SIDES = dict(zip(UNNAMED, ("source language", "target language"), strict=True))


def language_name(code: str) -> str:
    """Return the English name of a language, or its code if it is unknown."""
    return NAMES.get(code) or SIDES.get(code, code)


def read_pair(text: str) -> Pair:
    """Return the pair written as "en-de", or as "zh-Hans:en"."""
    source, mark, target = text.partition(":" if ":" in text else "-")
    if not mark or not CODE.fullmatch(source) or not CODE.fullmatch(target):
        raise SettingsError(
            f"--pair {text!r} is not a pair of languages: write their codes as en-de, or as "
            "zh-Hans:en where a code has a hyphen."
        )
    return Pair(source, target)


def pair_of(data: DataSettings) -> Pair:
    """Return the languages of a run, by its data: their pair, columns or files; else `UNNAMED`."""
    if data.built_in:
        return read_pair(data.grammar.pair)
    if data.pair is not None:
        return read_pair(data.pair)
    for names in (data.columns, tuple(map(_suffix, data.train))):
        codes = [code for name in names if (code := language_code(name)) is not None]
        if len(codes) == len(names) == 2:
            return Pair(*codes)
    return UNNAMED


def _suffix(file: str) -> str:
    """Return the suffix of a file's name without that of its compression."""
    path = Path(file)
    return (path.with_suffix("") if path.suffix in COMPRESSED else path).suffix[1:].lower()


# A few words are enough to detect a language; more would only take time.
READ_CHARACTERS = 4_000


class Guess(NamedTuple):
    """A language and the confidence that a text is in it, from 0 to 100."""

    language: str
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return the guess as LibreTranslate writes it."""
        return {"confidence": self.confidence, "language": self.language}


class Detector:
    """Detects which of a few languages a text is in."""

    def __init__(self, languages: Sequence[str]):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._languages = list(dict.fromkeys(languages))
        self._identifier: Any = None
        if len(self._languages) > 1:
            identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            known = [one for one in self._languages if one in identifier.nb_classes]
            if len(known) > 1:
                identifier.set_languages(known)
                self._identifier = identifier

    def guesses(self, text: str) -> list[Guess]:
        """Return the languages, most probable first."""
        if len(self._languages) == 1:
            return [Guess(self._languages[0], 100.0 if text.strip() else 0.0)]
        if self._identifier is None or not text.strip():
            return [Guess(language, 0.0) for language in self._languages]
        ranked = self._identifier.rank(text[:READ_CHARACTERS])
        found = {language: round(100 * float(share), 1) for language, share in ranked}
        rest = [language for language in self._languages if language not in found]
        return [Guess(*pair) for pair in found.items()] + [Guess(one, 0.0) for one in rest]

    def best(self, text: str) -> Guess:
        """Return the most probable language; an unknown one if none is read here."""
        return next(iter(self.guesses(text)), Guess(UNNAMED.source, 0.0))
