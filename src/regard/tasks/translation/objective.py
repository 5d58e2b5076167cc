"""What training a translator minimises, the optimiser that does it, and the validation."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from regard.attention.costs import LayerCosts
from regard.attention.lookup import coverage_penalty
from regard.attention.multihead import MultiHeadAttention
from regard.base.errors import SettingsError
from regard.base.results import Output
from regard.base.shapes import Tensor
from regard.batching.augmentation import drop_words
from regard.batching.batch import Batch, Example, collate, sorted_batches
from regard.compute.device import beside
from regard.compute.group import shared_out
from regard.corpora.parallel import SentencePair
from regard.models.translator import Translator
from regard.scoring.bleu import corpus_bleu
from regard.tasks.translation.model import LoadedTranslator
from regard.tasks.translation.settings import TrainingSettings
from regard.training.losses import LossSum, chunked_token_loss, r_drop_loss
from regard.training.objective import Validation
from regard.training.optimisers import Muon, MuonMatrix

LEAST_WEIGHT = 1e-8  # of attention, so that its logarithm is finite


def training_loss(
    model: Translator[Any],
    batch: Batch,
    *,
    smoothing: float,
    coverage: float,
    word_dropout: float,
    r_drop: float,
    alignment: float = 0.0,
) -> LossSum:
    """Return the summed loss of a training batch."""
    shares = {"coverage": coverage, "alignment": alignment}
    if r_drop:
        return _consistent_loss(
            model, batch, smoothing=smoothing, word_dropout=word_dropout, strength=r_drop, **shares
        )
    if word_dropout:
        batch = drop_words(batch, word_dropout)
    return batch_loss(model, batch, smoothing=smoothing, **shares)


def batch_loss(
    model: Translator[Any],
    batch: Batch,
    *,
    smoothing: float,
    coverage: float = 0.0,
    alignment: float = 0.0,
) -> LossSum:
    """Return the summed loss of a batch, with what its attention costs if that is asked for."""
    tokens, batch = batch.target_tokens, beside(model, batch)
    attends = bool(coverage or (alignment and batch.alignment is not None))
    costs = LayerCosts(model)
    output = model(
        batch.source, batch.source_mask, batch.target_input, with_weights=attends, **costs.probing
    )
    loss = chunked_token_loss(
        output.features,
        expected=batch.target_output,
        mask=batch.target_mask,
        weight=model.projection.weight,
        bias=model.projection.bias,
        smoothing=smoothing,
    )
    loss = loss._replace(objective=costs.added_to(loss.objective, tokens=tokens))
    cost = _attention_cost(output, batch, coverage=coverage, alignment=alignment)
    return loss if cost is None else loss._replace(objective=loss.objective + cost)


def _attention_cost(
    output: Output, batch: Batch, *, coverage: float, alignment: float
) -> Tensor | None:
    """Return the penalty on looking twice, and the loss of the head that is taught to align."""
    weights, cost = output.attention, None
    if weights is None:
        return None
    if coverage:
        cost = coverage * coverage_penalty(weights, batch.target_mask)
    if alignment and batch.alignment is not None:
        # -sum_ij G_ij log A_ij (Garg et al. 2019, eq. 3)
        missed = -(batch.alignment * weights.float().clamp_min(LEAST_WEIGHT).log()).sum()
        cost = alignment * missed + (0.0 if cost is None else cost)
    return cost


def _consistent_loss(
    model: Translator[Any],
    batch: Batch,
    *,
    smoothing: float,
    coverage: float,
    alignment: float,
    word_dropout: float,
    strength: float,
) -> LossSum:
    """Return the loss of two passes with other dropout, made as one batch of twice the rows."""
    given = {field.name: getattr(batch, field.name) for field in fields(batch)}
    doubled: dict[str, Any] = {
        name: part if part is None else torch.cat([part] * 2) for name, part in given.items()
    }
    twice = Batch(**doubled)
    if word_dropout:
        twice = drop_words(twice, word_dropout)
    tokens, (batch, twice) = batch.target_tokens, beside(model, (batch, twice))
    attends = bool(coverage or (alignment and batch.alignment is not None))
    costs = LayerCosts(model)
    output = model(
        twice.source, twice.source_mask, twice.target_input, with_weights=attends, **costs.probing
    )
    loss = r_drop_loss(
        output.features.chunk(2),
        expected=batch.target_output,
        mask=batch.target_mask,
        weight=model.projection.weight,
        bias=model.projection.bias,
        smoothing=smoothing,
        strength=strength,
    )
    loss = loss._replace(objective=costs.added_to(loss.objective, tokens=tokens, share=0.5))
    cost = _attention_cost(output, twice, coverage=coverage, alignment=alignment)
    return loss if cost is None else loss._replace(objective=loss.objective + cost / 2)


BETAS = (0.9, 0.98)  # Vaswani et al. 2017, section 5.3
# Of Muon's matrices, as a multiple of the rate of all else. The embeddings want large steps:
# on Multi30k (transformer-tiny, 1,000 updates, matrices at 0.006) the validation loss was 2.58
# with tables at 0.003, 2.39 at 0.005 and 2.25 at 0.01; AdamW alone had 2.81 at 0.003.
MATRIX_RATE = 0.6


def optimizer_of(model: Translator[Any], settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return the optimiser that the settings name."""
    if settings.optimizer == "adam":
        return torch.optim.AdamW(
            model.parameters(), betas=BETAS, weight_decay=settings.weight_decay, fused=True
        )
    matrices = matrices_of(model)
    if not matrices:
        raise SettingsError(
            'training.optimizer = "muon" is for the matrices of a Transformer, and this model has '
            'none; use "adam".'
        )
    chosen = {matrix.parameter for matrix in matrices}
    return Muon(
        matrices,
        [parameter for parameter in model.parameters() if parameter not in chosen],
        betas=BETAS,
        weight_decay=settings.weight_decay,
        matrix_rate=MATRIX_RATE,
    )


