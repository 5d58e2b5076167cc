"""What one output must hold and must not hold, and how far each row has come with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.base.errors import RegardError
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import END, PAD
from regard.decoding.constraints.automaton import Spelling
from regard.decoding.search import IMPOSSIBLE

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """What is asked of the output of one sentence; every phrase is a run of target ids."""

    prefix: Phrase = ()
    """The output begins with these."""
    required: tuple[Phrase, ...] = ()
    """Each of these occurs in the output."""
    forbidden: tuple[Phrase, ...] = ()
    """None of these occurs in the output."""
    spelling: Spelling | None = None
    """What the text may and must say, in whatever symbols; with it, required phrases end a word."""

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.forbidden or self.spelling)


class ImpossibleConstraintsError(RegardError):
    """Constraints that cannot hold; `index` says for which of the sentences."""

    def __init__(self, index: int, problem: str):
        self.index = index
        self.problem = problem
        super().__init__(f"Sentence {index + 1}: {problem}.")


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


class Progress(NamedTuple):
    """How far each row has come with what its sentence requires."""

    nodes: Int[Tensor, "rows"]
    met: Int[Tensor, "rows"]
    """Which phrases have appeared, as bits."""
    just_met: Bool[Tensor, "rows"]
    """Whether the last symbol completed one."""

    def select(self, rows: Int[Tensor, "chosen"]) -> Progress:
        """Return these rows, in this order."""
        return Progress(*(part[rows] for part in self))


class Required:
    """The phrases that must appear, for each sentence of a batch.

    A row needs at most the symbols of all phrases it has not met, less those of the one that it is
    in the middle of. While more may be written than that, anything may come; then only symbols that
    lower the need. So every search that goes on can still meet everything.
    """

    def __init__(self, constraints: Sequence[Constraints]):
        phrases = [tuple(dict.fromkeys(some.required)) for some in constraints]
        self.matcher = PhraseMatcher(phrases)
        most = max(1, *(len(some) for some in phrases))
        self._bits = torch.arange(most)
        self._lengths = torch.tensor(
            [[*map(len, some), *[0] * (most - len(some))] for some in phrases]
        )
        self.total = self._lengths.sum(dim=1)
        """How many symbols the phrases of each sentence have."""
        self._all = torch.tensor([(1 << len(some)) - 1 for some in phrases])
        self.any = bool(self.total.any())
        self._children = self._children_of(self.matcher)

    def start(self) -> Progress:
        """Return one row for each sentence, with nothing met."""
        roots = self.matcher.roots.clone()
        return Progress(roots, torch.zeros_like(roots), torch.zeros_like(roots, dtype=torch.bool))

    def follow(self, progress: Progress, symbols: Int[Tensor, "*rows"]) -> Progress:
        """Return the progress after one symbol more a row."""
        nodes = self.matcher.follow(progress.nodes, symbols)
        met = progress.met | self.matcher.completes[nodes]
        return Progress(nodes, met, met != progress.met)

    def reached(self, progress: Progress) -> Int[Tensor, "*rows"]:
        """Return how many symbols of its phrases each row has, the unfinished one counted."""
        return self._held(progress.nodes, progress.met) + self._begun(progress.nodes, progress.met)

    def need(self, progress: Progress) -> Int[Tensor, "*rows"]:
        """Return how many symbols are at most needed to meet everything."""
        return self._need(progress.nodes, progress.met)

    def advancing(self, progress: Progress) -> Int[Tensor, "rows most"]:
        """Return the symbols that lower each row's need, filled up with padding."""
        children = self._children[self._place(progress.nodes, progress.met)]  # [rows, most]
        unmet = self.matcher.through[children.clamp(min=0)] & ~progress.met[:, None]
        symbols = self._symbols[children.clamp(min=0)]
        return torch.where((children >= 0) & (unmet != 0), symbols, PAD)

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        progress: Progress,
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Ban the end before everything is met, and whatever would leave too little room."""
        if not self.any:
            return
        nodes, met = progress.nodes, progress.met
        sentence = self.matcher.sentence[nodes]
        unmet = met != self._all[sentence]
        values[unmet, END] = IMPOSSIBLE
        # The worst that a symbol can do is to break off the phrase that was begun.
        tight = (remaining < self.total[sentence] - self._held(nodes, met) + 1) & unmet
        if bool(tight.any()):
            # What does not break it off leads somewhere else than to the root.
            symbols, targets = self.matcher.keys[nodes], self.matcher.targets[nodes].clamp(min=0)
            after = met[:, None] | self.matcher.completes[targets]
            fits = (self._need(targets, after) < remaining[:, None]) & (symbols >= 0)
            symbols = torch.where(fits, symbols, PAD)  # padding never comes anyway
            kept = torch.full_like(values, IMPOSSIBLE)
            kept.scatter_(1, symbols, values.gather(1, symbols))
            values[tight] = kept[tight]

    def _need(self, nodes: Tensor, met: Tensor) -> Tensor:
        total = self.total[self.matcher.sentence[nodes]]
        return total - self._held(nodes, met) - self._begun(nodes, met)

    def _held(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Return how many symbols the phrases have that are met."""
        bits = (met[..., None] >> self._bits) & 1
        return (self._lengths[self.matcher.sentence[nodes]] * bits).sum(dim=-1)

    def _begun(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Return how many symbols of an unmet phrase have just been written."""
        return self.matcher.depth[self._place(nodes, met)]

    def _place(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Return the longest beginning of an unmet phrase that each row ends with.

        That may be shorter than the row's node, which can be in a phrase that is met already.
        """
        endings = self.matcher.endings[nodes]  # [*rows, most], the longest first
        unmet = (self.matcher.through[endings.clamp(min=0)] & ~met[..., None]) != 0
        fitting = unmet & (endings >= 0)
        first = fitting.int().argmax(dim=-1, keepdim=True)
        roots = self.matcher.roots[self.matcher.sentence[nodes]]
        return torch.where(fitting.any(dim=-1), endings.gather(-1, first).squeeze(-1), roots)

    def _children_of(self, matcher: PhraseMatcher) -> Int[Tensor, "nodes most"]:
        """Return the nodes one symbol deeper than each, and note the symbol of every node."""
        self._symbols = torch.full_like(matcher.depth, PAD)
        deeper = matcher.depth[matcher.targets.clamp(min=0)] == matcher.depth[:, None] + 1
        is_child = deeper & (matcher.keys >= 0)
        self._symbols[matcher.targets[is_child]] = matcher.keys[is_child]
        return torch.where(is_child, matcher.targets, -1)
