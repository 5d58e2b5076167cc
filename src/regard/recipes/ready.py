"""What a run keeps of its data, so that it can be used where the data is not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regard.compute.processes import available_cores
from regard.corpora.parallel import SentencePair
from regard.engines.choice import problem_with_ctranslate2
from regard.engines.ctranslate2_engine import lacking
from regard.engines.preparation import (
    Patience,
    fingerprint,
    known_patience,
    measure_patience,
    surely_few,
)
from regard.recipes.data import Splits
from regard.recipes.examples import keep_examples
from regard.recipes.loaded import MOST_PIECES, LoadedTranslator
from regard.recipes.translate import Trained

SENTENCES = 1_000  # of them, 4 may differ


def make_ready(trained: Trained, splits: Splits) -> None:
    """Keep what translating and serving will want to know."""
    run = trained.run.folder
    prepare_fast_search(trained.model, run, splits.valid)
    keep_examples(run, (pair.source for pair in splits.test or splits.valid))


def prepare_fast_search(
    model: LoadedTranslator, run: Path, pairs: Sequence[SentencePair]
) -> Patience | None:
    """Measure how long CTranslate2 must wait with this model, if it can search with it at all.

    The pairs should not be those of the training, whose outputs the model is too sure of.
    """
    settings = model.recipe.decoding
    if settings.beam == 1 or lacking(settings) or problem_with_ctranslate2(model):
        return None
    known = known_patience(run, fingerprint(model), settings)
    if known is not None:
        return known
    encoded = [model.source_tokenizer.encode(pair.source) for pair in pairs[:SENTENCES]]
    sources = [ids for ids in encoded if 0 < len(ids) <= MOST_PIECES]
    if not surely_few(0, len(sources)):  # too few to show anything
        return None
    return measure_patience(model, run, sources, cores=available_cores())
