"""Continuation of a text, greedy or sampled, with many samples at once and a cache.

A model reads at most `context` tokens. When the context is full, the older half is dropped and the
newer half is read again, so that most steps read one token only. The rule is the same with and
without a cache, and so are the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from regard.base.results import Step
from regard.base.shapes import Float, Int, Tensor
from regard.decoding.rules import (
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
    with_temperature,
)
from regard.decoding.sampling import draw

State = TypeVar("State")


@runtime_checkable
class ContinuationModel(Protocol[State]):
    """A model that reads from left to right and predicts the next token."""

    def start(self, batch: int) -> State:
        """Return the state of `batch` rows before the first token."""
        ...

    def read(self, tokens: Int[Tensor, "batch time"], state: State) -> Step[State]:
        """Read more tokens and return the logits of the next one."""
        ...

    def select(self, state: State, rows: Int[Tensor, "chosen"]) -> State:
        """Return the state of these rows."""
        ...


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How the next token is chosen; a temperature of 0 takes the most probable one."""

    seed: int = 1
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __call__(
        self,
        logits: Float[Tensor, "rows vocab"],
        *,
        before: Int[Tensor, "rows time"],
        uniforms: Float[Tensor, "rows"],
    ) -> Int[Tensor, "rows"]:
        """Return a token for each row, given a uniform random number between 0 and 1 for each."""
        if self.repetition_penalty != 1:
            seen = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, before, True)
            logits = penalise_repetition(logits, seen=seen, penalty=self.repetition_penalty)
        if self.temperature == 0:
            return logits.argmax(dim=-1)
        logits = with_temperature(logits, self.temperature)
        if self.top_k is not None:
            logits = keep_top_k(logits, self.top_k)
        logits = keep_min_p(keep_top_p(logits, self.top_p), self.min_p)
        return draw(torch.softmax(logits.double(), dim=-1), uniforms)


class Drawn(NamedTuple):
    """One more token of a sample."""

    sample: int
    token: int


@torch.inference_mode()
def continuation(
    model: ContinuationModel[State],
    prompt: Sequence[int],
    *,
    choice: Choice,
    finished: Callable[[Drawn], bool],
    max_tokens: int,
    samples: int = 1,
    context: int | None = None,
    cache: bool = True,
) -> Iterator[list[Drawn]]:
    """Yield the next tokens of all live samples; `finished` tells whether a token ends its sample.

    The random numbers of a sample are a function of the seed and its number.
    """
    if not prompt:
        raise ValueError("a model needs at least one token to continue")
    generators = [
        np.random.Generator(np.random.PCG64([choice.seed, sample])) for sample in range(samples)
    ]
    alive = list(range(samples))
    texts = torch.tensor([list(prompt)]).expand(samples, -1)  # [alive, tokens so far]
    first = 0 if context is None else max(0, len(prompt) - context)
    state: State | None = None
    for _ in range(max_tokens):
        if context is not None and texts.shape[1] - first > context:
            first, state = texts.shape[1] - max(1, context // 2), None
        fresh = texts[:, first:] if state is None else texts[:, -1:]
        step = model.read(fresh, model.start(len(alive)) if state is None else state)
        uniforms = [generators[sample].random() for sample in alive]
        chosen = choice(
            step.logits, before=texts, uniforms=torch.tensor(uniforms, dtype=torch.float64)
        )
        drawn = [Drawn(*pair) for pair in zip(alive, chosen.tolist(), strict=True)]
        yield drawn
        going = [row for row, one in enumerate(drawn) if not finished(one)]
        if not going:
            return
        texts = torch.cat([texts, chosen[:, None]], dim=1)
        state = step.state if cache else None
        if len(going) < len(alive):
            rows = torch.tensor(going)
            texts = texts[rows]
            state = None if state is None else model.select(state, rows)
            alive = [alive[row] for row in going]
