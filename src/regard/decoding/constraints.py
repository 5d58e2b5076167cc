"""What one output must and must not hold, as ids."""

from __future__ import annotations

from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.decoding.spelling import Spelling

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """What is asked of the output of one sentence; every phrase is a run of target ids."""

    prefix: Phrase = ()
    """The output begins with these."""
    required: tuple[Phrase, ...] = ()
    """Each of these occurs in the output."""
    forbidden: tuple[Phrase, ...] = ()
    """None of these occurs in the output."""
    spelling: Spelling | None = None
    """What the text may and must say, in whatever symbols; with it, required phrases end a word."""

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.forbidden or self.spelling)


class ImpossibleConstraintsError(RegardError):
    """Constraints that cannot hold; `index` says for which of the sentences."""

    def __init__(self, index: int, problem: str):
        self.index = index
        self.problem = problem
        super().__init__(f"Sentence {index + 1}: {problem}.")
