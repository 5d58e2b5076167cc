"""What attention has read so far: keys and values, kept once for all rows that share them.

The live prefixes of a sentence form a tree: they begin alike and part later. A step of a search
adds a node to the tree for each of its rows; `TreePaths` tells which nodes each row has come by.
So a search that goes on with other prefixes changes the paths, and copies no keys and values.
Nodes that no row has come by any more are removed when there are many of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.device import HOST, moved

# The least number of positions that there is room for.
LEAST_ROOM = 32


class Store:
    """Keys and values in tensors with room for more; `filled` positions of them are taken."""

    def __init__(self, keys: Tensor, values: Tensor, *, filled: int):
        self.keys = keys
        self.values = values
        self.filled = filled

    def takes(self, count: int, *, after: int) -> bool:
        """Return whether `count` positions can be written behind those that the caller knows.

        Not if somebody else has gone on from them: what he wrote must stay.
        """
        return (
            self.filled == after
            and after + count <= self.keys.shape[2]
            and self.keys.is_inference() == torch.is_inference_mode_enabled()
        )


class KeysValues(NamedTuple):
    """What can be attended to, split into heads."""

    keys: Float[Tensor, "batch groups source head_dim"]
    values: Float[Tensor, "batch groups source head_dim"]
    store: Store | None = None
    """Where they lie, if there is room behind them."""
    first: int = 0
    """Their first position there."""

    def then(
        self,
        keys: Float[Tensor, "batch groups more head_dim"],
        values: Float[Tensor, "batch groups more head_dim"],
    ) -> KeysValues:
        """Return these keys and values and more; without a gradient, those are written in place.

        The room doubles when it is used up, so that each position is copied about once.
        """
        if torch.is_grad_enabled():
            return KeysValues(
                torch.cat([self.keys, keys], dim=2), torch.cat([self.values, values], dim=2)
            )
        known, more = self.keys.shape[2], keys.shape[2]
        store, first = self.store, self.first
        if store is None or not store.takes(more, after=first + known):
            room = max(LEAST_ROOM, 2 * known + more)
            store, first = Store(*(_with_room(part, room) for part in self[:2]), filled=known), 0
        end = first + known + more
        store.keys[:, :, end - more : end] = keys
        store.values[:, :, end - more : end] = values
        store.filled = end
        return KeysValues(store.keys[:, :, first:end], store.values[:, :, first:end], store, first)

    def last(self, count: int | None) -> KeysValues:
        """Return the last `count` positions, or all."""
        if count is None or count >= self.keys.shape[2]:
            return self
        first = self.first + self.keys.shape[2] - count
        return KeysValues(self.keys[:, :, -count:], self.values[:, :, -count:], self.store, first)

    def of(self, rows: Int[Tensor, "chosen"]) -> KeysValues:
        """Return these rows, in this order."""
        return KeysValues(self.keys.index_select(0, rows), self.values.index_select(0, rows))

    def at(self, places: Int[Tensor, "batch width kept"]) -> KeysValues:
        """Return rows that each have these places of the batch's row: [batch * width, ...]."""
        if self.store is None:
            return KeysValues(_at(self.keys, places), _at(self.values, places))
        places = places + self.first
        return KeysValues(_at(self.store.keys, places), _at(self.store.values, places))


def _with_room(part: Tensor, room: int) -> Tensor:
    """Return a copy that has `room` positions, of which the first are taken."""
    batch, groups, known, head_dim = part.shape
    whole = part.new_empty(batch, groups, room, head_dim)
    whole[:, :, :known] = part
    return whole


def _at(part: Tensor, places: Tensor) -> Tensor:
    """Return these places of each row; to copy whole vectors is much faster than `gather`."""
    batch, groups, room, head_dim = part.shape
    _, width, kept = places.shape
    starts = torch.arange(0, batch * groups * room, room, device=places.device)
    numbers = (starts.view(batch, 1, groups, 1) + places[:, :, None, :]).flatten()
    found = part.reshape(-1, head_dim).index_select(0, numbers)
    return found.view(batch * width, groups, kept, head_dim)


class Owners(NamedTuple):
    """Which sentences are still needed, and how many rows each of them has."""

    sentences: Int[Tensor, "kept"] | None
    """None if all are, in the same order."""
    width: int


