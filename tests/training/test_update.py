from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.batching.batch import Batch, Example, collate
from regard.models.build import build_translator
from regard.settings.models import RecurrentSettings
from regard.training.losses import LossSum, token_loss
from regard.training.update import UpdateResult, add_gradient, update

VOCAB = 12
IDS = st.lists(st.integers(4, VOCAB - 1), min_size=1, max_size=6).map(tuple)
PAIRS = st.lists(st.tuples(IDS, IDS), min_size=2, max_size=8)


def after_update(
    groups: list[list[Example]], *, clip: float = 1.0, smoothing: float = 0.1
) -> tuple[nn.Module, UpdateResult]:
    """Return a fresh model after one update on these micro-batches."""
    torch.manual_seed(1)
    chosen = RecurrentSettings(cell="gru", hidden=8, embedding=6, dropout=0.0)
    model = build_translator(chosen, source_vocab=VOCAB, target_vocab=VOCAB)

    def loss_sum(batch: Batch) -> LossSum:
        output = model(batch.source, batch.source_mask, batch.target_input)
        return token_loss(
            output.features,
            expected=batch.target_output,
            mask=batch.target_mask,
            project=model.project,
            smoothing=smoothing,
        )

    result = update(
        [collate(group) for group in groups],
        add_gradient=partial(add_gradient, loss_sum),
        parameters=list(model.parameters()),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
        clip=clip,
    )
    return model, result


@settings(deadline=None, max_examples=20)
@given(pairs=PAIRS, data=st.data())
def test_micro_batches_equal_one_large_batch(
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], data: st.DataObject
) -> None:
    examples = [Example(*pair) for pair in pairs]
    cut = data.draw(st.integers(1, len(examples) - 1))
    whole, expected = after_update([examples])
    parts, result = after_update([examples[:cut], examples[cut:]])
    single, _ = after_update([[example] for example in examples])
    assert result.tokens == expected.tokens == sum(example.lengths[1] for example in examples)
    assert result.loss == pytest.approx(expected.loss, abs=1e-5)
    for other in (parts, single):
        for mine, wanted in zip(other.parameters(), whole.parameters(), strict=True):
            torch.testing.assert_close(mine, wanted, atol=1e-6, rtol=1e-5)


EXAMPLE = [Example((4, 5, 6), (7, 8)), Example((9,), (10, 4, 5))]


def moved(clip: float) -> tuple[float, float]:
    """Return how far an update with learning rate 0.5 moved the weights, and its gradient norm."""
    start, _ = after_update([EXAMPLE], clip=1e-30)
    model, result = after_update([EXAMPLE], clip=clip)
    change = [a - b for a, b in zip(model.parameters(), start.parameters(), strict=True)]
    return float(nn.utils.get_total_norm(change)), result.gradient_norm


def test_a_large_gradient_is_clipped_and_its_norm_reported_as_it_was() -> None:
    distance, norm = moved(clip=0.01)
    assert norm > 0.01
    assert distance == pytest.approx(0.5 * 0.01, rel=1e-2)


def test_a_small_gradient_is_left_alone() -> None:
    distance, norm = moved(clip=1e6)
    assert distance == pytest.approx(0.5 * norm, rel=1e-3)


def test_the_reported_loss_is_the_mean_without_smoothing() -> None:
    _, plain = after_update([EXAMPLE], smoothing=0.0)
    _, smoothed = after_update([EXAMPLE], smoothing=0.3)
    assert smoothed.loss == pytest.approx(plain.loss)
    assert plain.tokens == 7
