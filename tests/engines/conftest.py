"""CTranslate2 with a model that was never trained, and sentences for it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.engines.ctranslate2_engine import CTranslate2Engine, Threads
from regard.engines.preparation import converted, converted_engine
from regard.settings.decoding import DecodingSettings
from regard.tasks.translation.model import LoadedTranslator

Sources = list[list[int]]


def fast_engine(loaded: LoadedTranslator, *, workers: int = 1) -> CTranslate2Engine:
    """Return the engine, with all of its conversion in memory."""
    with converted(loaded, run=None) as folder:
        return converted_engine(loaded, folder, threads=Threads(workers, 1))


def random_sources(loaded: LoadedTranslator, *, seed: int, count: int, longest: int) -> Sources:
    """Return sentences of random tokens."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (count,), generator=random).tolist()
    vocab = loaded.source_tokenizer.size
    return [torch.randint(4, vocab, (n,), generator=random).tolist() for n in lengths]


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The batches that CTranslate2 gets from engines that are made from now on, with options."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    found: list[dict[str, Any]] = []

    class Recorded(ctranslate2.Translator):  # type: ignore[misc]
        def translate_batch(self, source: list[list[str]], **options: Any) -> Any:
            found.append({"source": source, **options})
            return super().translate_batch(source, **options)

    monkeypatch.setattr(ctranslate2, "Translator", Recorded)
    return found


def decoding(**chosen: Any) -> DecodingSettings:
    return DecodingSettings(**chosen)
