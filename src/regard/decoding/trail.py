"""The way back from a prefix to its beginning: symbols and back-pointers of every step."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.shapes import Float, Int, Tensor


class Trail:
    """What every step of a search wrote, and from which row it came.

    Prefixes are read back only when they have won, so no step copies them.
    """

    def __init__(self, *, keep_weights: bool):
        self.keep_weights = keep_weights
        self.steps = 0
        self._parents: list[NDArray[np.int64]] = []
        self._symbols: list[NDArray[np.int64]] = []
        self._weights: list[Tensor | None] = []

    def look(self, weights: Float[Tensor, "rows source"] | None) -> None:
        """Note what the rows of a new step attended to."""
        self._weights.append(weights if self.keep_weights else None)
        self.steps += 1

    def follow(self, rows: Int[Tensor, "chosen"], symbols: Int[Tensor, "chosen"]) -> None:
        """Note the rows of the next step: what they continue, and with which symbol."""
        self._parents.append(rows.numpy())
        self._symbols.append(symbols.numpy())

    def read(self, *, step: int, row: int) -> tuple[tuple[int, ...], Tensor | None]:
        """Return what the row had written at the beginning of a step, and its attention.

        The attention has a row for each symbol and one for what came in that step.
        """
        tokens, rows = [], [row]
        for number in range(step - 1, -1, -1):
            tokens.append(int(self._symbols[number][row]))
            row = int(self._parents[number][row])
            rows.append(row)
        seen = [
            weights[row]
            for weights, row in zip(self._weights, reversed(rows), strict=False)
            if weights is not None
        ]
        return tuple(reversed(tokens)), torch.stack(seen) if seen else None
