"""The languages that English can be paired with."""

from __future__ import annotations

from regard.base.errors import SettingsError
from regard.corpora.grammar import french, german
from regard.corpora.grammar.realise import Language

LANGUAGES: dict[str, Language] = {"de": german.LANGUAGE, "fr": french.LANGUAGE}
PAIRS: tuple[str, ...] = tuple(f"en-{name}" for name in LANGUAGES)


def target_language(pair: str) -> Language:
    """Return the target language of a pair such as "en-de"."""
    if pair not in PAIRS:
        known = ", ".join(PAIRS)
        raise SettingsError(f"The built-in grammar has no pair {pair!r}; it has: {known}.")
    return LANGUAGES[pair.removeprefix("en-")]
