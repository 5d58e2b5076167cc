"""The one interface of engines: source ids in, hypotheses out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from regard.base.results import Hypothesis
from regard.decoding.constraints import Constraints
from regard.settings.decoding import DecodingSettings


@runtime_checkable
class Engine(Protocol):
    """Searches for the outputs of source sentences; each never depends on its neighbours."""

    @property
    def name(self) -> str:
        """A short name for people and records, as "torch"."""
        ...

    @property
    def batch_tokens(self) -> int:
        """Padded source symbols that are best searched at once."""
        ...

    @property
    def at_once(self) -> int:
        """How many such searches, each by a thread of its own, keep it busy."""
        ...

    @property
    def attends(self) -> bool:
        """Whether its hypotheses can carry attention."""
        ...

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Name what is asked for here and this engine cannot do; None if it can do everything."""
        ...

    def search(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        *,
        n_best: int = 1,
        attention: bool = False,
        scores: bool = True,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each sentence, best first.

        Sources are ids without end mark, none of them empty; constraints, where given, are one for
        each source. Who wants no scores may get NaN, where finding them takes time.
        """
        ...
