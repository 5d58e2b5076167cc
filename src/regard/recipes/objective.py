"""What a translator's training minimises: the loss of a batch, and what regularises it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

from regard.attention.lookup import coverage_penalty
from regard.batching.augmentation import drop_words
from regard.batching.batch import Batch
from regard.models.translator import Translator
from regard.training.losses import LossSum, chunked_token_loss, r_drop_loss


def training_loss(
    model: Translator[Any],
    batch: Batch,
    *,
    smoothing: float,
    coverage: float,
    word_dropout: float,
    r_drop: float,
) -> LossSum:
    """Return the summed loss of a training batch."""
    if r_drop:
        return _consistent_loss(
            model,
            batch,
            smoothing=smoothing,
            coverage=coverage,
            word_dropout=word_dropout,
            strength=r_drop,
        )
    if word_dropout:
        batch = drop_words(batch, word_dropout)
    return batch_loss(model, batch, smoothing=smoothing, coverage=coverage)


def batch_loss(
    model: Translator[Any], batch: Batch, *, smoothing: float, coverage: float = 0.0
) -> LossSum:
    """Return the summed loss of a batch, with a penalty on looking twice if it is asked for."""
    output = model(batch.source, batch.source_mask, batch.target_input, with_weights=coverage > 0)
    loss = chunked_token_loss(
        output.features,
        expected=batch.target_output,
        mask=batch.target_mask,
        weight=model.projection.weight,
        bias=model.projection.bias,
        smoothing=smoothing,
    )
    if not coverage or output.attention is None:
        return loss
    penalty = coverage_penalty(output.attention, batch.target_mask)
    return loss._replace(objective=loss.objective + coverage * penalty)


def _consistent_loss(
    model: Translator[Any],
    batch: Batch,
    *,
    smoothing: float,
    coverage: float,
    word_dropout: float,
    strength: float,
) -> LossSum:
    """Return the loss of two passes with other dropout, made as one batch of twice the rows."""
    twice = Batch(**{f.name: torch.cat([getattr(batch, f.name)] * 2) for f in fields(batch)})
    if word_dropout:
        twice = drop_words(twice, word_dropout)
    output = model(twice.source, twice.source_mask, twice.target_input, with_weights=coverage > 0)
    first, second = output.features.chunk(2)
    loss = r_drop_loss(
        first,
        second,
        expected=batch.target_output,
        mask=batch.target_mask,
        weight=model.projection.weight,
        bias=model.projection.bias,
        smoothing=smoothing,
        strength=strength,
    )
    if not coverage or output.attention is None:
        return loss
    penalty = coverage_penalty(output.attention, twice.target_mask) / 2
    return loss._replace(objective=loss.objective + coverage * penalty)
