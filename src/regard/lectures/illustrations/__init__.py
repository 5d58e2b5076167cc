"""What a lecture says of attention, computed with small numbers that a class can follow.

Each illustration is a function of a few numbers that a reader may change (a slider, `--set`), and
returns an `Illustration`: matrices with names, the equation, and the sentence that they show.
"""

from regard.lectures.illustrations.catalogue import (
    ILLUSTRATIONS,
    illustrate,
    options,
    read_options,
)
from regard.lectures.illustrations.illustration import Illustration

__all__ = ["ILLUSTRATIONS", "Illustration", "illustrate", "options", "read_options"]
