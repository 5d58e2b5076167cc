"""What the layers of a stack have read so far, and how rows of it are chosen and read on."""

from __future__ import annotations

from typing import NamedTuple

import torch

from regard.attention.efficient import LinearState
from regard.attention.masks import Segments, Visibility
from regard.attention.past import KeysValues, TreePaths, in_rows, owners_of, without_dead_nodes
from regard.attention.places import DistanceBias
from regard.base.shapes import Float, Int, Tensor

# Keys and values, or what linear attention or a recurrent unit keeps.
LayerPast = KeysValues | LinearState | Float[Tensor, "batch model_dim"]


class StackPast(NamedTuple):
    """The past of every layer; there are none before the first token."""

    layers: tuple[LayerPast, ...] = ()
    paths: TreePaths | None = None
    """How rows share keys and values; None if each has its own."""
    read: int = 0

    def of(self, rows: Int[Tensor, "chosen"]) -> StackPast:
        """Return the past of these rows; those of one sentence share it from now on."""
        known = self._keys_values()
        if not known:
            return self._replace(layers=tuple(_rows_of(layer, rows) for layer in self.layers))
        paths, keys = self.paths, known[0].keys
        owners = owners_of(rows, width=1 if paths is None else paths.width, sentences=keys.shape[0])
        if owners.width > 1 and paths is None:
            paths = TreePaths.alone(
                rows=keys.shape[0], first=self.read - keys.shape[2], read=self.read, of=keys
            )
        if owners.sentences is not None:
            known = tuple(layer.of(owners.sentences) for layer in known)
        return StackPast(known, None if paths is None else paths.of(rows, owners), self.read)

    def opened(self, *, window: int | None, along_paths: bool) -> StackPast:
        """Return the past as it is read on: by one token along paths, or in rows of their own."""
        if self.paths is None:
            return self
        if not along_paths:
            layers = in_rows(self._keys_values(), self.paths, read=self.read, window=window)
            return StackPast(layers, None, self.read)
        layers, paths = without_dead_nodes(self._keys_values(), self.paths)
        return StackPast(layers, paths.on(read=self.read, window=window), self.read)

    def visibility(
        self,
        features: Float[Tensor, "batch target model_dim"],
        *,
        window: int | None,
        distance_bias: DistanceBias | None,
        segments: Segments | None = None,
    ) -> Visibility:
        """Return what the next positions see."""
        if self.paths is not None:
            return Visibility.along(features, self.paths, distance_bias=distance_bias)
        return Visibility.back(
            features,
            read=self.read,
            window=window,
            distance_bias=distance_bias,
            segments=segments,
        )

    def after(self, layers: tuple[LayerPast, ...], *, count: int) -> StackPast:
        """Return the past when `count` more tokens have been read."""
        return StackPast(layers, self.paths, self.read + count)

    def _keys_values(self) -> tuple[KeysValues, ...]:
        """Return the layers if all are keys and values, else none."""
        known = tuple(layer for layer in self.layers if isinstance(layer, KeysValues))
        return known if len(known) == len(self.layers) else ()


def _rows_of(past: KeysValues | LinearState | Tensor, rows: Tensor) -> LayerPast:
    if isinstance(past, torch.Tensor):
        return past.index_select(0, rows)
    if isinstance(past, KeysValues):
        return past.of(rows)
    return LinearState(*(part.index_select(0, rows) for part in past))
