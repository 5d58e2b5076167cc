"""The torch engine on several cores: a process each, because the steps of a search are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from regard.base.results import Hypothesis
from regard.compute.processes import WorkerLostError, WorkerProcess, using_threads
from regard.decoding.constraints import Constraints
from regard.engines.torch_engine import TorchEngine
from regard.settings.decoding import DecodingSettings

LEAST_SENTENCES = 4  # for a process; with fewer, waiting for it takes longer


class _Question(NamedTuple):
    sources: Sequence[Sequence[int]]
    settings: DecodingSettings
    n_best: int


class TorchProcesses:
    """Searches with the model in this process and in helpers; it answers like the engine it has."""

    name = "torch"
    at_once = 1
    attends = True

    def __init__(self, engine: TorchEngine, *, processes: int):
        self.engine = engine
        self.batch_tokens = engine.batch_tokens * processes
        self._helpers = [WorkerProcess(self._help) for _ in range(processes - 1)]

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Name what is asked for here and this engine cannot do; None if it can do everything."""
        return self.engine.lacks(settings, constraints)

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
        """Return the hypotheses of each sentence, best first."""
        processes = min(len(self._helpers) + 1, len(sources) // LEAST_SENTENCES)
        # Samples depend on who was drawn before, and maps of attention are too large to send.
        if processes > 1 and settings.method == "beam" and not attention and constraints is None:
            found = self._shared(sources, settings, n_best, processes)
            if found is not None:
                return found
        return self.engine.search(
            sources, settings, n_best=n_best, attention=attention, constraints=constraints
        )

    def close(self) -> None:
        """End the helpers; from now on this process searches alone."""
        for helper in self._helpers:
            helper.dismiss()
        self._helpers = []

    def _shared(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        n_best: int,
        processes: int,
    ) -> list[list[Hypothesis]] | None:
        """Share out the sentences in turns, for neighbours are of like length; None if it fails."""
        busy = self._helpers[: processes - 1]
        parts: list[list[list[Hypothesis]] | None] = []
        try:
            with using_threads(1):
                for number, helper in enumerate(busy, start=1):
                    helper.ask(_Question(sources[number::processes], settings, n_best))
                own = self._help(_Question(sources[::processes], settings, n_best))
                parts = [own, *(helper.hear() for helper in busy)]
        except WorkerLostError:
            self.close()
            return None
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for number, part in enumerate(parts):
            if part is None:
                return None
            found[number::processes] = part
        return found

    def _help(self, question: _Question) -> list[list[Hypothesis]] | None:
        """Search for a part; None for any mistake: in one piece it is found again, and named."""
        try:
            return self.engine.search(question.sources, question.settings, n_best=question.n_best)
        except Exception:
            return None
