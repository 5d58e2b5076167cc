"""What one output must and must not hold, as ids."""

from __future__ import annotations

from dataclasses import dataclass

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

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.forbidden)
