"""The fast engine: beam search by CTranslate2, with results equal to the reference's.

What CTranslate2 cannot do, or would do otherwise, is handed to the reference: the output of a
sentence depends on the model and the settings, and not on the engine.
"""

from __future__ import annotations

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
from regard.compute.device import has_idle_avx512
from regard.decoding.constraints.phrases import Constraints
from regard.engines.engine import attention_over
from regard.engines.torch_engine import TorchEngine
from regard.exchange.ctranslate2 import MOST_POSITIONS, SHORTLIST, token_names
from regard.settings.decoding import DecodingSettings

# Source symbols and rows (sentences times the width of the beam) that a worker searches at once.
# Many rows make large products: of a transformer-base, batches of 50 sentences take a tenth more
# processor time than batches of 100. A transformer-tiny, whose rows leave the caches, takes 2 %
# more with 320 rows than with 240.
WORKER_TOKENS = 2_048
WORKER_ROWS = 256
# So many batches of a worker make one search: none waits long for the last of another.
PIECES = 4
# It stops at so many finished outputs beyond the width of the beam, we when no better one can come.
# Where it was not measured how many a model needs (`waiting`), it is so many up to a penalty: with
# them 99.4 to 100 % of Multi30k's validation sentences were as the reference has them, with three
# models and a length penalty of 1. Above the last penalty it finds others whatever it waits.
MORE = {1.2: 5, 1.6: 20}
HIGHEST_PENALTY = max(MORE)
# Which of its kernels CTranslate2 takes, read when it loads its first model. By itself it never
# takes those for AVX-512, which made a plain one 2 % faster on Multi30k's test with a beam of 5.
INSTRUCTIONS = "CT2_FORCE_CPU_ISA"
NEVER = frozenset((PAD, BEGIN))  # symbols that no output may hold


class Threads(NamedTuple):
    """How the cores are shared out: sentences side by side, and threads for each of them."""

    workers: int
    each: int

    def __str__(self) -> str:
        return f"{self.workers} x {self.each}"


