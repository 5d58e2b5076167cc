"""Batches: pairs as padded ids with masks, sorted by length and cut under a token budget."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.base.special_tokens import BEGIN, END, PAD
from regard.corpora.parallel import SentencePair

AnyBatch = TypeVar("AnyBatch")


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
    batches: list[list[int]] = []
    longest_source = longest_target = 0
    rows = zip(ordered.tolist(), lengths[ordered].tolist(), strict=True)
    for index, (source, target) in rows:
        wider_source, wider_target = max(longest_source, source), max(longest_target, target)
        if batches and (len(batches[-1]) + 1) * (wider_source + wider_target) <= token_budget:
            batches[-1].append(index)
            longest_source, longest_target = wider_source, wider_target
        else:
            batches.append([index])
            longest_source, longest_target = source, target
    return batches


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


Item = TypeVar("Item")
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
