"""The fast engine: beam search by CTranslate2, with results equal to the reference's.

A search that CTranslate2 lacks, or would do differently, is done by the reference: the output of a
sentence depends on the model and the settings, and not on the engine.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.base.protocols import Tokenizer
from regard.base.results import Hypothesis
from regard.base.special_tokens import BEGIN, END, PAD
from regard.batching.batch import sorted_batches
from regard.compute.device import HOST, device_of, has_idle_avx512
from regard.decoding.constraints.phrases import Constraints
from regard.engines.torch_engine import TorchEngine, attention_over
from regard.exchange.ctranslate2 import MOST_POSITIONS, SHORTLIST, token_names
from regard.settings.decoding import DecodingSettings

# Source tokens and rows (sentences times the beam size) that a worker searches in one batch.
# Large batches make large matrix products: with a transformer-base, batches of 50 sentences take a
# tenth more processor time than batches of 100. A transformer-tiny, whose rows no longer fit into
# the caches, takes 2 % more with 320 rows than with 240.
WORKER_TOKENS = 2_048
WORKER_ROWS = 256
# Batches of each worker in one search, so that no worker waits long for the last batch of another.
WORKER_BATCHES = 4
# CTranslate2 stops after `beam_size * patience` finished hypotheses; our search stops when none can
# improve. These are the finished hypotheses beyond the beam size, up to a length penalty, for
# models whose patience was not measured. With them 99.4 to 100 % of the outputs for Multi30k's
# validation set equal the reference's, with three models and a length penalty of 1. Above the last
# penalty the outputs differ whatever the patience.
DEFAULT_PATIENCE = {1.2: 5, 1.6: 20}
HIGHEST_PENALTY = max(DEFAULT_PATIENCE)
# Selects CTranslate2's kernels; it is read when the first model is loaded. By default CTranslate2
# never uses AVX-512, which made a plain model 2 % faster on Multi30k's test set with a beam of 5.
INSTRUCTIONS = "CT2_FORCE_CPU_ISA"
NEVER = frozenset((PAD, BEGIN))  # tokens that no output may hold


def computes_on(device: torch.device) -> bool:
    """Return whether CTranslate2 has kernels for a device here; else it is on the processor."""
    import ctranslate2

    try:
        return bool(ctranslate2.get_supported_compute_types(device.type, device.index or 0))
    except (RuntimeError, ValueError):  # it has none, or was built without them
        return False


class Threads(NamedTuple):
    """How the cores are divided: workers that run in parallel, and the threads of each."""

    workers: int
    each: int

    def __str__(self) -> str:
        return f"{self.workers} x {self.each}"


class CTranslate2Engine:
    """Searches with an exported model; the reference does what CTranslate2 would do differently."""

    attends = True

    def __init__(
        self,
        folder: Path,
        *,
        reference: TorchEngine,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        threads: Threads,
        compute_type: str = "float32",
        shortlist: bool = False,
    ):
        import ctranslate2

        if has_idle_avx512():
            os.environ.setdefault(INSTRUCTIONS, "AVX512")
        self.reference = reference
        self._reference_lock = Lock()  # the reference uses all cores
        self.threads = threads
        self.batch_tokens = WORKER_BATCHES * threads.workers * WORKER_TOKENS
        self.compute_type = compute_type
        self._shortlist = shortlist and (folder / SHORTLIST).is_file()
        self._source_names = token_names(source_tokenizer)
        self._target_ids = {name: i for i, name in enumerate(token_names(target_tokenizer))}
        device = device_of(reference.model)
        device = device if computes_on(device) else HOST
        self._translator = ctranslate2.Translator(
            str(folder),
            device=device.type,
            device_index=device.index or 0,
            compute_type=compute_type,
            inter_threads=threads.workers,
            intra_threads=threads.each,
            max_queued_batches=-1,  # a search has a limit of its own
        )
        self.patience: dict[tuple[int, float], int] = {}
        """Measured numbers of finished hypotheses beyond the beam size, by `patience_key`."""
        self._positions = min(MOST_POSITIONS, reference.model.longest_target or MOST_POSITIONS)

    @property
    def name(self) -> str:
        """The engine with its arithmetic and threads, as "ctranslate2 float32, 2 x 1 threads"."""
        return f"ctranslate2 {self.compute_type}, {self.threads} threads"

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Return the name of a requested feature that only the reference has."""
        return lacking(settings, constrained=any(constraints or ()))

    def concurrent_searches(self, settings: DecodingSettings, *, constrained: bool) -> int:
        """Return 2, so that no worker waits at the end of a search, or 1 for the reference."""
        constrained = constrained or settings.copy_verbatim
        return 2 if lacking(settings, constrained=constrained) is None else 1

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
        if self.lacks(settings, constraints) is not None:
            with self._reference_lock:
                return self.reference.search(
                    sources, settings, n_best=n_best, attention=attention, constraints=constraints
                )
        lengths = torch.tensor([len(source) + 1 for source in sources])
        limits = self.reference.limits(lengths, settings).tolist()
        found = self._search(sources, settings, n_best=n_best, longest=max(limits), scores=scores)
        unsure = [
            row
            for row, hypotheses in enumerate(found)
            if len(hypotheses) < n_best or any(len(h.tokens) >= limits[row] for h in hypotheses)
        ]
        # They reached a limit, at which the reference ends a sentence properly.
        lengths_of = [(len(sources[row]) + 1, 0) for row in unsure]
        budget = self.reference.batch_tokens
        for places in sorted_batches(lengths_of, token_budget=budget):
            rows = [unsure[place] for place in places]
            with self._reference_lock:
                better = self.reference.search(
                    [sources[row] for row in rows], settings, n_best=n_best
                )
            for row, hypotheses in zip(rows, better, strict=True):
                found[row] = hypotheses
        return self._with_attention(sources, found) if attention else found

    def translate_to_length(
        self, sources: Sequence[Sequence[int]], *, beam: int, length: int
    ) -> list[list[int]]:
        """Return outputs of exactly this length, for measuring the speed."""
        found = self._translate(
            sources, beam_size=beam, min_decoding_length=length, max_decoding_length=length
        )
        return [[self._target_ids[name] for name in result.hypotheses[0]] for result in found]

    def _search(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        *,
        n_best: int,
        longest: int,
        scores: bool,
    ) -> list[list[Hypothesis]]:
        """Return CTranslate2's hypotheses; fewer than n_best where they cannot be trusted."""
        penalty = _penalty(settings)
        short = [row for row, source in enumerate(sources) if len(source) < self._positions]
        results = self._translate(
            [sources[row] for row in short],
            beam_size=settings.beam,
            patience=1 + self._patience(settings, n_best) / settings.beam,
            num_hypotheses=n_best,
            length_penalty=penalty,
            repetition_penalty=settings.repetition_penalty,
            min_decoding_length=0,
            max_decoding_length=min(longest, self._positions),
            # A greedy search does not need them and would compute a softmax for them alone.
            return_scores=scores or settings.beam > 1,
        )
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for row, result in zip(short, results, strict=True):
            for names, score in zip(result.hypotheses, result.scores or [math.nan], strict=True):
                tokens = [self._target_ids[name] for name in names]
                if tokens and tokens[-1] == END and NEVER.isdisjoint(tokens):
                    total = score * len(tokens) ** penalty
                    found[row].append(Hypothesis(tuple(tokens[:-1]), total, score, None))
        return found

    def _patience(self, settings: DecodingSettings, n_best: int) -> int:
        """Return how many finished hypotheses beyond the beam size end the search."""
        penalty = _penalty(settings)
        if penalty <= 1 and self.compute_type != "float32":
            return 0  # quantised weights find other outputs anyway
        default = next((n for highest, n in DEFAULT_PATIENCE.items() if penalty <= highest), 0)
        patience = self.patience.get(patience_key(settings), default)
        return patience if n_best == 1 else max(patience, settings.beam)

    def _translate(self, sources: Sequence[Sequence[int]], **options: Any) -> list[Any]:
        if not sources:
            return []
        names = self._source_names
        batches = worker_batches(
            [len(source) + 1 for source in sources],  # with an end mark
            workers=self.threads.workers,
            max_rows=max(1, WORKER_ROWS // options["beam_size"]),
        )
        started = [
            self._translator.translate_batch(
                [[names[number] for number in sources[row]] for row in rows],
                asynchronous=True,
                max_input_length=0,
                return_end_token=True,
                use_vmap=self._shortlist,
                **options,
            )
            for rows in batches
        ]
        found: dict[int, Any] = {}
        for rows, results in zip(batches, started, strict=True):
            found |= {row: one.result() for row, one in zip(rows, results, strict=True)}
        return [found[row] for row in range(len(sources))]

    def _with_attention(
        self, sources: Sequence[Sequence[int]], found: list[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Return the same hypotheses with their attention weights."""
        places = [(row, rank) for row, some in enumerate(found) for rank in range(len(some))]
        maps = attention_over(
            self.reference.model,
            [sources[row] for row, _ in places],
            [found[row][rank].tokens for row, rank in places],
        )
        for (row, rank), weights in zip(places, maps, strict=True):
            found[row][rank] = replace(found[row][rank], attention=weights)
        return found


def lacking(settings: DecodingSettings, *, constrained: bool = False) -> str | None:
    """Return the name of what CTranslate2 lacks for such a search, or does differently.

    It draws samples in an order of its own, and where it bans tokens (minimum length, n-grams,
    constraints) it redistributes their probability, which changes the scores.
    """
    if settings.method != "beam":
        return f'method = "{settings.method}"'
    if settings.length_penalty_kind == "wu":
        return 'length_penalty_kind = "wu"'
    if settings.beam > 1 and _penalty(settings) > HIGHEST_PENALTY:
        return f"length_penalty above {HIGHEST_PENALTY:g}"
    fields = type(settings).model_fields
    for name in (
        "coverage_penalty",
        "diversity_groups",
        "min_length",
        "min_ratio",
        "no_repeat_ngram",
    ):
        if getattr(settings, name) != fields[name].default:
            return name
    return "constraints" if constrained else None


def patience_key(settings: DecodingSettings) -> tuple[int, float]:
    """Return what the patience of a search depends on: the beam size and the length penalty."""
    return settings.beam, _penalty(settings)


def worker_batches(lengths: Sequence[int], *, workers: int, max_rows: int) -> list[list[int]]:
    """Return rows in batches, longest first, with the same number of batches for each worker.

    Batches have at most `max_rows` rows on average and take about the same work: half of the work
    is estimated by the lengths of the sentences, half by their number.
    """
    array = np.array(lengths)
    needed = max(-(-len(array) // max_rows), -(-int(array.sum()) // WORKER_TOKENS))
    batches = min(-(-needed // workers) * workers, len(array))
    order = np.argsort(-array, kind="stable")
    work = array[order] + array.mean()
    middle = work.cumsum() - work / 2
    batch = (middle * batches / work.sum()).astype(np.int64)
    return [order[batch == one].tolist() for one in range(batches) if one in batch]


def _penalty(settings: DecodingSettings) -> float:
    """Return the exponent of the length that scores are divided by."""
    return 0.0 if settings.length_penalty_kind == "none" else settings.length_penalty
