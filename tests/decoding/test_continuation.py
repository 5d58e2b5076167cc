from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.base.results import Step
from regard.decoding.sampling import Choice, ContinuationModel, Drawn, continuation

VOCAB = 11


class Sum:
    """Knows nothing but the sum of the tokens that it has read, and counts its readings."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        self.table = 3 * torch.randn(97, VOCAB, generator=generator)
        self.read_symbols = 0
        self.longest = 0

    def start(self, batch: int) -> Tensor:
        return torch.zeros(batch, 2, dtype=torch.long)  # sum and number of tokens

    def read(self, tokens: Tensor, state: Tensor) -> Step[Tensor]:
        self.read_symbols += tokens.numel()
        after = state + torch.stack(
            [(tokens + 1).sum(1), torch.full((len(tokens),), tokens.shape[1])], dim=1
        )
        self.longest = max(self.longest, int(after[:, 1].max()))
        return Step(self.table[after[:, 0] % 97], after, None)

    def select(self, state: Tensor, rows: Tensor) -> Tensor:
        return state[rows]


def never(drawn: Drawn) -> bool:
    return False


def texts(model: Sum, prompt: Sequence[int], **options: Any) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(options.get("samples", 1))]
    options = {"choice": Choice(), "finished": never} | options
    for drawn in continuation(model, prompt, **options):
        for one in drawn:
            found[one.sample].append(one.token)
    return found


def test_the_model_of_these_tests_can_continue() -> None:
    assert isinstance(Sum(), ContinuationModel)


@settings(deadline=None, max_examples=40)
@given(
    prompt=st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=12),
    context=st.one_of(st.none(), st.integers(1, 9)),
    temperature=st.sampled_from([0.0, 0.7, 1.0]),
    penalty=st.sampled_from([1.0, 1.5]),
    seed=st.integers(0, 9),
)
def test_the_cache_changes_nothing_but_the_work(
    prompt: list[int], context: int | None, temperature: float, penalty: float, seed: int
) -> None:
    choice = Choice(
        seed=seed, temperature=temperature, repetition_penalty=penalty, top_k=8, top_p=0.95
    )
    options = {"choice": choice, "max_tokens": 20, "context": context, "samples": 3}
    cached, plain = Sum(), Sum()
    assert texts(cached, prompt, **options) == texts(plain, prompt, **options, cache=False)
    assert cached.read_symbols <= plain.read_symbols
    if context is not None:
        assert max(cached.longest, plain.longest) <= context


@settings(deadline=None, max_examples=20)
@given(samples=st.integers(2, 5), seed=st.integers(0, 99), stop=st.integers(0, VOCAB - 1))
def test_a_sample_does_not_depend_on_the_others(samples: int, seed: int, stop: int) -> None:
    options = {
        "max_tokens": 15,
        "choice": Choice(seed=seed),
        "finished": lambda drawn: drawn.token == stop,
    }
    many = texts(Sum(), [1, 2], samples=samples, **options)
    assert many[0] == texts(Sum(), [1, 2], samples=1, **options)[0]
    for sample in many:
        assert len(sample) == 15 or sample[-1] == stop
        assert stop not in sample[:-1]


def test_seeds_differ_and_repeat() -> None:
    first, again, other = (
        texts(Sum(), [0], max_tokens=30, choice=Choice(seed=seed), samples=2) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert first[0] != first[1]


def test_greedy_takes_the_most_probable_symbol() -> None:
    model = Sum()
    expected, sum_of_all = [], 5
    for _ in range(10):
        expected.append(int(model.table[sum_of_all % 97].argmax()))
        sum_of_all += expected[-1] + 1
    for choice in (Choice(temperature=0.0), Choice(top_k=1), Choice(min_p=1.0), Choice(top_p=1e-9)):
        assert texts(model, [4], choice=choice, max_tokens=10) == [expected]


def test_a_penalty_ends_repetition() -> None:
    logits = torch.tensor([[2.0, 1.9]])
    before = torch.tensor([[0, 0]])
    uniforms = torch.tensor([0.5], dtype=torch.float64)
    for penalty, expected in ((1.0, 0), (1.2, 1)):
        choice = Choice(temperature=0.0, repetition_penalty=penalty)
        assert choice(logits, before=before, uniforms=uniforms).tolist() == [expected]


def test_what_cannot_be_continued() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        texts(Sum(), [], max_tokens=1)
    assert texts(Sum(), [1], max_tokens=0) == [[]]
