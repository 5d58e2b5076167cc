"""The interface of engines, and the reference: every model and option, in torch.

It runs on one core or on several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch

from regard.base.errors import SettingsError
from regard.base.results import Hypothesis
from regard.base.shapes import Float, Int, Tensor
from regard.base.special_tokens import BEGIN, END
from regard.batching.batch import padded, sorted_batches
from regard.compute.device import HOST, beside, keep_memory, moved, using_threads
from regard.compute.processes import WorkerLostError, WorkerProcess
from regard.decoding.beam import BeamOptions, beam_search
from regard.decoding.constraints.batch import BatchConstraints
from regard.decoding.constraints.phrases import Constraints, ImpossibleConstraintsError
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.search import LengthPenalty, least_lengths, length_limits
from regard.models.translator import Translator
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
        """Number of padded source tokens that one search should have."""
        ...

    @property
    def attends(self) -> bool:
        """Whether its hypotheses can carry attention."""
        ...

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Return the name of a requested feature that this engine lacks; None if it has all."""
        ...

    def concurrent_searches(self, settings: DecodingSettings, *, constrained: bool) -> int:
        """Return how many such searches, each in its own thread, keep this engine busy."""
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

        Sources are ids without end mark, none of them empty; constraints, if given, are one for
        each source. Without `scores`, a score may be NaN where computing it takes time.
        """
        ...


PASS_TOKENS = 4_096  # of one pass for attention
PROBED = 32  # sentences that show whether outputs end by themselves
MOST_UNFINISHED = 0.5
# A beam needs a place for each required token, up to this size.
WIDEST_FOR_REQUIRED = 64
# Times `batch_tokens` that one batch may have: callers aim at the size, and parts of theirs vary.
LARGEST_BATCH = 2
USUAL_WIDTH = 12  # of a beam, or the number of draws: with more, batches have fewer sentences


class TorchEngine:
    """Searches with the model itself."""

    name = "torch"
    batch_tokens = 2_048  # enough to keep the cores busy, small enough for their caches
    attends = True

    def __init__(self, model: Translator[Any]):
        self.model = model

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Return the name of what this engine lacks: only what no search could do."""
        if not any(some.required for some in constraints or ()):
            return None
        if settings.method != "beam":
            return f'required words with method = "{settings.method}"'
        if settings.diversity_groups > 1:
            return "required words with diversity_groups"
        return None

    def concurrent_searches(self, settings: DecodingSettings, *, constrained: bool) -> int:
        """Return 1: a search uses all cores."""
        return 1

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

        More sentences than suit one batch are searched in several, so that memory stays bounded.
        """
        if (lacking := self.lacks(settings, constraints)) is not None:
            raise SettingsError(f"There is no search for {lacking}.")
        self.model.eval()
        keep_memory()  # every step makes and frees the same large tensors
        lengths = [(len(source) + 1, 0) for source in sources]
        width = settings.beam if settings.method == "beam" else n_best
        budget = LARGEST_BATCH * self.batch_tokens * USUAL_WIDTH // max(USUAL_WIDTH, width)
        found: dict[int, list[Hypothesis]] = {}
        for rows in sorted_batches(lengths, token_budget=budget):
            rows.sort()
            try:
                batch = self._search_batch(
                    [sources[row] for row in rows],
                    settings,
                    n_best=n_best,
                    attention=attention,
                    constraints=None if constraints is None else [constraints[row] for row in rows],
                )
            except ImpossibleConstraintsError as error:
                raise ImpossibleConstraintsError(rows[error.index], error.problem) from error
            for row, hypotheses in zip(rows, batch, strict=True):
                if not hypotheses:
                    raise ImpossibleConstraintsError(
                        row, "the search found no output that meets all constraints together"
                    )
                found[row] = [self._on_time(one, len(sources[row])) for one in hypotheses]
        return [found[row] for row in range(len(sources))]

    def _on_time(self, found: Hypothesis, source: int) -> Hypothesis:
        """Return a hypothesis whose attention stands beside the tokens that it is of."""
        if found.attention is None or self.model.taught_head is None:
            return found
        return replace(found, attention=on_time(self.model, found.attention, source=source))

    def _search_batch(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        *,
        n_best: int,
        attention: bool,
        constraints: Sequence[Constraints] | None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of sentences that are searched together."""
        source, mask = padded(sources, after=END)
        rules = self._rules(mask.sum(dim=1), settings, constraints)
        penalty = LengthPenalty(settings.length_penalty_kind, settings.length_penalty)
        required = 0 if rules.constraints is None else int(rules.constraints.required.total.max())
        source, mask, rules = beside(self.model, (source, mask, rules))
        if settings.method != "beam":
            return sample(
                self.model,
                source,
                mask,
                rules=rules,
                options=SamplingOptions(
                    seed=settings.seed,
                    temperature=settings.temperature,
                    top_k=settings.top_k,
                    top_p=settings.top_p,
                ),
                count=n_best,
                penalty=penalty,
                with_weights=attention,
            )
        if settings.beam == 1 and not required and not settings.coverage_penalty:
            return greedy_search(
                self.model, source, mask, rules=rules, penalty=penalty, with_weights=attention
            )
        options = BeamOptions(
            beam=max(settings.beam, min(required + 1, WIDEST_FOR_REQUIRED)),
            n_best=n_best,
            penalty=penalty,
            coverage=settings.coverage_penalty,
            groups=settings.diversity_groups,
            diversity=settings.diversity_strength,
        )
        return beam_search(
            self.model, source, mask, rules=rules, options=options, with_weights=attention
        )

    def limits(
        self, lengths: Int[Tensor, "batch"], settings: DecodingSettings
    ) -> Int[Tensor, "batch"]:
        """Return the most tokens of each output by those of its source; both count the end mark."""
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
        batch = None
        if constraints is not None and any(constraints):
            vocab = self.model.projection.out_features
            batch = BatchConstraints(constraints, limits=limits, vocab=vocab)
        return Rules(
            limits=limits,
            least=least,
            no_repeat_ngram=settings.no_repeat_ngram,
            repetition_penalty=settings.repetition_penalty,
            constraints=batch,
        )


