"""Small language models that studies train one after the other: equal tokens, or equal seconds.

They are trained in memory, by the same update as `regard train`, and leave nothing behind. Time is
the CPU time of this process: what other programs do meanwhile does not count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.base.errors import DataError
from regard.base.shapes import Int
from regard.batching.texts import StreamBatch
from regard.models.inspection import parameter_count
from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.language_models import (
    CausalTransformerSettings,
    RecurrentLanguageModelSettings,
)
from regard.tasks.language_modelling.objective import next_token_loss
from regard.tasks.language_modelling.settings import PretrainingSettings
from regard.tasks.language_modelling.training import optimizer_of, rate_of
from regard.training.update import add_gradient, update

ModelSettings = CausalTransformerSettings | RecurrentLanguageModelSettings
VALID_SHARE = 0.1
VALID_TOKENS = 16_384
# Student's t for a two-sided 95 % interval, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}


@dataclass(frozen=True)
class Characters:
    """A text as numbers of its characters; the last tenth is to validate on."""

    train: Int[Tensor, "train"]
    valid: Int[Tensor, "valid"]
    vocab: int

    @classmethod
    def of(cls, text: str) -> Characters:
        """Return a text divided in two."""
        known = {letter: number for number, letter in enumerate(sorted(set(text)))}
        ids = torch.tensor([known[letter] for letter in text])
        first = round(len(ids) * (1 - VALID_SHARE))
        return cls(ids[:first], ids[first:], len(known))

    def require(self, context: int) -> None:
        """Refuse a text that has no two windows to train on and one to validate on."""
        if len(self.train) <= 2 * context or len(self.valid) <= context:
            raise DataError(
                f"the text has {len(self.train) + len(self.valid)} characters, too few for "
                f"windows of {context}",
                path="text",
                remedy="Give a longer text.",
            )


@dataclass(frozen=True, kw_only=True)
class TrainingBudget:
    """How a small model is trained: updates or CPU seconds, and what they are made of."""

    updates: int | None = None
    seconds: float | None = None
    """If this is given, training ends after as many seconds of CPU time."""
    batch_size: int = 16
    learning_rate: float = 2e-3
    warmup: int = 50
    seed: int = 1
    measure_every: int | None = None
    """After how many updates the loss is measured; none: at the end alone."""


class Point(NamedTuple):
    """The validation loss, in nats a token, after so many updates and seconds of CPU time."""

    updates: int
    tokens: int
    seconds: float
    loss: float


@dataclass(frozen=True)
class SmallTraining:
    """A model that was trained, and its losses on the way."""

    model: LanguageModel[Any]
    points: list[Point] = field(default_factory=list)

    @property
    def last(self) -> Point:
        """What was reached."""
        return self.points[-1]

    @property
    def parameters(self) -> int:
        """How many parameters the model has, those for tokens included."""
        return parameter_count(self.model)


def train_small(
    settings: ModelSettings,
    text: Characters,
    budget: TrainingBudget,
    *,
    on_update: Callable[[float], None] = lambda share: None,
) -> SmallTraining:
    """Train a fresh model; `on_update` gets the share of the budget that is spent."""
    context = settings.context
    text.require(context)
    torch.manual_seed(budget.seed)
    trained = SmallTraining(build_language_model(settings, vocab=text.vocab))
    model = trained.model
    schedule = PretrainingSettings(  # type: ignore[call-arg]
        learning_rate=budget.learning_rate, warmup=budget.warmup, schedule="linear"
    )
    optimizer = optimizer_of(model, schedule)
    parameters = list(model.parameters())
    gradient = partial(add_gradient, partial(next_token_loss, model))
    batches = windows(text.train, context=context, rows=budget.batch_size, seed=budget.seed)
    spent, step, done = 0.0, 0, 0.0
    model.train()
    while done < 1:
        began = time.process_time()
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, done, settings=schedule)
        update(
            [next(batches)],
            add_gradient=gradient,
            parameters=parameters,
            optimizer=optimizer,
            clip=1.0,
        )
        spent += time.process_time() - began
        done = spent / budget.seconds if budget.seconds else step / (budget.updates or 1)
        if done >= 1 or (budget.measure_every and step % budget.measure_every == 0):
            loss = validation_loss(model, text, context=context)
            tokens = step * budget.batch_size * context
            trained.points.append(Point(step, tokens, spent, loss))
        on_update(min(1.0, done))
    return trained


def windows(ids: Tensor, *, context: int, rows: int, seed: int) -> Iterator[StreamBatch]:
    """Yield batches of windows from random places, without end."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.arange(context + 1)
    while True:
        starts = torch.randint(len(ids) - context, (rows, 1), generator=generator)
        found = ids[starts + places]
        yield StreamBatch(found[:, :-1].contiguous(), found[:, 1:].contiguous())


@torch.no_grad()
def validation_loss(
    model: LanguageModel[Any], text: Characters, *, context: int, most: int = VALID_TOKENS
) -> float:
    """Return the loss in nats a token over the first tokens that are held out."""
    was_training = model.training
    model.eval()
    count = min(most, len(text.valid) - 1) // context
    tokens = text.valid[: count * context].view(count, context)
    expected = text.valid[1 : count * context + 1].view(count, context)
    nats = 0.0
    for some, after in zip(torch.split(tokens, 32), torch.split(expected, 32), strict=True):
        nats += float(next_token_loss(model, StreamBatch(some, after)).nats)
    model.train(was_training)
    return nats / expected.numel()


@dataclass(frozen=True)
class MeanOverSeeds:
    """A mean over seeds with its 95 % interval, by Student's t."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> MeanOverSeeds:
        """Return the mean of a few values; of one alone the interval is that value."""
        mean = float(np.mean(values))
        if len(values) < 2:
            return cls(mean, mean, mean)
        t = STUDENT.get(len(values) - 1, 1.96)
        half = t * float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)

    def to_dict(self) -> dict[str, float]:
        """Return plain values for JSON."""
        return asdict(self)
