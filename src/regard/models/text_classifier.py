"""A classifier of texts: a network that reads from left to right, and a layer on what it read."""

from __future__ import annotations

from typing import Any

from torch import nn

from regard.attention.dropout import Dropout
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.models.language_model import LanguageModel


class TextClassifier(nn.Module):
    """softmax(W mean_t f_t + b) over the features of a language model (Radford et al. 2018, 3.2).

    The mean over all positions in place of the last one: with few labels it is learned faster.
    """

    def __init__(self, *, reader: nn.Module, head: nn.Linear, dropout: float = 0.0):
        super().__init__()
        self.reader = reader
        self.head = head
        self.dropout = Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "batch time"], mask: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch labels"]:
        """Return the logits of the labels; padding at the end is seen by no real position."""
        reader: Any = self.reader
        output, _ = reader(tokens, reader.start(len(tokens)))
        real = mask[:, :, None].to(output.features.dtype)
        mean = (output.features * real).sum(dim=1) / real.sum(dim=1)
        logits: Tensor = self.head(self.dropout(mean))
        return logits


def classifier_of(
    model: LanguageModel[Any], *, labels: int, dropout: float = 0.0
) -> TextClassifier:
    """Return a classifier with the network of a language model and a fresh layer on top."""
    head = nn.Linear(model.projection.in_features, labels)
    nn.init.normal_(head.weight, std=0.02)
    nn.init.zeros_(head.bias)
    return TextClassifier(reader=model.reader, head=head, dropout=dropout)