def owners_of(rows: Int[Tensor, "chosen"], *, width: int, sentences: int) -> Owners:
    """Return whose rows these are, when each sentence had `width` of them.

    Where sentences would not have equally many, each row gets a sentence of its own.
    """
    there = rows.device
    owner = torch.div(rows.to(HOST), width, rounding_mode="floor")  # one pause for all that follows
    kept, counts = torch.unique_consecutive(owner, return_counts=True)
    if not len(rows) or int(counts.min()) != int(counts.max()):
        return Owners(moved(owner, there), 1)
    if len(kept) == sentences and torch.equal(kept, torch.arange(sentences, device=HOST)):
        return Owners(None, int(counts[0]))
    return Owners(moved(kept, there), int(counts[0]))


class TreePaths(NamedTuple):
    """By which nodes of the tree of its sentence each row has come."""

    taken: Bool[Tensor, "sentences width nodes"]
    positions: Int[Tensor, "sentences nodes"]
    """The position of each node in the text; nodes stand in this order."""
    room: int
    """The number of nodes from which on it is worth to look for dead ones."""

    @classmethod
    def alone(cls, *, rows: int, first: int, read: int, of: Tensor) -> TreePaths:
        """Return the paths of rows that share nothing, at positions from `first` up to `read`."""
        taken = torch.ones(rows, 1, read - first, dtype=torch.bool, device=of.device)
        positions = torch.arange(first, read, device=of.device).expand(rows, -1)
        return cls(taken, positions, max(LEAST_ROOM, 2 * (read - first)))

    @property
    def width(self) -> int:
        """The rows of each sentence."""
        return self.taken.shape[1]

    def of(self, rows: Int[Tensor, "chosen"], owners: Owners) -> TreePaths:
        """Return the paths of these rows, which belong to these owners."""
        taken = self.taken.flatten(0, 1).index_select(0, rows)
        positions = self.positions
        if owners.sentences is not None:
            positions = positions.index_select(0, owners.sentences)
        shape = (len(positions), owners.width, taken.shape[1])
        return TreePaths(taken.view(shape), positions, self.room)

    def on(self, *, read: int, window: int | None) -> TreePaths:
        """Return the paths one token further: a node of its own for each row.

        Nodes that are further away than `window` are left.
        """
        sentences, width, _ = self.taken.shape
        taken = self.taken
        if window is not None:
            taken = taken & (self.positions >= read - window)[:, None]
        own = torch.eye(width, dtype=torch.bool, device=taken.device).expand(sentences, -1, -1)
        added = self.positions.new_full((sentences, width), read)
        return TreePaths(
            torch.cat([taken, own], dim=2), torch.cat([self.positions, added], dim=1), self.room
        )


def without_dead_nodes(
    past: Sequence[KeysValues], paths: TreePaths
) -> tuple[tuple[KeysValues, ...], TreePaths]:
    """Return what at least one row has come by, as soon as there may be much else.

    Half as many nodes as were alive may be added before the next look, so a step costs little.
    """
    if paths.taken.shape[2] < paths.room:
        return tuple(past), paths
    alive = paths.taken.any(dim=1)
    most = int(alive.sum(dim=1).max())
    room = most + max(LEAST_ROOM, most // 2)
    if most == paths.taken.shape[2]:
        return tuple(past), paths._replace(room=room)
    order = (~alive).byte().sort(dim=1, stable=True).indices[:, :most]
    taken = paths.taken.gather(2, order[:, None].expand(-1, paths.width, -1))
    places = F.pad(order, (0, room + paths.width - most))[:, None]  # and room for those to come
    moved = tuple(_with_store(layer.at(places), filled=most) for layer in past)
    return moved, TreePaths(taken, paths.positions.gather(1, order), room)


def _with_store(whole: KeysValues, *, filled: int) -> KeysValues:
    """Return the first positions; the others are room for more."""
    store = Store(whole.keys, whole.values, filled=filled)
    return KeysValues(whole.keys[:, :, :filled], whole.values[:, :, :filled], store)


def in_rows(
    past: Sequence[KeysValues], paths: TreePaths, *, read: int, window: int | None
) -> tuple[KeysValues, ...]:
    """Return the keys and values of each row by itself, in the order of the text."""
    taken = paths.taken
    if window is not None:
        taken = taken & (paths.positions >= read - window)[:, None]
    count = read if window is None else min(read, window)
    places = (~taken).byte().sort(dim=2, stable=True).indices[:, :, :count]
    return tuple(layer.at(places) for layer in past)