def matrices_of(model: Translator[Any]) -> list[MuonMatrix]:
    """Return what maps features to features in attention and feed-forward networks.

    Embeddings are not among them: each of their rows stands for itself. One matrix makes
    queries, keys and values, which are three.
    """
    parts = {
        # As many as keys have rows in; grouped queries are several of that size.
        module.projection.weight: module.heads // module.groups + 2
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    }
    linear = (
        module.weight
        for side in (model.encoder, model.decoder)
        for module in side.modules()
        if isinstance(module, nn.Linear)
    )
    return [MuonMatrix(weight, parts.get(weight, 1)) for weight in linear]


VALIDATION_TOKENS = 4_096
LEAST_BLEU = 1.0


def validate(
    translator: LoadedTranslator,
    examples: Sequence[Example],
    pairs: Sequence[SentencePair],
    *,
    select: str,
    beam: int = 1,
) -> Validation:
    """Return the loss over all validation examples and the BLEU of some; greedy is fast."""
    lengths = [example.lengths for example in examples]

    def sums(batches: Sequence[list[int]]) -> list[tuple[float, int]]:
        found = []
        for rows in batches:
            batch = collate([examples[row] for row in rows])
            nats = float(batch_loss(translator.model, batch, smoothing=0.0).nats)
            found.append((nats, batch.target_tokens))
        return found

    def translations(sources: Sequence[str]) -> list[str]:
        found = translator.translate(list(sources), beam=beam, attention=False)
        return [one.text for one in found]

    losses = shared_out(sorted_batches(lengths, token_budget=VALIDATION_TOKENS), sums)
    texts = shared_out([pair.source for pair in pairs], translations)
    bleu = corpus_bleu(texts, [pair.target for pair in pairs]).value
    loss = sum(nats for nats, _ in losses) / sum(tokens for _, tokens in losses)
    return Validation(
        metrics={"loss": loss, "bleu": bleu},
        # A BLEU near zero is chance: until it means something, the loss decides.
        value=-bleu if select == "bleu" and bleu >= LEAST_BLEU else loss,
    )