class CTranslate2Engine:
    """Searches with an exported model; the reference answers where it would answer otherwise."""

    at_once = 2  # so that no worker waits for the others at the end of a search
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
        self._turn = Lock()  # at the reference, which has all cores
        self.threads = threads
        self.batch_tokens = PIECES * threads.workers * WORKER_TOKENS
        self.compute_type = compute_type
        self._shortlist = shortlist and (folder / SHORTLIST).is_file()
        self._source_names = token_names(source_tokenizer)
        self._target_ids = {name: i for i, name in enumerate(token_names(target_tokenizer))}
        self._translator = ctranslate2.Translator(
            str(folder),
            compute_type=compute_type,
            inter_threads=threads.workers,
            intra_threads=threads.each,
            max_queued_batches=-1,  # all of a search, which has its own limit
        )
        self.waits: dict[tuple[int, float], int] = {}  # what was measured, by `wait_key`
        self._positions = min(MOST_POSITIONS, reference.model.longest_target or MOST_POSITIONS)

    @property
    def name(self) -> str:
        """The engine with its arithmetic and threads, as "ctranslate2 float32, 2 x 1 threads"."""
        return f"ctranslate2 {self.compute_type}, {self.threads} threads"

    def lacks(
        self, settings: DecodingSettings, constraints: Sequence[Constraints] | None = None
    ) -> str | None:
        """Name what is handed to the reference."""
        return lacking(settings) or ("constraints" if any(constraints or ()) else None)

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
            with self._turn:
                return self.reference.search(
                    sources, settings, n_best=n_best, attention=attention, constraints=constraints
                )
        lengths = torch.tensor([len(source) + 1 for source in sources])
        limits = self.reference.limits(lengths, settings).tolist()
        found = self._found(sources, settings, n_best=n_best, longest=max(limits), scores=scores)
        unsure = [
            row
            for row, hypotheses in enumerate(found)
            if len(hypotheses) < n_best or any(len(h.tokens) >= limits[row] for h in hypotheses)
        ]
        if unsure:  # they reached a limit, at which the reference ends a sentence properly
            with self._turn:
                better = self.reference.search(
                    [sources[row] for row in unsure], settings, n_best=n_best
                )
            for row, hypotheses in zip(unsure, better, strict=True):
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

    def _found(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodingSettings,
        *,
        n_best: int,
        longest: int,
        scores: bool,
    ) -> list[list[Hypothesis]]:
        """Return what CTranslate2 finds; less than n_best where it cannot be trusted."""
        penalty = _penalty(settings)
        short = [row for row, source in enumerate(sources) if len(source) < self._positions]
        results = self._translate(
            [sources[row] for row in short],
            beam_size=settings.beam,
            patience=1 + self._more(settings, n_best) / settings.beam,
            num_hypotheses=n_best,
            length_penalty=penalty,
            repetition_penalty=settings.repetition_penalty,
            min_decoding_length=0,
            max_decoding_length=min(longest, self._positions),
            # To a greedy search they are no use: it would normalise them for us alone.
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

    def _more(self, settings: DecodingSettings, n_best: int) -> int:
        """Return how many finished outputs beyond the width of the beam it shall wait for."""
        penalty = _penalty(settings)
        if penalty <= 1 and self.compute_type != "float32":
            return 0  # rounded weights find other outputs anyhow: there it may stop when it likes
        usual = next((more for highest, more in MORE.items() if penalty <= highest), 0)
        more = self.waits.get(wait_key(settings), usual)
        return more if n_best == 1 else max(more, settings.beam)

    def _translate(self, sources: Sequence[Sequence[int]], **options: Any) -> list[Any]:
        if not sources:
            return []
        names = self._source_names
        shares = shared_out(
            [len(source) + 1 for source in sources],  # with an end mark
            workers=self.threads.workers,
            most=max(1, WORKER_ROWS // options["beam_size"]),
        )
        begun = [
            self._translator.translate_batch(
                [[names[number] for number in sources[row]] for row in rows],
                asynchronous=True,
                max_input_length=0,
                return_end_token=True,
                use_vmap=self._shortlist,
                **options,
            )
            for rows in shares
        ]
        found: dict[int, Any] = {}
        for rows, results in zip(shares, begun, strict=True):
            found |= {row: one.result() for row, one in zip(rows, results, strict=True)}
        return [found[row] for row in range(len(sources))]

    def _with_attention(
        self, sources: Sequence[Sequence[int]], found: list[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Return the same with the weights behind them."""
        places = [(row, rank) for row, some in enumerate(found) for rank in range(len(some))]
        maps = attention_over(
            self.reference.model,
            [sources[row] for row, _ in places],
            [found[row][rank].tokens for row, rank in places],
        )
        for (row, rank), weights in zip(places, maps, strict=True):
            found[row][rank] = replace(found[row][rank], attention=weights)
        return found


def lacking(settings: DecodingSettings) -> str | None:
    """Name what CTranslate2 lacks for such a search, or would do otherwise.

    It draws samples in an order of its own, and where it forbids symbols (minimum length, n-grams,
    constraints) it shares out their probability, which changes the scores.
    """
    if settings.method != "beam":
        return f'method = "{settings.method}"'
    if settings.length_penalty_kind == "wu":
        return 'length_penalty_kind = "wu"'
    if settings.beam > 1 and _penalty(settings) > HIGHEST_PENALTY:
        return f"length_penalty above {HIGHEST_PENALTY:g}"
    unchanged = type(settings).model_fields
    for name in (
        "coverage_penalty",
        "diversity_groups",
        "min_length",
        "min_ratio",
        "no_repeat_ngram",
    ):
        if getattr(settings, name) != unchanged[name].default:
            return name
    return None


def wait_key(settings: DecodingSettings) -> tuple[int, float]:
    """Return what decides how long CTranslate2 must wait: the beam and its length penalty."""
    return settings.beam, _penalty(settings)


def shared_out(lengths: Sequence[int], *, workers: int, most: int) -> list[list[int]]:
    """Return rows in batches, the longest first, as many batches for each worker.

    They have at most so many rows on average, and each is about as much work: half of all work goes
    by the lengths of the sentences, half by their number.
    """
    array = np.array(lengths)
    needed = max(-(-len(array) // most), -(-int(array.sum()) // WORKER_TOKENS))
    batches = min(-(-needed // workers) * workers, len(array))
    order = np.argsort(-array, kind="stable")
    work = array[order] + array.mean()
    middle = work.cumsum() - work / 2
    batch = (middle * batches / work.sum()).astype(np.int64)
    return [order[batch == one].tolist() for one in range(batches) if one in batch]


def _penalty(settings: DecodingSettings) -> float:
    """Return the exponent of the length that scores are divided by."""
    return 0.0 if settings.length_penalty_kind == "none" else settings.length_penalty
