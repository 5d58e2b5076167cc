"""When a node classifier is good: by validation loss, by accuracy, or by both at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any


class EarlyStopping:
    """Judges validations in their order.

    By "both", training goes on while either figure gets better, and the best model is the last one
    at which loss and accuracy were both the best so far: the rule of Velickovic et al. 2018.
    """

    def __init__(self, select: str, *, earlier: Iterable[Mapping[str, Any]] = ()):
        self._select = select
        self._loss, self._accuracy = math.inf, -math.inf
        self._improvements = 0
        self.chosen = False
        for row in earlier:  # a resumed training has seen these
            self.value(row["loss"], row["accuracy"])

    def value(self, loss: float, accuracy: float) -> float:
        """Return a number that falls when the validation gives hope; `chosen` tells the best."""
        lower, higher = loss <= self._loss, accuracy >= self._accuracy
        self._loss, self._accuracy = min(loss, self._loss), max(accuracy, self._accuracy)
        if self._select != "both":
            self.chosen = True  # the loop keeps a model whenever the number falls
            return loss if self._select == "loss" else -accuracy
        self.chosen = lower and higher
        self._improvements += lower or higher
        return float(-self._improvements)
