"""Beam search with a length penalty and a stopping rule that is provably right under it.

A finished hypothesis scores log p / length^penalty. Log-probabilities only fall, so a live
hypothesis of log-probability L can never score better than L / limit^penalty. A sentence is done
when its n-th best finished hypothesis is at least as good as that bound for every live one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.specials import BEGIN, END
from regard.decoding.candidates import IMPOSSIBLE, next_log_probabilities

State = TypeVar("State")


@dataclass
class _Sentence:
    """One sentence of the batch: its live prefixes and what it has finished."""

    limit: int
    penalty: float
    n_best: int
    prefixes: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    maps: list[tuple[Tensor, ...]] = field(default_factory=lambda: [()])
    finished: list[Hypothesis] = field(default_factory=list)

    def finish(self, row: int, log_probability: float, weights: Tensor | None) -> None:
        """Close a prefix with the end mark, which counts in its length."""
        tokens = self.prefixes[row]
        maps = () if weights is None else (*self.maps[row], weights)
        self.finished.append(
            Hypothesis(
                tokens=tokens,
                log_probability=log_probability,
                score=log_probability / (len(tokens) + 1) ** self.penalty,
                attention=torch.stack(maps) if maps else None,
            )
        )
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)
        del self.finished[self.n_best :]

    def is_done(self, best_live: float) -> bool:
        """Return whether no live hypothesis can still enter the n-best list."""
        if len(self.finished) < self.n_best:
            return best_live == IMPOSSIBLE
        bound: float = best_live / self.limit**self.penalty
        return self.finished[-1].score >= bound


@torch.inference_mode()
def beam_search(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    limits: Int[Tensor, "batch"],
    beam: int,
    length_penalty: float = 1.0,
    n_best: int = 1,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return the n best hypotheses of each sentence, best first."""
    if n_best > beam:
        raise ValueError(f"n_best ({n_best}) must not exceed beam ({beam})")
    sentences = [_Sentence(int(limit), length_penalty, n_best) for limit in limits]
    alive = list(range(len(sentences)))
    state = model.start(model.encode(source, mask))
    symbols = torch.full((len(sentences),), BEGIN)
    totals = torch.zeros(len(sentences), 1)  # [sentences alive, live prefixes of each]
    length = 0
    while alive:
        length += 1
        width = totals.shape[1]
        step = model.step(symbols, state, with_weights=with_weights)
        ending = torch.tensor([sentences[s].limit <= length for s in alive])
        values = next_log_probabilities(step.logits, end_only=ending.repeat_interleave(width)).view(
            len(alive), width, -1
        )
        continued, ended = _candidates(totals[:, :, None] + values, beam=beam)
        going, rows, next_symbols = [], [], []
        for index, number in enumerate(alive):
            sentence = sentences[number]
            first = index * width
            for row, total in ended[index]:
                weights = None if step.weights is None else step.weights[first + row]
                sentence.finish(row, total, weights)
            if sentence.is_done(float(continued.totals[index].max())):
                continue
            going.append(index)
            parents = continued.parents[index].tolist()
            chosen = continued.symbols[index].tolist()
            rows += [first + parent for parent in parents]
            next_symbols += chosen
            sentence.prefixes = [
                (*sentence.prefixes[parent], symbol)
                for parent, symbol in zip(parents, chosen, strict=True)
            ]
            if step.weights is not None:
                sentence.maps = [
                    (*sentence.maps[parent], step.weights[first + parent]) for parent in parents
                ]
        state = model.select(step.state, torch.tensor(rows, dtype=torch.long))
        symbols = torch.tensor(next_symbols)
        totals = continued.totals[going]
        alive = [alive[index] for index in going]
    return [sentence.finished for sentence in sentences]


@dataclass(frozen=True)
class _Continued:
    """The live prefixes after a step: log-probability, where each came from, its new symbol."""

    totals: Float[Tensor, "alive beam"]
    parents: Int[Tensor, "alive beam"]
    symbols: Int[Tensor, "alive beam"]


def _candidates(
    totals: Float[Tensor, "alive width vocab"], *, beam: int
) -> tuple[_Continued, list[list[tuple[int, float]]]]:
    """Split the best continuations into prefixes that go on and those that end here.

    An ending counts if it is among the `beam` best of its sentence. As many go on as before, so an
    early ending takes nothing away from the search.
    """
    vocab = totals.shape[2]
    flat = totals.flatten(1)
    values, order = flat.topk(min(beam, flat.shape[1]), dim=1)
    is_end = (order % vocab == END) & (values > IMPOSSIBLE)
    ended = [
        [(int(order[s, k]) // vocab, float(values[s, k])) for k in range(len(row)) if row[k]]
        for s, row in enumerate(is_end)
    ]
    totals = totals.clone()
    totals[:, :, END] = IMPOSSIBLE
    values, order = totals.flatten(1).topk(min(beam, flat.shape[1]), dim=1)
    return _Continued(values, order // vocab, order % vocab), ended
