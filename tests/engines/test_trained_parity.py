"""A model that has learned something: both engines say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.engines.choice import choose_engine
from regard.engines.torch_engine import TorchEngine
from regard.runs.run import open_run
from regard.settings.recipe import expect
from regard.tasks import find_recipe
from regard.tasks.translation.model import load
from regard.tasks.translation.settings import TranslationRecipe
from regard.tasks.translation.training import train_translator

pytest.importorskip("ctranslate2")

SMALL = [
    "model.layers=1",
    "model.model_dim=32",
    "model.heads=2",
    "model.feed_forward=64",
    "model.dropout=0",
    "model.norm_placement=pre",
    "training.label_smoothing=0",
    "training.optimizer=adam",
    "training.steps=200",
    "training.learning_rate=0.01",
    "training.warmup=50",
    "training.validate_every=200",
    "training.validate_sentences=5",
]


@pytest.mark.learning
def test_ctranslate2_and_torch_translate_the_same(
    toy_settings: list[str], toy_corpus: Path, tmp_path: Path
) -> None:
    general = [line for line in toy_settings if not line.startswith("model.")]
    recipe = expect(
        find_recipe("transformer-tiny", overrides=[*general, *SMALL]), TranslationRecipe
    )
    train_translator(recipe, open_run(tmp_path / "run", recipe, resume=False))
    lines = [
        line
        for name in ("valid", "test")
        for line in (toy_corpus / f"{name}.src").read_text("utf-8").splitlines()
    ]
    translator = load(tmp_path / "run")
    for beam in (1, 5):
        translator.engine = choose_engine(translator, engine="ctranslate2", threads=1)
        found = translator.translate(lines, beam=beam, attention=False)
        translator.engine = TorchEngine(translator.model)
        wanted = translator.translate(lines, beam=beam, attention=False)
        pairs = list(zip(found, wanted, strict=True))
        same = [(ours, theirs) for ours, theirs in pairs if ours.text == theirs.text]
        assert len(same) >= 0.99 * len(lines)
        assert max(abs(ours.score - theirs.score) for ours, theirs in same) < 1e-3
