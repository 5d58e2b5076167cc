"""Batches of running text, of prompts with answers, and of texts with labels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int as IntArray
from jaxtyping import UInt64
from torch.nn.utils.rnn import pad_sequence

from regard.base.shapes import Bool, Int, Tensor
from regard.batching.order import BatchPosition, Epoch, endless
from regard.corpora.running_text import TokenFile

ROUNDS = 4
VALIDATION_TOKENS = 4_096


@dataclass(frozen=True)
class StreamBatch:
    """Windows of one length, and the token that follows each of theirs."""

    tokens: Int[Tensor, "batch time"]
    expected: Int[Tensor, "batch time"]

    @property
    def mask(self) -> Bool[Tensor, "batch time"]:
        """Which positions count: all of them."""
        return torch.ones_like(self.tokens, dtype=torch.bool)

    @property
    def target_tokens(self) -> int:
        """How many tokens are to be predicted."""
        return self.expected.numel()

    @property
    def padding_share(self) -> float:
        """Windows are of one length: nothing is padded."""
        return 0.0


class WindowOrder:
    """Which windows form which batch, as a function of seed and epoch.

    The windows of an epoch lie side by side from a random place near the beginning on, so each
    epoch cuts the text elsewhere. Their order is a permutation that is computed and never held:
    memory does not grow with the text.
    """

    def __init__(self, tokens: int, *, context: int, batch_size: int, seed: int):
        if tokens < context + 1:
            raise ValueError(f"{tokens} tokens have no window of {context} and one more")
        self.tokens = tokens
        self.context = context
        self.batch_size = batch_size
        self.seed = seed

    def batches(self, epoch: int) -> int:
        """Return how many batches an epoch has."""
        return -(-self._windows(self._keys(epoch)) // self.batch_size)

    def starts(self, epoch: int, batch: int) -> IntArray[np.ndarray, "rows"]:
        """Return where the windows of a batch begin."""
        keys = self._keys(epoch)
        windows = self._windows(keys)
        first = batch * self.batch_size
        places = np.arange(first, min(first + self.batch_size, windows), dtype=np.uint64)
        chosen = permuted(places, count=windows, keys=keys[1:])
        return self._offset(keys) + self.context * chosen.astype(np.int64)

    def _keys(self, epoch: int) -> UInt64[np.ndarray, "keys"]:
        return np.random.PCG64([self.seed, epoch]).random_raw(1 + ROUNDS)

    def _offset(self, keys: UInt64[np.ndarray, "keys"]) -> int:
        room = min(self.context, self.tokens - self.context)  # at least one window must be left
        return int(keys[0] % np.uint64(room))

    def _windows(self, keys: UInt64[np.ndarray, "keys"]) -> int:
        return (self.tokens - 1 - self._offset(keys)) // self.context


def permuted(
    places: UInt64[np.ndarray, "rows"], *, count: int, keys: UInt64[np.ndarray, "rounds"]
) -> UInt64[np.ndarray, "rows"]:
    """Return where a pseudo-random permutation of 0 .. count - 1 takes these places.

    A Feistel network (Luby & Rackoff 1988) permutes the numbers of an even number of bits; what
    lands outside goes through it again until it is inside.
    """
    half = np.uint64((max(2, (count - 1).bit_length()) + 1) // 2)
    low = np.uint64((1 << int(half)) - 1)
    found = places
    outside = np.ones(len(places), dtype=bool)
    while outside.any():
        left, right = found >> half, found & low
        for key in keys:
            left, right = right, left ^ (_mixed(right, key) & low)
        found = np.where(outside, (left << half) | right, found)
        outside = found >= count
    return found


def _mixed(values: UInt64[np.ndarray, "rows"], key: np.uint64) -> UInt64[np.ndarray, "rows"]:
    """Return numbers whose every bit depends on all bits of the values and the key."""
    values = (values + key) * np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    mixed: np.ndarray = values ^ (values >> np.uint64(32))
    return mixed


def iterate_stream(
    file: TokenFile, order: WindowOrder, *, start: BatchPosition
) -> Iterator[tuple[BatchPosition, StreamBatch]]:
    """Yield batches of windows of a text without end."""

    def epoch_of(number: int) -> Epoch[StreamBatch]:
        def make(batch: int) -> StreamBatch:
            return read_batch(file, order.starts(number, batch), context=order.context)

        return Epoch(order.batches(number), make)

    return endless(epoch_of, start=start)


def all_windows(
    file: TokenFile,
    *,
    context: int,
    tokens: int = VALIDATION_TOKENS,
    most: int | None = None,
    seed: int = 0,
) -> Iterator[StreamBatch]:
    """Yield every token but the first once, in windows side by side; the last may be short.

    Of a text with more than `most` tokens, some windows are yielded, which the seed chooses.
    """
    whole = (len(file) - 1) // context
    chosen = np.arange(whole)
    some = most is not None and -(-most // context) < whole
    if most is not None and some:
        # PCG64's raw stream stays the same in all versions of NumPy.
        order = np.argsort(np.random.PCG64(seed).random_raw(whole), kind="stable")
        chosen = np.sort(order[: -(-most // context)])
    rows = max(1, tokens // context)
    for first in range(0, len(chosen), rows):
        yield read_batch(file, context * chosen[first : first + rows], context=context)
    left = len(file) - 1 - whole * context
    if left and not some:
        yield read_batch(file, np.array([whole * context]), context=left)


def read_batch(
    file: TokenFile, starts: IntArray[np.ndarray, "rows"], *, context: int
) -> StreamBatch:
    """Return the windows that begin at these places."""
    windows = torch.from_numpy(file.rows(starts, length=context + 1))
    return StreamBatch(windows[:, :-1].contiguous(), windows[:, 1:].contiguous())


class AnswerIds(NamedTuple):
    """A prompt and its answer as one row of ids, and where the answer begins."""

    ids: Sequence[int]
    answer: int


def some_answers(answers: Sequence[AnswerIds], most: int | None, *, seed: int) -> list[AnswerIds]:
    """Return about `most` tokens of these answers with their prompts, chosen by the seed."""
    if most is None or sum(len(one.ids) for one in answers) <= most:
        return list(answers)
    # PCG64's raw stream stays the same in all versions of NumPy.
    order = np.argsort(np.random.PCG64(seed).random_raw(len(answers)), kind="stable")
    ends = np.cumsum([len(answers[row].ids) for row in order])
    return [answers[row] for row in order[: int(np.searchsorted(ends, most)) + 1]]


@dataclass(frozen=True)
class AnswerBatch:
    """Rows padded at their ends; the mask says which following tokens belong to an answer."""

    tokens: Int[Tensor, "batch time"]
    expected: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]
    lengths: Int[Tensor, "batch"]

    @property
    def target_tokens(self) -> int:
        """How many tokens are to be predicted."""
        return int(self.mask.sum())

    @property
    def padding_share(self) -> float:
        """The share of positions that hold no token."""
        return 1 - int(self.lengths.sum()) / self.tokens.numel()


def answer_ids(prompt: Sequence[int], answer: Sequence[int], *, context: int) -> AnswerIds:
    """Join a prompt and its answer; what is too long loses the beginning of the prompt first."""
    kept = list(answer)[:context]
    before = list(prompt)[-(context + 1 - len(kept)) :]
    return AnswerIds([*before, *kept], len(before))


def collate_answers(examples: Sequence[AnswerIds]) -> AnswerBatch:
    """Return examples as one batch."""
    rows = [torch.tensor(one.ids) for one in examples]
    places = [
        torch.arange(1, len(row)) >= one.answer for row, one in zip(rows, examples, strict=True)
    ]
    return AnswerBatch(
        tokens=pad_sequence([row[:-1] for row in rows], batch_first=True),
        expected=pad_sequence([row[1:] for row in rows], batch_first=True),
        mask=pad_sequence(places, batch_first=True),
        lengths=torch.tensor([len(row) - 1 for row in rows]),
    )


class LabelledIds(NamedTuple):
    """A text as ids, and the number of its label."""

    ids: Sequence[int]
    label: int


@dataclass(frozen=True)
class LabelledBatch:
    """Texts padded at their ends, and the numbers of their labels."""

    tokens: Int[Tensor, "batch time"]
    mask: Bool[Tensor, "batch time"]
    labels: Int[Tensor, "batch"]

    @property
    def target_tokens(self) -> int:
        """How many labels are to be predicted."""
        return len(self.labels)

    @property
    def padding_share(self) -> float:
        """The share of positions that hold no token."""
        return 1 - float(self.mask.float().mean())


def collate_labelled(examples: Sequence[LabelledIds]) -> LabelledBatch:
    """Return examples as one batch."""
    rows = [torch.tensor(one.ids) for one in examples]
    return LabelledBatch(
        tokens=pad_sequence(rows, batch_first=True),
        mask=pad_sequence([torch.ones_like(row, dtype=torch.bool) for row in rows], True),
        labels=torch.tensor([one.label for one in examples]),
    )
