"""Dropout."""

from __future__ import annotations

from torch import nn


class Dropout(nn.Dropout):
    """Zeroes a share of its input in training and scales the rest (Srivastava et al. 2014)."""
