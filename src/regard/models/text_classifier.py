"""A classifier of texts: the network of a language model, and a layer on what it read."""

from typing import Any

from torch import nn

from regard.attention.probe import Probe
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.dropout import Dropout
from regard.models.language_model import LanguageModel
from regard.transformer.encoder import BidirectionalTransformer


class TextClassifier(nn.Module):
    """softmax(W mean_t f_t + b) over the features of a language model (Radford et al. 2018, 3.2).

    It takes the mean over all positions, and not the last one: that learns faster from few labels.
    """

    def __init__(self, *, backbone: nn.Module, head: nn.Linear, dropout: float = 0.0):
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.dropout = Dropout(dropout)

    def forward(
        self,
        tokens: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
        *,
        probe: Probe | None = None,
    ) -> Float[Tensor, "batch labels"]:
        """Return the logits of the labels; padding at the end is seen by no real position."""
        backbone: Any = self.backbone
        if isinstance(backbone, BidirectionalTransformer):  # it would see the padding too
            output, _ = backbone(tokens, mask=mask, probe=probe)
        else:
            output, _ = backbone(tokens, backbone.start(len(tokens)), probe=probe)
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
    return TextClassifier(backbone=model.backbone, head=head, dropout=dropout)
