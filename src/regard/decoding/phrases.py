"""Following many phrases at once through what is written, symbol by symbol.

The automaton of Aho & Corasick 1975: a node is the longest beginning of any phrase that the
symbols written so far end with. The nodes of all sentences of a batch are numbered together, and
every sentence has a root of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from regard.base.shapes import Int, Tensor

MOST_PHRASES = 62  # of one sentence: they are the bits of an integer


class PhraseMatcher:
    """The phrases of every sentence, and where in them each node stands."""

    def __init__(self, phrases: Sequence[Sequence[tuple[int, ...]]]):
        self._moves: list[dict[int, int]] = []  # where a symbol leads; elsewhere it is the root
        self._completes: list[int] = []
        self._through: list[int] = []
        self._depth: list[int] = []
        self._sentence: list[int] = []
        self._suffix: list[int] = []  # of each node the longest other one that it ends with
        roots = [self._grow(number, some) for number, some in enumerate(phrases)]
        self.roots = torch.tensor(roots, dtype=torch.long)
        self.completes = torch.tensor(self._completes)
        """Which phrases are complete at each node, as bits."""
        self.through = torch.tensor(self._through)
        """Which phrases each node is a beginning of, as bits."""
        self.depth = torch.tensor(self._depth)
        self.sentence = torch.tensor(self._sentence)
        self.endings = _padded([self._endings_of(node) for node in range(len(self._depth))])
        """The nodes that each node ends with, itself first and the root last; -1 fills them up."""
        moves = [list(moves.items()) for moves in self._moves]
        self.keys = _padded([[symbol for symbol, _ in row] for row in moves])
        self.targets = _padded([[node for _, node in row] for row in moves])

    def follow(
        self, nodes: Int[Tensor, "*shape"], symbols: Int[Tensor, "*shape"]
    ) -> Int[Tensor, "*shape"]:
        """Return where each symbol leads."""
        same = self.keys[nodes] == symbols[..., None]
        reached = (self.targets[nodes] * same).sum(dim=-1)
        return torch.where(same.any(dim=-1), reached, self.roots[self.sentence[nodes]])

    def _grow(self, sentence: int, phrases: Sequence[tuple[int, ...]]) -> int:
        """Add the nodes of one sentence; return its root."""
        root = self._new(sentence, depth=0)
        children: dict[int, dict[int, int]] = {root: {}}
        for bit, phrase in enumerate(phrases):
            node = root
            for symbol in phrase:
                if symbol not in children[node]:
                    child = self._new(sentence, depth=self._depth[node] + 1)
                    children[node][symbol], children[child] = child, {}
                node = children[node][symbol]
                self._through[node] |= 1 << bit
            self._completes[node] |= 1 << bit
        self._link(root, children)
        return root

    def _link(self, root: int, children: dict[int, dict[int, int]]) -> None:
        """Give each node the moves of the longest suffix that is a node too, under its own."""
        waiting = [root]
        while waiting:
            node = waiting.pop(0)
            inherited = self._moves[self._suffix[node]] if node != root else {}
            self._moves[node] = {**inherited, **children[node]}
            for symbol, child in children[node].items():
                self._suffix[child] = inherited.get(symbol, root)
                self._completes[child] |= self._completes[self._suffix[child]]
                waiting.append(child)

    def _endings_of(self, node: int) -> list[int]:
        endings = [node]
        while self._suffix[endings[-1]] != endings[-1]:
            endings.append(self._suffix[endings[-1]])
        return endings

    def _new(self, sentence: int, *, depth: int) -> int:
        self._moves.append({})
        self._completes.append(0)
        self._through.append(0)
        self._depth.append(depth)
        self._sentence.append(sentence)
        self._suffix.append(len(self._suffix))  # a root ends with itself alone
        return len(self._depth) - 1


def _padded(rows: Sequence[Sequence[int]]) -> Int[Tensor, "rows most"]:
    """Return rows of unequal length as one tensor, filled up with -1."""
    most = max(1, *(len(row) for row in rows))
    return torch.tensor([[*row, *[-1] * (most - len(row))] for row in rows])
