"""The layer lens as people read it: the guesses of each layer at each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from regard.base.shapes import Float, Tensor
from regard.pictures.heat_map import write_map
from regard.tasks.looking import View

GUESSES = 5  # of each layer at each step


class LayerGuess(NamedTuple):
    """A token that a layer would have written, and how probable it finds it."""

    token: str
    probability: float


@dataclass(frozen=True)
class Lens:
    """What each layer would have said at each step; the first row is before any layer."""

    text: str
    read: tuple[str, ...]
    """The last token that was read at each step."""
    said: tuple[str, ...]
    """What the model said, or the text has, at each step."""
    guesses: tuple[tuple[tuple[LayerGuess, ...], ...], ...]
    """By layer and step, the most probable first."""
    probabilities: Float[np.ndarray, "layers steps"]
    """How probable each layer finds what was said."""

    @property
    def layers(self) -> tuple[str, ...]:
        """What the rows are called."""
        return ("input", *(f"layer {number}" for number in range(len(self.guesses) - 1)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "text": self.text,
            "read": list(self.read),
            "said": list(self.said),
            "layers": [
                {
                    "name": name,
                    "said": [round(float(value), 6) for value in row],
                    "guesses": [
                        [{"token": g.token, "probability": round(g.probability, 6)} for g in step]
                        for step in steps
                    ],
                }
                for name, row, steps in zip(
                    self.layers, self.probabilities, self.guesses, strict=True
                )
            ],
        }

    def __str__(self) -> str:
        rows = [["", *self.said]]
        for name, steps in zip(self.layers, self.guesses, strict=True):
            rows.append([name, *(f"{s[0].token} {100 * s[0].probability:.0f}%" for s in steps)])
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def lens_of(
    features: Sequence[Tensor],
    project: Callable[[Tensor], Tensor],
    pieces: Callable[[Sequence[int]], Sequence[str]],
    *,
    text: str,
    read: Sequence[str],
    said: Sequence[int],
) -> Lens:
    """Return the lens for what each layer has computed; `said` are the tokens of each step."""
    guesses, rows = [], []
    with torch.inference_mode():
        for each in features:
            chances = project(each).float().softmax(dim=-1)
            best = chances.topk(min(GUESSES, chances.shape[1]), dim=-1)
            names = pieces(best.indices.flatten().tolist())
            values, width = best.values.tolist(), best.values.shape[1]
            guesses.append(
                tuple(
                    tuple(map(LayerGuess, names[step * width : (step + 1) * width], values[step]))
                    for step in range(len(values))
                )
            )
            rows.append(chances[range(len(said)), list(said)].cpu().numpy())
    return Lens(text, tuple(read), tuple(pieces(said)), tuple(guesses), np.stack(rows))


def view_of_lens(lens: Lens) -> View:
    """Show what each layer would have said, and draw how probable it found what was said."""
    return View(
        record=lens.to_dict(),
        save=lambda path: write_map(
            lens.probabilities,
            source=lens.said,
            target=lens.layers,
            path=path,
            title="how probable each layer finds what was said",
        ),
        text=lens.text,
        shown=lambda width: str(lens),
    )
