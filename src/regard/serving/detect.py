"""Which of the served languages a text is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

# A language is known after a few words; the rest of a long text would only take time.
READ_CHARACTERS = 4_000


class Guess(NamedTuple):
    """A language and how sure that is, from 0 to 100."""

    language: str
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as LibreTranslate writes it."""
        return {"confidence": self.confidence, "language": self.language}


class Detector:
    """Chooses among a few languages; where there is one only, that one."""

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
        """Return the most probable language."""
        return self.guesses(text)[0]
