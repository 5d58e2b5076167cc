"""The constraints of one output, and how far each row of a search has come with its phrases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.base.errors import RegardError
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import END, PAD
from regard.compute.device import Movable, on_host
from regard.decoding.constraints.automaton import TokenAutomaton
from regard.decoding.search import IMPOSSIBLE

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """What the output of one sentence must and must not hold; phrases are runs of target ids."""

    prefix: Phrase = ()
    """The output begins with these."""
    required: tuple[Phrase, ...] = ()
    """Each of these occurs in the output."""
    forbidden: tuple[Phrase, ...] = ()
    """None of these occurs in the output."""
    automaton: TokenAutomaton | None = None
    """What the text must begin with and must not hold, however it is split into tokens.

    With an automaton, a required phrase ends a word."""

    def __bool__(self) -> bool:
        return bool(self.prefix or self.required or self.forbidden or self.automaton)


class ImpossibleConstraintsError(RegardError):
    """Constraints that cannot be satisfied; `index` is the number of the sentence."""

    def __init__(self, index: int, problem: str):
        self.index = index
        self.problem = problem
        super().__init__(f"Sentence {index + 1}: {problem}.")


MOST_PHRASES = 62  # of one sentence: they are the bits of an integer


class PhraseMatcher(Movable):
    """An automaton over the phrases of each sentence (Aho & Corasick 1975)."""

    def __init__(self, phrases: Sequence[Sequence[tuple[int, ...]]]):
        self._moves: list[dict[int, int]] = []  # the next node of a token; others lead to the root
        self._completes: list[int] = []
        self._through: list[int] = []
        self._depth: list[int] = []
        self._sentence: list[int] = []
        self._suffix: list[int] = []  # the longest other node that each node ends with
        roots = [self._grow(number, some) for number, some in enumerate(phrases)]
        self.roots = torch.tensor(roots, dtype=torch.long)
        self.completes = torch.tensor(self._completes)
        """Which phrases are complete at each node, as bits."""
        self.through = torch.tensor(self._through)
        """Which phrases each node is a beginning of, as bits."""
        self.depth = torch.tensor(self._depth)
        self.sentence = torch.tensor(self._sentence)
        self.endings = _padded([self._endings_of(node) for node in range(len(self._depth))])
        """The nodes that each node ends with, itself first and the root last; padded with -1."""
        moves = [list(moves.items()) for moves in self._moves]
        self.keys = _padded([[token for token, _ in row] for row in moves])
        self.targets = _padded([[node for _, node in row] for row in moves])

    def follow(
        self, nodes: Int[Tensor, "*shape"], tokens: Int[Tensor, "*shape"]
    ) -> Int[Tensor, "*shape"]:
        """Return the node after each token."""
        same = self.keys[nodes] == tokens[..., None]
        reached = (self.targets[nodes] * same).sum(dim=-1)
        return torch.where(same.any(dim=-1), reached, self.roots[self.sentence[nodes]])

    def _grow(self, sentence: int, phrases: Sequence[tuple[int, ...]]) -> int:
        """Add the nodes of one sentence; return its root."""
        root = self._new(sentence, depth=0)
        children: dict[int, dict[int, int]] = {root: {}}
        for bit, phrase in enumerate(phrases):
            node = root
            for token in phrase:
                if token not in children[node]:
                    child = self._new(sentence, depth=self._depth[node] + 1)
                    children[node][token], children[child] = child, {}
                node = children[node][token]
                self._through[node] |= 1 << bit
            self._completes[node] |= 1 << bit
        self._link(root, children)
        return root

    def _link(self, root: int, children: dict[int, dict[int, int]]) -> None:
        """Give each node the moves of the longest suffix that is a node too, under its own."""
        queue = [root]
        while queue:
            node = queue.pop(0)
            inherited = self._moves[self._suffix[node]] if node != root else {}
            self._moves[node] = {**inherited, **children[node]}
            for token, child in children[node].items():
                self._suffix[child] = inherited.get(token, root)
                self._completes[child] |= self._completes[self._suffix[child]]
                queue.append(child)

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
    """Return rows of unequal length as one tensor, padded with -1."""
    most = max(1, *(len(row) for row in rows))
    return torch.tensor([[*row, *[-1] * (most - len(row))] for row in rows])


class PhraseProgress(NamedTuple):
    """How far each row has come with the required phrases of its sentence."""

    nodes: Int[Tensor, "rows"]
    met: Int[Tensor, "rows"]
    """Which phrases have appeared, as bits."""
    just_met: Bool[Tensor, "rows"]
    """Whether the last token completed one."""

    def select(self, rows: Int[Tensor, "chosen"]) -> PhraseProgress:
        """Return these rows, in this order."""
        return PhraseProgress(*(part[rows] for part in self))


class RequiredPhrases(Movable):
    """The phrases that must appear, for each sentence of a batch.

    A row needs at most the tokens of all phrases it has not met, less those of the phrase it has
    begun. While there is more room than that, every token is allowed; then only tokens that lower
    the need. So every live hypothesis can still meet everything.
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
        """How many tokens the phrases of each sentence have."""
        self._all = torch.tensor([(1 << len(some)) - 1 for some in phrases])
        self.any = bool(self.total.any())
        self._children = self._children_of(self.matcher)

    def start(self) -> PhraseProgress:
        """Return one row for each sentence, with nothing met."""
        roots = self.matcher.roots.clone()
        return PhraseProgress(
            roots, torch.zeros_like(roots), torch.zeros_like(roots, dtype=torch.bool)
        )

    def follow(self, progress: PhraseProgress, tokens: Int[Tensor, "*rows"]) -> PhraseProgress:
        """Return the progress after one more token in each row."""
        nodes = self.matcher.follow(progress.nodes, tokens)
        met = progress.met | self.matcher.completes[nodes]
        return PhraseProgress(nodes, met, met != progress.met)

    def met_tokens(self, progress: PhraseProgress) -> Int[Tensor, "*rows"]:
        """Return how many tokens of its phrases each row has, with those of an unfinished one."""
        return self._held(progress.nodes, progress.met) + self._begun(progress.nodes, progress.met)

    def need(self, progress: PhraseProgress) -> Int[Tensor, "*rows"]:
        """Return how many more tokens are needed at most to meet everything."""
        return self._need(progress.nodes, progress.met)

    def advancing(self, progress: PhraseProgress) -> Int[Tensor, "rows most"]:
        """Return the tokens that lower each row's need, padded."""
        children = self._children[self._place(progress.nodes, progress.met)]  # [rows, most]
        unmet = self.matcher.through[children.clamp(min=0)] & ~progress.met[:, None]
        tokens = self._tokens[children.clamp(min=0)]
        return torch.where((children >= 0) & (unmet != 0), tokens, PAD)

    def ban(
        self,
        values: Float[Tensor, "rows vocab"],
        progress: PhraseProgress,
        *,
        remaining: Int[Tensor, "rows"],
    ) -> None:
        """Ban the end mark until everything is met, and tokens that leave too little room."""
        if not self.any:
            return
        nodes, met = progress.nodes, progress.met
        sentence = self.matcher.sentence[nodes]
        unmet = met != self._all[sentence]
        values[:, END].masked_fill_(unmet, IMPOSSIBLE)
        # At worst a token breaks off the phrase that was begun.
        tight = (remaining < self.total[sentence] - self._held(nodes, met) + 1) & unmet
        if not on_host(tight) or bool(tight.any()):
            # Tokens that do not break it off lead to another node than the root.
            tokens, targets = self.matcher.keys[nodes], self.matcher.targets[nodes].clamp(min=0)
            after = met[:, None] | self.matcher.completes[targets]
            fits = (self._need(targets, after) < remaining[:, None]) & (tokens >= 0)
            tokens = torch.where(fits, tokens, PAD)  # padding is never chosen anyway
            kept = torch.full_like(values, IMPOSSIBLE)
            kept.scatter_(1, tokens, values.gather(1, tokens))
            values.copy_(torch.where(tight[:, None], kept, values))

    def _need(self, nodes: Tensor, met: Tensor) -> Tensor:
        total = self.total[self.matcher.sentence[nodes]]
        return total - self._held(nodes, met) - self._begun(nodes, met)

    def _held(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Return the number of tokens in all phrases that are met."""
        bits = (met[..., None] >> self._bits) & 1
        return (self._lengths[self.matcher.sentence[nodes]] * bits).sum(dim=-1)

    def _begun(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Return how many tokens of an unmet phrase the row ends with."""
        return self.matcher.depth[self._place(nodes, met)]

    def _place(self, nodes: Tensor, met: Tensor) -> Tensor:
        """Return the longest beginning of an unmet phrase that each row ends with.

        It may be shorter than the row's node, which can belong to a phrase that is met already.
        """
        endings = self.matcher.endings[nodes]  # [*rows, most], the longest first
        unmet = (self.matcher.through[endings.clamp(min=0)] & ~met[..., None]) != 0
        fitting = unmet & (endings >= 0)
        first = fitting.int().argmax(dim=-1, keepdim=True)
        roots = self.matcher.roots[self.matcher.sentence[nodes]]
        return torch.where(fitting.any(dim=-1), endings.gather(-1, first).squeeze(-1), roots)

    def _children_of(self, matcher: PhraseMatcher) -> Int[Tensor, "nodes most"]:
        """Return the nodes one token deeper than each, and note the token of every node."""
        self._tokens = torch.full_like(matcher.depth, PAD)
        deeper = matcher.depth[matcher.targets.clamp(min=0)] == matcher.depth[:, None] + 1
        is_child = deeper & (matcher.keys >= 0)
        self._tokens[matcher.targets[is_child]] = matcher.keys[is_child]
        return torch.where(is_child, matcher.targets, -1)
