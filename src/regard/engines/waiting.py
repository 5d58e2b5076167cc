"""How long CTranslate2 waits for a better output, so that it finds what the reference finds.

CTranslate2 ends a search when so many outputs are finished, the reference when no better one can
come. How many are enough differs between models: of two that were trained alike, English-German
needed three more than the beam is wide, English-French ten. It is measured when a model is trained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from regard.batching.buckets import sorted_batches
from regard.engines.conversion import TranslatorParts, converted, fingerprint
from regard.engines.ctranslate2_engine import CTranslate2Engine, Threads, wait_key
from regard.engines.memory import remember, remembered
from regard.engines.torch_engine import TorchEngine
from regard.settings.decoding import DecodingSettings

WAITS = "waits.json"
TRIED = (0, 1, 2, 3, 5, 10, 20)  # outputs more than the beam is wide
DIFFERENT = 0.01  # of all sentences: fewer outputs than that shall not be the reference's
CHANCE = 0.05  # of seeing so few among the sentences that it is measured on, if it were as many


@dataclass(frozen=True)
class Wait:
    """Outputs beyond the width of the beam, and of how many sentences the best was found so."""

    more: Annotated[int, Field(ge=0, le=max(TRIED))]
    same: Annotated[float, Field(ge=0, le=1)]
    sentences: int


def measure_wait(
    translator: TranslatorParts, run: Path, sources: Sequence[Sequence[int]], *, cores: int
) -> Wait:
    """Find the shortest wait that gives the reference's outputs, and keep it beside the run."""
    reference = TorchEngine(translator.model)
    with converted(translator, run=run) as folder:
        engine = CTranslate2Engine(
            folder,
            reference=reference,
            source_tokenizer=translator.source_tokenizer,
            target_tokenizer=translator.target_tokenizer,
            threads=Threads(cores, 1),
        )
    settings = translator.recipe.decoding
    found = shortest_wait(engine, sources, settings)
    remember(run, WAITS, _key(fingerprint(translator), settings), asdict(found))
    return found


def shortest_wait(
    engine: CTranslate2Engine, sources: Sequence[Sequence[int]], settings: DecodingSettings
) -> Wait:
    """Return the first wait that suffices, or the longest; a longer one changes no right output."""
    wanted: dict[int, tuple[int, ...]] = {}
    lengths = [(len(source) + 1, 0) for source in sources]
    for rows in sorted_batches(lengths, token_budget=engine.reference.batch_tokens):
        best = engine.reference.search([sources[row] for row in rows], settings)
        wanted |= {row: some[0].tokens for row, some in zip(rows, best, strict=True)}
    others = list(wanted)
    for more in TRIED:
        engine.waits[wait_key(settings)] = more
        found = engine.search([sources[row] for row in others], settings)
        others = [
            row for row, some in zip(others, found, strict=True) if some[0].tokens != wanted[row]
        ]
        if surely_few(len(others), len(sources)):
            break
    return Wait(more, 1 - len(others) / len(sources), len(sources))


def surely_few(different: int, sentences: int) -> bool:
    """Return whether so few of these sentences show that few of all are different."""
    so_few = sum(
        math.comb(sentences, count) * DIFFERENT**count * (1 - DIFFERENT) ** (sentences - count)
        for count in range(different + 1)
    )
    return so_few < CHANCE


def known_wait(run: Path | None, model: str, settings: DecodingSettings) -> Wait | None:
    """Return what was measured of the model of this fingerprint, if anything was."""
    found = remembered(run, WAITS).get(_key(model, settings))
    try:
        return TypeAdapter(Wait).validate_python(found)
    except ValidationError:  # there is none, or it is not ours
        return None


def _key(model: str, settings: DecodingSettings) -> str:
    beam, penalty = wait_key(settings)
    release = version("ctranslate2")
    return f"{model}, ctranslate2 {release}, beam {beam}, length penalty {penalty:g}"
