"""The optimiser of a translator's training."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from regard.attention.multihead import MultiHeadAttention
from regard.base.errors import SettingsError
from regard.models.translator import Translator
from regard.settings.translation import TrainingSettings
from regard.training.optimisers import Matrix, Muon

BETAS = (0.9, 0.98)  # Vaswani et al. 2017, section 5.3
# Of Muon's matrices, as a multiple of the rate of all else. The tables of symbols want large steps:
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


def matrices_of(model: Translator[Any]) -> list[Matrix]:
    """Return what maps features to features in attention and feed-forward networks.

    Tables of symbols are not among them: each of their rows stands for itself. One matrix makes
    queries, keys and values, which are three.
    """
    parts = {
        module.projection.weight: 3
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    }
    linear = (
        module.weight
        for side in (model.encoder, model.decoder)
        for module in side.modules()
        if isinstance(module, nn.Linear)
    )
    return [Matrix(weight, parts.get(weight, 1)) for weight in linear]
