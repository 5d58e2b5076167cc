"""The reference engine: every model and every option, in torch, on one core or on several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.base.errors import SettingsError
from regard.base.results import Hypothesis
from regard.base.shapes import Int, Tensor
from regard.base.special_tokens import END
from regard.batching.batch import padded
from regard.compute.device import keep_memory
from regard.compute.processes import WorkerLostError, WorkerProcess, using_threads
from regard.decoding.beam import beam_search
from regard.decoding.constraints.batch import Constrained
from regard.decoding.constraints.phrases import Constraints, ImpossibleConstraintsError
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.sampling import sample
from regard.decoding.search import LengthPenalty, least_lengths, length_limits
from regard.models.translator import Translator
from regard.settings.decoding import DecodingSettings

# A beam needs a place for every symbol of what is required, but not without end.
WIDEST_FOR_REQUIRED = 64


class TorchEngine:
    """Searches with the model itself."""

    name = "torch"
    batch_tokens = 2_048  # enough to keep the cores busy, small enough for their caches
    at_once = 1
    attends = True

    def __init__(self, model: Translator[Any]):
        self.model = model

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Name what this engine cannot do: only what no engine could."""
        if not any(some.required for some in constraints or ()):
            return None
        if settings.method != "beam":
            return f'required words with method = "{settings.method}"'
        if settings.diversity_groups > 1:
            return "required words with diversity_groups"
        return None

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
        if not sources:
            return []
        if (lacking := self.lacks(settings, constraints)) is not None:
            raise SettingsError(f"There is no search for {lacking}.")
        self.model.eval()
        keep_memory()  # every step makes and frees the same large tensors
        source, mask = padded(sources, after=END)
        rules = self._rules(mask.sum(dim=1), settings, constraints)
        penalty = LengthPenalty(settings.length_penalty_kind, settings.length_penalty)
        required = 0 if rules.constrained is None else int(rules.constrained.required.total.max())
        if settings.method != "beam":
            found = sample(
                self.model,
                source,
                mask,
                rules=rules,
                seed=settings.seed,
                count=n_best,
                temperature=settings.temperature,
                top_k=settings.top_k,
                top_p=settings.top_p,
                penalty=penalty,
                with_weights=attention,
            )
        elif settings.beam == 1 and not required and not settings.coverage_penalty:
            found = greedy_search(
                self.model, source, mask, rules=rules, penalty=penalty, with_weights=attention
            )
        else:
            found = beam_search(
                self.model,
                source,
                mask,
                rules=rules,
                beam=max(settings.beam, min(required + 1, WIDEST_FOR_REQUIRED)),
                n_best=n_best,
                penalty=penalty,
                coverage=settings.coverage_penalty,
                groups=settings.diversity_groups,
                diversity=settings.diversity_strength,
                with_weights=attention,
            )
        for index, hypotheses in enumerate(found):
            if not hypotheses:
                raise ImpossibleConstraintsError(
                    index, "the search found no output that meets all constraints together"
                )
        return found

    def limits(
        self, lengths: Int[Tensor, "batch"], settings: DecodingSettings
    ) -> Int[Tensor, "batch"]:
        """Return the most symbols of each output by those of its source; both count the end."""
        limits = length_limits(
            lengths,
            ratio=settings.max_ratio,
            extra=settings.max_extra,
            most=settings.max_length,
        )
        longest = self.model.longest_target
        return limits if longest is None else limits.clamp(max=longest)

    def _rules(
        self,
        lengths: Int[Tensor, "batch"],
        settings: DecodingSettings,
        constraints: Sequence[Constraints] | None,
    ) -> Rules:
        limits = self.limits(lengths, settings)
        least = None
        if settings.min_length or settings.min_ratio:
            least = least_lengths(lengths, ratio=settings.min_ratio, least=settings.min_length)
        constrained = None
        if constraints is not None and any(constraints):
            vocab = self.model.projection.out_features
            constrained = Constrained(constraints, limits=limits, vocab=vocab)
        return Rules(
            limits=limits,
            least=least,
            no_repeat_ngram=settings.no_repeat_ngram,
            repetition_penalty=settings.repetition_penalty,
            constrained=constrained,
        )


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
            helper.stop()
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
                    helper.send(_Question(sources[number::processes], settings, n_best))
                own = self._help(_Question(sources[::processes], settings, n_best))
                parts = [own, *(helper.receive() for helper in busy)]
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
