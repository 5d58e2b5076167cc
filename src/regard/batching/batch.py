"""Batches: pairs as padded ids with masks, sorted by length and cut under a token budget."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN, END, PAD
from regard.corpora.parallel import SentencePair
from regard.corpora.store import StoredSequence

AnyBatch = TypeVar("AnyBatch")
Item = TypeVar("Item")


def split_rows(batch: AnyBatch, count: int) -> list[AnyBatch]:
    """Return the rows of a batch, a dataclass of tensors, in at most `count` parts of like size.

    Neighbouring rows are of like length, so the parts take rows in turn.
    """
    tensors = {field.name: getattr(batch, field.name) for field in fields(batch)}  # type: ignore[arg-type]
    parts = min(count, len(next(iter(tensors.values()))))
    return [
        type(batch)(
            **{
                name: tensor if tensor is None else tensor[first::parts]
                for name, tensor in tensors.items()
            }
        )
        for first in range(parts)
    ]


def by_length(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order from short to long, by the longer side of each example.

    Among examples of one length the difference between the sides goes up, and among those of the
    next it comes down, so that a batch across the two does not put the longest sources next to
    the longest targets. Of the orders tried this one pads least: 2 to 4 % on 20,000 pairs of
    lengths as in real corpora with budgets of 2,000 to 8,000, where sorting by target and then
    source pads 3 to 10 %. Ties keep their order.
    """
    source, target = lengths[:, 0], lengths[:, 1]
    longer, difference = np.maximum(source, target), source - target
    turning = np.where(longer % 2 == 0, difference, -difference)
    return np.lexsort((turning, longer)).astype(np.int64)


def cut(
    ordered: NDArray[np.int64], lengths: NDArray[np.int64], *, token_budget: int
) -> list[list[int]]:
    """Cut ordered indices into batches whose padded positions stay within the budget.

    A batch has rows times (longest source + longest target) positions; an example that is over the
    budget by itself has a batch of its own.
    """
    numbers = ordered.tolist()
    bounds = [0, *ends_of_batches(lengths[ordered], token_budget=token_budget)]
    return [numbers[first:end] for first, end in pairwise(bounds)]


def ends_of_batches(lengths: NDArray[np.int64], *, token_budget: int) -> list[int]:
    """Return after how many of these examples, in their order, each batch ends."""
    source, target = np.ascontiguousarray(lengths[:, 0]), np.ascontiguousarray(lengths[:, 1])
    rows = np.arange(1, len(lengths) + 1)
    ends: list[int] = []
    first = 0
    while first < len(lengths):
        most = max(1, token_budget // int(source[first] + target[first]))
        widest = np.maximum.accumulate(source[first : first + most])
        widest += np.maximum.accumulate(target[first : first + most])
        widest *= rows[: len(widest)]
        # The positions never fall with the rows, so those within the budget come first.
        first += max(1, int(np.searchsorted(widest, token_budget, side="right")))
        ends.append(first)
    return ends


def sorted_batches(lengths: Sequence[tuple[int, int]], *, token_budget: int) -> list[list[int]]:
    """Return batches in the order of evaluation: the longest first, always the same.

    The longest first, so that a batch that does not fit into memory says so at once and the
    remaining time is never underestimated.
    """
    if not lengths:
        return []
    array = np.array(lengths, dtype=np.int64)
    return cut(by_length(array)[::-1], array, token_budget=token_budget)


@runtime_checkable
class TextEncoder(Protocol):
    """Text to ids: the one ability of a tokenizer that is needed here."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without begin and end marks."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence pair as ids, without begin and end marks."""

    source: Sequence[int]
    target: Sequence[int]
    links: Sequence[int] | None = None
    """Places of target and source tokens that belong together, in turn; None: nothing is known."""

    @property
    def lengths(self) -> tuple[int, int]:
        """The positions that source and target take in a batch, end marks included."""
        return len(self.source) + 1, len(self.target) + 1


@dataclass(frozen=True)
class Batch:
    """Sentence pairs of like length, padded; in the masks True is a real position."""

    source: Int[Tensor, "batch source"]
    """Source ids and the end mark."""
    source_mask: Bool[Tensor, "batch source"]
    target_input: Int[Tensor, "batch target"]
    """The begin mark and target ids: what the decoder reads."""
    target_output: Int[Tensor, "batch target"]
    """Target ids and the end mark: what the decoder should say."""
    target_mask: Bool[Tensor, "batch target"]
    alignment: Float[Tensor, "batch target source"] | None = None
    """Where the token that the decoder reads at a place stands in the source; rows of zeros say
    nothing."""

    @property
    def target_tokens(self) -> int:
        """How many target positions are real, end marks included."""
        return int(self.target_mask.sum())

    @property
    def padding_share(self) -> float:
        """The share of source and target positions that are padding."""
        positions = self.source_mask.numel() + self.target_mask.numel()
        return 1 - (int(self.source_mask.sum()) + self.target_tokens) / positions

    def split(self, count: int) -> list[Batch]:
        """Return the pairs in at most `count` parts, each padded no more than it needs."""
        return [part._trimmed() for part in split_rows(self, count)]

    def _trimmed(self) -> Batch:
        source = int(self.source_mask.sum(dim=1).max())
        target = int(self.target_mask.sum(dim=1).max())
        return Batch(
            source=self.source[:, :source],
            source_mask=self.source_mask[:, :source],
            target_input=self.target_input[:, :target],
            target_output=self.target_output[:, :target],
            target_mask=self.target_mask[:, :target],
            alignment=None if self.alignment is None else self.alignment[:, :target, :source],
        )

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on another device."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: part if part is None else part.to(device) for name, part in parts.items()
        }
        return Batch(**moved)


