"""A few sentences of the kind that a model was made for, kept in its run to be shown.

Kept, for who is given a run must not be made to read other files: its recipe may name any.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from regard.base.files import write_file

KEPT = "examples.txt"
EXAMPLES = 6
# Long enough to be interesting, short enough for a screen.
FEWEST_WORDS, MOST_WORDS = 5, 14
MOST_CHARACTERS = 10_000  # of a file that is ours


def keep_examples(run: Path, sentences: Iterable[str]) -> None:
    """Keep the first sentences that are fit to be shown."""
    chosen = _fit(sentences)
    if chosen:
        write_file(run / KEPT, "\n".join(chosen) + "\n")


def kept_examples(run: Path) -> tuple[str, ...]:
    """Return the sentences that a run has kept; none if there are none."""
    path = run / KEPT
    if path.is_symlink() or not path.is_file():
        return ()
    with path.open(encoding="utf-8", errors="replace") as file:
        return _fit(file.read(MOST_CHARACTERS).splitlines())


def _fit(sentences: Iterable[str]) -> tuple[str, ...]:
    fitting = (
        sentence.strip()
        for sentence in sentences
        if FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
    )
    return tuple(islice(dict.fromkeys(fitting), EXAMPLES))
