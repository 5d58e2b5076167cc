"""A batch in parts."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

AnyBatch = TypeVar("AnyBatch")


def split_rows(batch: AnyBatch, count: int) -> list[AnyBatch]:
    """Return the rows of a batch, a dataclass of tensors, in at most so many parts alike in size.

    Neighbours are of like length, so the parts take turns.
    """
    tensors = {field.name: getattr(batch, field.name) for field in fields(batch)}  # type: ignore[arg-type]
    parts = min(count, len(next(iter(tensors.values()))))
    return [
        type(batch)(**{name: tensor[first::parts] for name, tensor in tensors.items()})
        for first in range(parts)
    ]