def encode_pairs(
    pairs: Iterable[SentencePair],
    source_tokenizer: TextEncoder,
    target_tokenizer: TextEncoder,
    *,
    max_length: int | None = None,
) -> list[Example]:
    """Turn sentence pairs into ids.

    A pair with more than `max_length` pieces on either side, end mark included, is left out; the
    difference to the number of pairs says how many were. Without `max_length` all are kept.
    """
    examples = []
    for pair in pairs:
        # Arrays of 4 bytes an id: lists of Python integers would take about ten times as much.
        example = Example(
            array("i", source_tokenizer.encode(pair.source)),
            array("i", target_tokenizer.encode(pair.target)),
        )
        if max_length is None or max(example.lengths) <= max_length:
            examples.append(example)
    return examples


@dataclass(frozen=True)
class TrainingExamples:
    """The pairs to train on as ids, without those that are too long."""

    pairs: Sequence[SentencePair]
    """The texts of the examples, in the same order."""
    examples: Sequence[Example]
    lengths: NDArray[np.integer]
    """The positions of source and target, end marks included."""
    left_out: NDArray[np.int64]
    """The numbers of the pairs that are too long."""


def training_examples_of(
    pairs: Sequence[SentencePair],
    tokenizers: tuple[TextEncoder, TextEncoder],
    *,
    max_length: int,
) -> TrainingExamples:
    """Cut pairs into tokens, which stay in memory; leave out those with more than `max_length`."""
    every = encode_pairs(pairs, *tokenizers)
    lengths = np.array([one.lengths for one in every], np.int64).reshape(-1, 2)
    fits = lengths.max(axis=1, initial=0) <= max_length
    kept, left_out = np.flatnonzero(fits), np.flatnonzero(~fits)
    if not len(left_out):
        return TrainingExamples(pairs, every, lengths, left_out)
    examples = [every[row] for row in kept.tolist()]
    return TrainingExamples(
        [pairs[row] for row in kept.tolist()], examples, lengths[kept], left_out
    )


def taken(items: Sequence[Item], rows: Sequence[int]) -> list[Item]:
    """Return the items of these numbers; those of a store are read together."""
    return items.take(rows) if isinstance(items, StoredSequence) else [items[row] for row in rows]


def collate(examples: Sequence[Example]) -> Batch:
    """Pad examples to one length and put begin and end marks where they belong."""
    if not examples:
        raise ValueError("a batch needs at least one example")
    source, source_mask = padded([example.source for example in examples], after=END)
    target_output, target_mask = padded([example.target for example in examples], after=END)
    target_input, _ = padded([example.target for example in examples], before=BEGIN)
    return Batch(
        source=source,
        source_mask=source_mask,
        target_input=target_input,
        target_output=target_output,
        target_mask=target_mask,
        alignment=_alignment(examples, target=target_mask.shape[1], source=source_mask.shape[1]),
    )


def _alignment(examples: Sequence[Example], *, target: int, source: int) -> Tensor | None:
    """Return what each row that reads a token should attend to; None if no links are known."""
    if all(example.links is None for example in examples):
        return None
    found = np.zeros((len(examples), target, source), dtype=np.float32)
    for row, example in enumerate(examples):
        if example.links:
            links = np.asarray(example.links).reshape(-1, 2)
            found[row, links[:, 0] + 1, links[:, 1]] = 1.0  # the begin mark is read first
    return torch.from_numpy(found / np.maximum(found.sum(axis=2, keepdims=True), 1.0))


def padded(
    rows: Sequence[Sequence[int]], *, before: int | None = None, after: int | None = None
) -> tuple[Int[Tensor, "batch time"], Bool[Tensor, "batch time"]]:
    """Return rows of ids with one mark each, padded at the end, and the mask of real positions."""
    lengths = np.array([len(row) + 1 for row in rows])
    shift = 0 if before is None else 1
    ids = np.full((len(rows), int(lengths.max())), PAD, dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, shift : shift + len(row)] = row
    if before is not None:
        ids[:, 0] = before
    if after is not None:
        ids[np.arange(len(rows)), lengths - 1] = after
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    return torch.from_numpy(ids), torch.from_numpy(mask)


Result = TypeVar("Result")


def prefetch(
    work: Callable[[Item], Result], items: Iterable[Item], *, at_once: int
) -> Iterator[Result]:
    """Yield what the work makes of each item, in order, while threads are at the next ones.

    `at_once` items are worked on at once, and one more waits. An error is raised when it is the
    turn of its item. With one at once there are no threads.
    """
    if at_once == 1:
        for item in items:
            yield work(item)
        return
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for item in items:
                begun.append(pool.submit(work, item))
                if len(begun) > at_once:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()
