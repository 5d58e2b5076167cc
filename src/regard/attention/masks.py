"""Masks (boolean, True = may attend), and what each query of self-attention may see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from regard.attention.past import TreePaths
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.device import uses_hand_kernels


def padding_mask(lengths: Int[Tensor, "batch"], *, size: int) -> Bool[Tensor, "batch {size}"]:
    """Return which of `size` positions hold a real token, for sequences of these lengths."""
    positions = torch.arange(size, device=lengths.device)
    return positions[None, :] < lengths[:, None]


def causal_mask(size: int, *, device: torch.device | None = None) -> Bool[Tensor, "{size} {size}"]:
    """Return the mask by which position t attends to positions up to t: the future never leaks."""
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()


def forbidden(dtype: torch.dtype) -> float:
    """Return what is added to a score that must get no weight.

    A quarter of the lowest number: its exponential is zero, and the sum of two is finite.
    """
    return torch.finfo(dtype).min / 4


def penalties_of(mask: Bool[Tensor, "*shape"], *, dtype: torch.dtype) -> Float[Tensor, "*shape"]:
    """Return what to add to scores: zero where the mask allows, else what leaves no weight."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(
        ~mask, forbidden(dtype)
    )


def memory_penalties(
    mask: Bool[Tensor, "batch source"], *, dtype: torch.dtype
) -> Float[Tensor, "batch 1 1 source"] | None:
    """Return the penalties of padding, for all heads and queries; None without padding."""
    if uses_hand_kernels(mask) and bool(mask.all()):  # elsewhere asking would cost a pause
        return None
    return penalties_of(mask, dtype=dtype)[:, None, None, :]


@dataclass(frozen=True)
class Segments:
    """A text is read in segments, each with a memory of what came before (Dai et al. 2019, 3.2).

    A position sees its own segment so far and the last `memory` positions before that segment.
    """

    length: int
    memory: int

    def kept(self, read: int) -> int:
        """Return how many of the positions that were read can still be seen."""
        return min(read, read % self.length + self.memory)


@dataclass(frozen=True)
class Visibility:
    """Which keys each query may see, for `target` queries at the end of `source` keys.

    Queries are the last of the positions that the keys cover, so one description serves a whole
    sentence and a cached step alike.
    """

    target: int
    source: int
    dtype: torch.dtype
    device: torch.device
    real: Bool[Tensor, "batch source"] | None = None
    """Which keys are no padding; None if all are real."""
    causal: bool = False
    window: int | None = None
    """The greatest distance that is seen; None for no limit."""
    distance_bias: Callable[..., Float[Tensor, "heads target source"]] | None = None
    """Positions that add a bias to scores, given the distances (`positions.DistanceBias`)."""
    paths: TreePaths | None = None
    """If each row reads one token, beside the other rows of its sentence: what each has read."""
    segments: Segments | None = None
    read: int = 0
    """How many positions came before the first query; of these, keys may be left out."""

    @classmethod
    def back(
        cls,
        features: Float[Tensor, "batch target model_dim"],
        *,
        read: int,
        window: int | None,
        distance_bias: Callable[..., Float[Tensor, "heads target source"]] | None,
        segments: Segments | None = None,
    ) -> Visibility:
        """Return the view of positions that see themselves and what was read before them."""
        target = features.shape[1]
        kept = read if window is None else min(read, window)
        if segments is not None:
            kept = segments.kept(read)
        return cls(
            target=target,
            source=kept + target,
            segments=segments,
            read=read,
            causal=True,
            window=window,
            distance_bias=distance_bias,
            dtype=features.dtype,
            device=features.device,
        )

    @classmethod
    def along(
        cls,
        features: Float[Tensor, "batch 1 model_dim"],
        paths: TreePaths,
        *,
        distance_bias: Callable[..., Float[Tensor, "heads target source"]] | None,
    ) -> Visibility:
        """Return the view of rows that read one token each, the last nodes of their paths."""
        return cls(
            target=paths.width,
            source=paths.taken.shape[2],
            paths=paths,
            distance_bias=distance_bias,
            dtype=features.dtype,
            device=features.device,
        )

    @cached_property
    def distances(self) -> Int[Tensor, "target source"]:
        """Return the position of each key minus that of each query."""
        keys = torch.arange(self.source, device=self.device) - (self.source - self.target)
        return keys[None, :] - torch.arange(self.target, device=self.device)[:, None]

    @cached_property
    def penalties(self) -> Float[Tensor, "..."] | None:
        """Return what is added to scores, broadcast over [batch, heads, target, source]."""
        if self.paths is not None:
            return self._path_penalties(self.paths)
        parts = []
        if self.real is not None:
            padding = memory_penalties(self.real, dtype=self.dtype)
            parts += [] if padding is None else [padding]
        if self.hides_places:
            parts.append(penalties_of(self.near, dtype=self.dtype))
        if self.distance_bias is not None:
            parts.append(self.distance_bias(self.distances, dtype=self.dtype))
        return sum(parts[1:], parts[0]) if parts else None

    def _path_penalties(self, paths: TreePaths) -> Float[Tensor, "sentences heads width nodes"]:
        hidden = penalties_of(paths.taken, dtype=self.dtype)[:, None]
        if self.distance_bias is None:
            return hidden
        distances = paths.positions - paths.positions[:, -1:]  # the last node has just been read
        bias = self.distance_bias(distances, dtype=self.dtype)  # [heads, sentences, nodes]
        return hidden + bias.transpose(0, 1)[:, :, None]

    @property
    def causal_only(self) -> bool:
        """Return whether nothing but the future is hidden, from first key to last."""
        plain = self.window is None and self.distance_bias is None
        plain = plain and not self.crosses_segments
        if not (self.causal and plain and self.target == self.source):
            return False
        # Elsewhere asking would cost a pause, and a compiler cannot ask.
        return self.real is None or (uses_hand_kernels(self.real) and bool(self.real.all()))

    @property
    def crosses_segments(self) -> bool:
        """Return whether the queries are of several segments, which see different keys."""
        if self.segments is None:
            return False
        return self.read % self.segments.length + self.target > self.segments.length

    @property
    def kept(self) -> int | None:
        """Return how many of the last keys later queries may still see; None for all."""
        if self.segments is not None:
            return self.segments.kept(self.read + self.target)
        return self.window

    @property
    def hides_places(self) -> bool:
        """Return whether order or distance hides any key from any query."""
        later = self.causal and self.target > 1
        return (
            later
            or self.crosses_segments
            or (self.window is not None and self.source > self.window + 1)
        )

    @property
    def near(self) -> Bool[Tensor, "target source"]:
        """Return which keys order and distance let each query see."""
        seen = torch.ones_like(self.distances, dtype=torch.bool)
        if self.causal:
            seen &= self.distances <= 0
        if self.window is not None:
            seen &= self.distances.abs() <= self.window
        if self.segments is not None:
            queries = self.read + torch.arange(self.target, device=self.device)[:, None]
            begin = queries // self.segments.length * self.segments.length
            seen &= queries + self.distances >= begin - self.segments.memory
        return seen
