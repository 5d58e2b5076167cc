from __future__ import annotations

import pytest
import torch

from regard.engines.engine import Engine
from regard.engines.torch_engine import TorchEngine
from regard.models.build import build_translator
from regard.settings.transformer import TransformerSettings


@pytest.fixture(scope="module")
def engine() -> TorchEngine:
    settings = TransformerSettings(layers=2, model_dim=16, heads=2, feed_forward=24)
    torch.manual_seed(1)
    return TorchEngine(build_translator(settings, source_vocab=20, target_vocab=12))


def test_it_keeps_the_protocol(engine: TorchEngine) -> None:
    assert isinstance(engine, Engine)
