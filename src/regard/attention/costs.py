"""What the layers of a model cost besides the loss of its tokens."""

from torch import nn

from regard.attention.experts import MixtureOfExperts
from regard.attention.patterns import AdaptiveSpan
from regard.attention.probe import Probe, Site
from regard.base.shapes import Float, Tensor


class LayerCosts:
    """Adds up the costs of gates in one pass, and those of learned spans, for the loss.

    Give `probing` to the call of the model: attention keeps its fast kernels, and a model without
    experts gets nothing.
    """

    def __init__(self, model: nn.Module):
        self._gated = any(isinstance(part, MixtureOfExperts) for part in model.modules())
        self._spans = [part for part in model.modules() if isinstance(part, AdaptiveSpan)]
        self._total: Float[Tensor, ""] | None = None

    @property
    def probing(self) -> dict[str, Probe]:
        """The argument with which a model is called."""
        return {"probe": Probe(self._collect, attention=False)} if self._gated else {}

    def added_to(
        self, objective: Float[Tensor, ""], *, tokens: int, share: float = 1.0
    ) -> Float[Tensor, ""]:
        """Return a loss that is summed over tokens, with a share of the costs of gates."""
        if self._total is not None:
            objective = objective + share * self._total
        for span in self._spans:
            objective = objective + tokens * span.cost
        return objective

    def _collect(self, site: Site, name: str, value: Tensor) -> Tensor:
        if name == "gate cost":
            self._total = value if self._total is None else self._total + value
        return value
