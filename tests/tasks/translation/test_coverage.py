from __future__ import annotations

import pytest
import torch

from regard.attention.lookup import coverage_penalty
from regard.batching.batch import Example, collate
from regard.models.build import build_translator
from regard.settings.models import RecurrentSettings
from regard.tasks.translation.objective import batch_loss

BATCH = collate([Example([4, 5, 6], [5, 4]), Example([7], [8, 8, 8])])


@pytest.mark.parametrize("decoder", ["luong", "bahdanau"])
def test_the_penalty_is_added_to_the_objective_and_not_to_the_nats(decoder: str) -> None:
    torch.manual_seed(1)
    settings = RecurrentSettings.model_validate({"hidden": 6, "embedding": 4, "decoder": decoder})
    model = build_translator(settings, source_vocab=9, target_vocab=9).eval()
    plain = batch_loss(model, BATCH, smoothing=0.0)
    covered = batch_loss(model, BATCH, smoothing=0.0, coverage=0.5)
    weights = model(
        BATCH.source, BATCH.source_mask, BATCH.target_input, with_weights=True
    ).attention
    assert weights is not None
    penalty = coverage_penalty(weights, BATCH.target_mask)
    assert penalty > 0
    torch.testing.assert_close(covered.objective, plain.objective + 0.5 * penalty)
    torch.testing.assert_close(covered.nats, plain.nats)


def test_without_attention_there_is_nothing_to_cover() -> None:
    settings = RecurrentSettings(hidden=6, embedding=4, attention="none", dropout=0.0)
    model = build_translator(settings, source_vocab=9, target_vocab=9)
    plain, covered = (batch_loss(model, BATCH, smoothing=0.0, coverage=c) for c in (0.0, 1.0))
    torch.testing.assert_close(plain.objective, covered.objective)
