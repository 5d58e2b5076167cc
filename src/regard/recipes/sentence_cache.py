"""Sentences through a model, each different one once; the latest are remembered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from regard.base.errors import DataError
from regard.decoding.constraints.phrases import ImpossibleConstraintsError
from regard.recipes.loaded import SentenceTooLongError
from regard.recipes.translation import Translation

Kept = TypeVar("Kept")
Translate: TypeAlias = Callable[[Sequence[str]], Iterable[tuple[int, Translation]]]

# Errors about one of the sentences; their `index` says which.
SENTENCE_ERRORS = (SentenceTooLongError, ImpossibleConstraintsError)

ENTRIES = 10_000
# Longer sentences hardly ever repeat, and a cache of them could grow large.
LONGEST_KEPT = 500


class SentenceCache(Generic[Kept]):
    """Translates lists of sentences; `keep` takes from a translation what is wanted of it."""

    def __init__(
        self, translate: Translate, keep: Callable[[Translation], Kept], *, entries: int = ENTRIES
    ):
        self._translate = translate
        self._keep = keep
        self._entries = entries
        self._known: OrderedDict[str, Kept] = OrderedDict()

    def __call__(
        self, texts: Sequence[str], *, done: Callable[[float], None] = lambda share: None
    ) -> list[Kept]:
        """Return the results in order; `done` hears each time which share of them is ready."""
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(text, []).append(place)
        found = {text: self._known[text] for text in places if text in self._known}
        new = [text for text in places if text not in found]
        ready = len(texts) - sum(len(places[text]) for text in new)
        try:
            for index, translation in self._translate(new):
                found[new[index]] = self._keep(translation)
                ready += len(places[new[index]])
                done(ready / len(texts))
        except SENTENCE_ERRORS as error:
            error.index = places[new[error.index]][0]
            raise
        self._remember(found)
        return [found[text] for text in texts]

    def _remember(self, found: dict[str, Kept]) -> None:
        for text, kept in found.items():
            if len(text) <= LONGEST_KEPT:
                self._known[text] = kept
                self._known.move_to_end(text)
        while len(self._known) > self._entries:
            self._known.popitem(last=False)


def located(
    error: SentenceTooLongError | ImpossibleConstraintsError,
    *,
    path: Path,
    line: int | None,
    what: str,
) -> DataError:
    """Return an error about a sentence as one about a place in a file."""
    if isinstance(error, SentenceTooLongError):
        remedy = "Split it, one sentence a line." if what == "the line" else "Split it."
        return DataError(f"{what} {error.problem}", path=path, line=line, remedy=remedy)
    return DataError(
        error.problem, path=path, line=line, remedy="Ask for less, or change the text."
    )
