"""Sampling: outputs of a translator, minimum Bayes risk over them, and continuations of a text."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from regard.base.protocols import StepDecoder
from regard.base.results import Hypothesis, Step
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.device import HOST, doubled, moved, on_host
from regard.decoding.greedy import follow_paths
from regard.decoding.rules import (
    Rules,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
    with_temperature,
)
from regard.decoding.search import LengthPenalty, require_numbers

State = TypeVar("State")


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """The distribution that tokens are drawn from, and the seed."""

    seed: int
    temperature: float = 1.0
    top_k: int = 0
    """Number of most probable tokens to draw from; 0 is all."""
    top_p: float = 1.0


def sample(
    model: StepDecoder[State],
    source: Int[Tensor, "batch source"],
    mask: Bool[Tensor, "batch source"],
    *,
    rules: Rules,
    options: SamplingOptions,
    count: int = 1,
    penalty: LengthPenalty | None = None,
    with_weights: bool = False,
) -> list[list[Hypothesis]]:
    """Return `count` draws for each sentence, the best scores first; two may be the same.

    The random numbers of a sentence depend on the seed and its own tokens, never on its neighbours.
    """
    given = moved((source, mask), HOST)
    sentences = [row[kept].tolist() for row, kept in zip(*given, strict=True)]
    uniforms = [
        _uniforms(options.seed, sentence, draw, length=limit)
        for sentence, limit in zip(sentences, rules.limits.tolist(), strict=True)
        for draw in range(count)
    ]
    found = follow_paths(
        model,
        source,
        mask,
        rules=rules,
        pick=_picker(uniforms, options),
        paths=count,
        penalty=penalty or LengthPenalty(),
        with_weights=with_weights,
    )
    return [sorted(draws, key=lambda hypothesis: -hypothesis.score) for draws in found]


def _uniforms(
    seed: int, sentence: Sequence[int], draw: int, *, length: int
) -> Float[Tensor, "{length}"]:
    """Return a uniform random number between 0 and 1 for each token of an output."""
    generator = np.random.default_rng([seed, draw, *sentence])
    return torch.from_numpy(generator.random(length))


def _picker(uniforms: list[Tensor], options: SamplingOptions) -> Callable[[Tensor, Tensor], Tensor]:
    numbers = torch.nn.utils.rnn.pad_sequence(uniforms, batch_first=True)
    steps: Iterator[Tensor] | None = None

    def pick(values: Tensor, rows: Tensor) -> Tensor:
        values = with_temperature(values, options.temperature)
        values = keep_top_k(values, options.top_k) if options.top_k else values
        values = keep_top_p(values, options.top_p)
        chances = torch.softmax(doubled(values), dim=1)
        nonlocal steps
        if steps is None:
            steps = iter(numbers.to(chances.device).unbind(1))
        return draw(chances, next(steps)[rows.to(chances.device)]).to(values.device)

    return pick


def draw(
    probabilities: Float[Tensor, "rows vocab"], uniforms: Float[Tensor, "rows"]
) -> Int[Tensor, "rows"]:
    """Return the token at which the cumulative sum of each row exceeds its uniform number."""
    sums = probabilities.cumsum(dim=1)
    places = torch.searchsorted(sums, uniforms[:, None] * sums[:, -1:], right=True).squeeze(1)
    # Rounding may carry a number past the end; then it is the last possible token.
    last = (sums < sums[:, -1:]).sum(dim=1)
    return torch.minimum(places, last)


Utility = Callable[[str, str], float]


def expected_utilities(draws: Sequence[str], utility: Utility) -> dict[str, float]:
    """Return the mean utility of each different draw against all draws, the best first.

    `utility(output, reference)` is computed once for each pair of different texts. Of equals, the
    one drawn first comes first.
    """
    counts = Counter(draws)
    expected = {
        output: sum(utility(output, other) * count for other, count in counts.items()) / len(draws)
        for output in counts
    }
    return dict(sorted(expected.items(), key=lambda item: -item[1]))


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
        chances = torch.softmax(doubled(logits), dim=-1)
        return draw(chances, uniforms.to(chances.device)).to(logits.device)


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
    device: torch.device = HOST,
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
    # [alive, tokens so far]
    texts = torch.tensor([list(prompt)], device=device).expand(samples, -1)
    first = 0 if context is None else max(0, len(prompt) - context)
    state: State | None = None
    for _ in range(max_tokens):
        if context is not None and texts.shape[1] - first > context:
            first, state = texts.shape[1] - max(1, context // 2), None
        fresh = texts[:, first:] if state is None else texts[:, -1:]
        step = model.read(fresh, model.start(len(alive)) if state is None else state)
        if on_host(step.logits):  # elsewhere it would cost a pause of its own
            require_numbers(step.logits)
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
            rows = torch.tensor(going, device=device)
            texts = texts[rows]
            state = None if state is None else model.select(state, rows)
            alive = [alive[row] for row in going]