MIN_SENTENCES = 4  # for each process; with fewer, communication takes longer than the search


class _SearchRequest(NamedTuple):
    sources: Sequence[Sequence[int]]
    settings: DecodingSettings
    n_best: int
    constraints: Sequence[Constraints] | None

    def part(self, number: int, count: int) -> _SearchRequest:
        """Return every `count`-th sentence: neighbours are of similar length."""
        constraints = None if self.constraints is None else self.constraints[number::count]
        return self._replace(sources=self.sources[number::count], constraints=constraints)


class TorchProcesses:
    """Searches in this process and in workers; the results are those of the engine it is given."""

    name = "torch"
    attends = True

    def __init__(self, engine: TorchEngine, *, processes: int):
        self.engine = engine
        self.batch_tokens = engine.batch_tokens * processes
        self._workers = [WorkerProcess(self._search_part) for _ in range(processes - 1)]

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Return the name of what this engine lacks: only what no search could do."""
        return self.engine.lacks(settings, constraints)

    def concurrent_searches(self, settings: DecodingSettings, *, constrained: bool) -> int:
        """Return 1: a search uses all cores."""
        return 1

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
        processes = min(len(self._workers) + 1, len(sources) // MIN_SENTENCES)
        if processes > 1 and not attention:  # maps of attention are too large to send
            request = _SearchRequest(sources, settings, n_best, constraints)
            found = self._search_in_parallel(request, processes)
            if found is not None:
                return found
        return self.engine.search(
            sources, settings, n_best=n_best, attention=attention, constraints=constraints
        )

    def close(self) -> None:
        """Stop the workers; from now on this process searches alone."""
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def _search_in_parallel(
        self, request: _SearchRequest, processes: int
    ) -> list[list[Hypothesis]] | None:
        """Return the hypotheses of all sentences; None if a part fails."""
        busy = self._workers[: processes - 1]
        try:
            with using_threads(1):
                for number, worker in enumerate(busy, start=1):
                    worker.send(request.part(number, processes))
                first = self._search_part(request.part(0, processes))
                parts = [first, *(worker.receive() for worker in busy)]
        except WorkerLostError:
            self.close()
            return None
        found: list[list[Hypothesis]] = [[] for _ in request.sources]
        for number, part in enumerate(parts):
            if part is None:
                return None
            found[number::processes] = part
        return found

    def _search_part(self, request: _SearchRequest) -> list[list[Hypothesis]] | None:
        """Return the hypotheses; None for any error, which a search of all sentences raises."""
        try:
            return self.engine.search(
                request.sources,
                request.settings,
                n_best=request.n_best,
                constraints=request.constraints,
            )
        except Exception:
            return None


@torch.inference_mode()
def attention_over(
    model: Translator[Any],
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    head: tuple[int, int] | None = None,
) -> list[Float[Tensor, "target source"]]:
    """Return the attention of each target over its source, as if the model had generated it.

    Ids come without end marks; the maps have a last row and column for them. `head` is a layer and
    a head of the decoder, both counted from 0; by default the map is the one that the model shows.
    """
    model.eval()
    maps: dict[int, Tensor] = {}
    lengths = [(len(s) + 1, len(t) + 1) for s, t in zip(sources, targets, strict=True)]
    taught = head is None or head == model.taught_head
    for rows in sorted_batches(lengths, token_budget=PASS_TOKENS):
        source, mask = beside(model, padded([sources[row] for row in rows], after=END))
        target, _ = beside(model, padded([targets[row] for row in rows], before=BEGIN))
        if head is None:
            weights = model(source, mask, target, with_weights=True).attention
        else:
            layer, number = head
            weights = model.head_maps(source, mask, target).cross[layer][:, number]
        weights = moved(weights, HOST)
        for index, row in enumerate(rows):
            own = weights[index, : lengths[row][1], : lengths[row][0]]
            shown = on_time(model, own, source=lengths[row][0] - 1) if taught else own
            maps[row] = shown.clone()
    return [maps[row] for row in range(len(sources))]


def on_time(
    model: Translator[Any], weights: Float[Tensor, "target columns"], *, source: int
) -> Float[Tensor, "target columns"]:
    """Return the rows of a taught head beside the tokens that they align; others as they are.

    `source` is the place of the end mark, with which that of the target is aligned.
    """
    if model.taught_head is None:
        return weights
    last = torch.zeros_like(weights[:1])
    last[0, source] = 1.0
    return torch.cat([weights[1:], last])


def unfinished_share(
    engine: TorchEngine, sources: Sequence[Sequence[int]], settings: DecodingSettings
) -> float:
    """Return the share of a few greedy outputs that only their length limit ends."""
    few = sources[:: -(-len(sources) // PROBED)]
    limits = engine.limits(torch.tensor([len(source) + 1 for source in few]), settings)
    found = engine.search(few, settings.model_copy(update={"beam": 1}))
    written = torch.tensor([len(some[0].tokens) + 1 for some in found])
    return float((written >= limits).double().mean())
