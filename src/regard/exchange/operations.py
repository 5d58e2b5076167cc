"""Operations between our tensors and those of other programs; each has a reverse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch

from regard.base.shapes import Tensor


class Operation(ABC):
    """What makes tensors of ours from tensors of theirs; `reverse` goes back."""

    @abstractmethod
    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors of the other side."""

    @property
    @abstractmethod
    def reverse(self) -> Operation:
        """The operation that undoes this one."""

    def then(self, other: Operation) -> Operation:
        """Return this operation followed by another one."""
        return Sequential((self, other))


@dataclass(frozen=True)
class Sequential(Operation):
    """Operations one after the other."""

    steps: tuple[Operation, ...]

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return what the last step makes."""
        return reduce(lambda found, step: step.apply(found), self.steps, list(tensors))

    @property
    def reverse(self) -> Operation:
        """The reverse steps, last one first."""
        return Sequential(tuple(step.reverse for step in reversed(self.steps)))

    @property
    def exact(self) -> bool:
        """Whether all steps are."""
        return all(getattr(step, "exact", True) for step in self.steps)


@dataclass(frozen=True)
class Same(Operation):
    """The tensors as they are."""

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors."""
        return list(tensors)

    @property
    def reverse(self) -> Operation:
        """Itself."""
        return self


@dataclass(frozen=True)
class Transposed(Operation):
    """Matrices stored as [from, to], where ours are [to, from]; vectors stay as they are."""

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return each matrix with rows and columns exchanged."""
        return [tensor.mT if tensor.dim() > 1 else tensor for tensor in tensors]

    @property
    def reverse(self) -> Operation:
        """Itself."""
        return self


@dataclass(frozen=True)
class Joined(Operation):
    """Several tensors one after the other: a number of equal size, or of given sizes."""

    parts: int | tuple[int, ...]
    dim: int = 0

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return one tensor."""
        return [torch.cat(list(tensors), dim=self.dim)]

    @property
    def reverse(self) -> Operation:
        """Cutting it at the same places."""
        return Cut(self.parts, self.dim)


@dataclass(frozen=True)
class Cut(Operation):
    """One tensor cut into several: a number of equal size, or of given sizes."""

    parts: int | tuple[int, ...]
    dim: int = 0

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the pieces."""
        (whole,) = tensors
        if isinstance(self.parts, int):
            return list(whole.chunk(self.parts, dim=self.dim))
        return list(torch.split(whole, list(self.parts), dim=self.dim))

    @property
    def reverse(self) -> Operation:
        """Joining the pieces."""
        return Joined(self.parts, self.dim)


@dataclass(frozen=True)
class Interleaved(Operation):
    """Tensors whose rows take turns in one: SwiGLU's gate and value."""

    parts: int = 2

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return one tensor with the first rows of each, then the second rows, and so on."""
        return [torch.stack(list(tensors), dim=1).flatten(0, 1)]

    @property
    def reverse(self) -> Operation:
        """Taking every so-manieth row."""
        return Deinterleaved(self.parts)


@dataclass(frozen=True)
class Deinterleaved(Operation):
    """One tensor whose rows are dealt out to several."""

    parts: int = 2

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors."""
        (whole,) = tensors
        return [whole[first :: self.parts] for first in range(self.parts)]

    @property
    def reverse(self) -> Operation:
        """Letting the rows take turns."""
        return Interleaved(self.parts)


@dataclass(frozen=True)
class GroupedHeads(Operation):
    """Queries, keys and values of one head together, then of the next; ours are [3, heads, ...]."""

    outer: int
    """The heads, each with its `inner` blocks of rows."""
    inner: int = 3

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return each tensor with its blocks in the other order."""
        return [
            tensor.reshape(self.outer, self.inner, -1, *tensor.shape[1:])
            .transpose(0, 1)
            .flatten(0, 2)
            for tensor in tensors
        ]

    @property
    def reverse(self) -> Operation:
        """The same with the two numbers exchanged."""
        return GroupedHeads(self.inner, self.outer)


@dataclass(frozen=True)
class Flattened(Operation):
    """Tensors with further dimensions, as [1, width] for a vector; one size may be -1."""

    theirs: tuple[int, ...] = (1, -1)
    ours: tuple[int, ...] = (-1,)

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return each tensor in our shape."""
        return [tensor.reshape(self.ours) for tensor in tensors]

    @property
    def reverse(self) -> Operation:
        """Giving the tensors their dimensions back."""
        return Flattened(self.ours, self.theirs)


@dataclass(frozen=True)
class Selected(Operation):
    """Rows in another order; row i of ours is row `rows[i]` of theirs, and -1 is a new row.

    `size` is how many rows theirs has. The way back takes the last of our rows where one of theirs
    was taken more than once, and fills rows that were left out.
    """

    rows: tuple[int, ...]
    size: int
    fill: float = 0.0
    exact: bool = True
    """Whether rows that only we have must be unchanged to be left out on the way back."""

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return each tensor with our rows."""
        rows = torch.tensor(self.rows)
        found = []
        for tensor in tensors:
            taken = tensor.index_select(0, rows.clamp(min=0).to(tensor.device))
            new = (rows < 0).to(tensor.device).view(-1, *[1] * (tensor.dim() - 1))
            found.append(taken.masked_fill(new, self.fill))
        return found

    @property
    def reverse(self) -> Operation:
        """Their rows out of ours."""
        place = {theirs: ours for ours, theirs in enumerate(self.rows) if theirs >= 0}
        rows = tuple(place.get(number, -1) for number in range(self.size))
        return Selected(rows, len(self.rows), self.fill, self.exact)


@dataclass(frozen=True)
class Summed(Operation):
    """Two tensors that are only ever added; the way back gives the sum to the first."""

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return their sum."""
        first, second = tensors
        return [first + second]

    @property
    def reverse(self) -> Operation:
        """The sum, and zeros."""
        return SumAndZeros()


@dataclass(frozen=True)
class SumAndZeros(Operation):
    """One tensor as a sum of itself and zeros."""

    def apply(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return both."""
        (total,) = tensors
        return [total, torch.zeros_like(total)]

    @property
    def reverse(self) -> Operation:
        """Adding them."""
        return Summed()


# A logit that leaves no probability in float32, and that arithmetic survives.
NEVER = -1e4


@dataclass(frozen=True)
class Constant(Same):
    """A parameter of ours that their model does not have: this value everywhere.

    `never` are rows of an output bias whose tokens only we have, and which must never be chosen.
    """

    value: float = 0.0
    never: tuple[int, ...] = ()

    def like(self, parameter: Tensor) -> Tensor:
        """Return the constant in the shape of the parameter."""
        constant = torch.full_like(parameter, self.value)
        constant[list(self.never)] = NEVER
        return constant


SAME, TRANSPOSED = Same(), Transposed()
