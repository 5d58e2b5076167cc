"""Small trainings on Multi30k that benchmarks compare: the same updates, some CPU minutes each."""

from __future__ import annotations

import gzip
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from regard.corpora.parallel import SentencePair
from regard.runs.run import finish_or_start
from regard.scoring.bleu import corpus_bleu
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.data import Splits
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

DATA = Path(os.environ.get("REGARD_DATA", Path(__file__).parents[2] / "shared" / "data"))
NAMES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
SETTINGS = ["tokenizer.size=4000", "training.average=0", "decoding.beam=1", "training.processes=1"]


def multi30k(part: str, pair: str = "en-de") -> list[SentencePair]:
    """Return the raw pairs of one part of Multi30k; the test part is that of 2016."""
    folder = DATA / "multi30k" / "raw"
    sides = [
        gzip.decompress((folder / f"{NAMES[part]}.{code}.gz").read_bytes()).decode().splitlines()
        for code in pair.split("-")
    ]
    return [SentencePair(*texts) for texts in zip(*sides, strict=True)]


def train(
    folder: Path,
    pairs: Sequence[SentencePair],
    valid: Sequence[SentencePair],
    *,
    steps: int,
    settings: Sequence[str] = (),
) -> LoadedTranslator:
    """Train transformer-tiny for `steps` updates; what is there already is not trained again."""
    warmup = min(400, steps // 6)
    limits = [
        f"training.steps={steps}",
        f"training.validate_every={steps}",
        f"training.warmup={warmup}",
    ]
    overrides = [*SETTINGS, *limits, "data.from_memory=true", *settings]
    recipe = expect(find_recipe("transformer-tiny", overrides=overrides), TranslationRecipe)
    splits = Splits(list(pairs), list(valid), [])
    return train_translator(recipe, finish_or_start(folder, recipe), splits=splits).model


def bleu(model: LoadedTranslator, pairs: Sequence[SentencePair], *, beam: int = 1) -> float:
    """Return cased BLEU (13a) of the translations of these pairs."""
    found = model.translate([pair.source for pair in pairs], attention=False, beam=beam)
    score = corpus_bleu([one.text for one in found], [pair.target for pair in pairs])
    return round(score.value, 2)


def cpu_minutes() -> float:
    """Return the CPU time that this process and its children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) / 60
