"""Sentences of a run to try it with, for the page and for the commands to type next."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from regard.base.files import write_file

EXAMPLES_FILE = "examples.txt"
EXAMPLE_COUNT = 6
# Long enough to be interesting, short enough for a screen.
FEWEST_WORDS, MOST_WORDS = 5, 14
EXAMPLE_CHARACTERS = 10_000  # of a file that is ours


def keep_examples(run: Path, sentences: Iterable[str]) -> None:
    """Keep the first sentences that are fit to be shown."""
    chosen = _fit_to_show(sentences)
    if chosen:
        write_file(run / EXAMPLES_FILE, "\n".join(chosen) + "\n")


def kept_examples(run: Path) -> tuple[str, ...]:
    """Return the sentences that a run has kept; none if there are none."""
    path = run / EXAMPLES_FILE
    if path.is_symlink() or not path.is_file():
        return ()
    with path.open(encoding="utf-8", errors="replace") as file:
        return _fit_to_show(file.read(EXAMPLE_CHARACTERS).splitlines())


def _fit_to_show(sentences: Iterable[str]) -> tuple[str, ...]:
    fitting = (
        sentence.strip()
        for sentence in sentences
        if FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS
    )
    return tuple(islice(dict.fromkeys(fitting), EXAMPLE_COUNT))
