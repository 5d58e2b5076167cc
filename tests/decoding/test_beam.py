from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.base.protocols import StepDecoder
from regard.decoding.beam import beam_search
from regard.decoding.greedy import greedy_search

PENALTIES = [0.0, 0.6, 1.0, 2.0]


def source(*sentences: int) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([[number, 3] for number in sentences])
    return ids, torch.ones_like(ids, dtype=torch.bool)


def test_the_table_keeps_the_protocol(table: Any) -> None:
    assert isinstance(table(1), StepDecoder)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_wide_beam_finds_what_brute_force_finds(table: Any, penalty: float, seed: int) -> None:
    model, limit = table(seed), 4
    found = beam_search(
        model,
        *source(5, 6),
        limits=torch.tensor([limit, limit - 1]),
        beam=1000,
        length_penalty=penalty,
        n_best=5,
    )
    for sentence, its_limit, hypotheses in zip((5, 6), (limit, limit - 1), found, strict=True):
        every = sorted(model.every_output(sentence, limit=its_limit, penalty=penalty), reverse=True)
        assert [hypothesis.tokens for hypothesis in hypotheses] == [t for _, t in every[:5]]
        for hypothesis, (score, tokens) in zip(hypotheses, every, strict=False):
            assert hypothesis.score == pytest.approx(score, abs=1e-5)
            wanted = model.log_probability(sentence, tokens)
            assert hypothesis.log_probability == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy(table: Any, seed: int) -> None:
    model = table(seed)
    arguments: dict[str, Any] = {"limits": torch.tensor([6, 3, 9]), "length_penalty": 0.0}
    beams = beam_search(model, *source(4, 5, 6), beam=1, **arguments)
    greedy = greedy_search(model, *source(4, 5, 6), **arguments)
    for (hypothesis,), wanted in zip(beams, greedy, strict=True):
        assert hypothesis.tokens == wanted.tokens
        assert hypothesis.score == pytest.approx(wanted.score, abs=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_n_best_lists_are_sorted_distinct_and_true(table: Any, penalty: float, beam: int) -> None:
    model = table(7)
    (found,) = beam_search(
        model, *source(4), limits=torch.tensor([6]), beam=beam, n_best=beam, length_penalty=penalty
    )
    assert len(found) == beam
    assert len({hypothesis.tokens for hypothesis in found}) == beam
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in found:
        wanted = model.log_probability(4, hypothesis.tokens)
        assert hypothesis.log_probability == pytest.approx(wanted, abs=1e-5)
        length = len(hypothesis.tokens) + 1
        assert hypothesis.score == pytest.approx(wanted / length**penalty, abs=1e-5)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_limits_are_respected(table: Any, limit: int) -> None:
    (found,) = beam_search(
        table(3), *source(4), limits=torch.tensor([limit]), beam=4, n_best=4, length_penalty=2.0
    )
    assert found
    assert all(len(hypothesis.tokens) + 1 <= limit for hypothesis in found)


def test_each_sentence_has_its_own_limit_and_leaves_when_done(table: Any) -> None:
    model = table(3)
    together = beam_search(model, *source(4, 5, 6), limits=torch.tensor([2, 7, 4]), beam=3)
    for sentence, limit, (hypothesis,) in zip((4, 5, 6), (2, 7, 4), together, strict=True):
        ((alone,),) = beam_search(model, *source(sentence), limits=torch.tensor([limit]), beam=3)
        assert alone.tokens == hypothesis.tokens
        assert alone.score == pytest.approx(hypothesis.score, abs=1e-6)


def test_the_search_stops_as_soon_as_nothing_better_can_come(table: Any) -> None:
    class Certain(table):  # type: ignore[misc]
        def logits(self, sentence: int, read: tuple[int, ...]) -> Tensor:
            return torch.tensor([0.0, 0, 0, 99, 0, 0, 0])  # the end mark, surely

    model = Certain(1)
    ((found,),) = beam_search(model, *source(4), limits=torch.tensor([50]), beam=3)
    assert found.tokens == ()
    assert model.steps == 1


def test_the_attention_belongs_to_the_hypothesis(table: Any) -> None:
    (found,) = beam_search(
        table(5),
        *source(4),
        limits=torch.tensor([6]),
        beam=3,
        n_best=3,
        length_penalty=2.0,
        with_weights=True,
    )
    assert any(hypothesis.tokens for hypothesis in found)
    for hypothesis in found:
        heard = [2, *hypothesis.tokens]
        assert hypothesis.attention is not None
        assert hypothesis.attention.tolist() == [[i + 1, heard[i]] for i in range(len(heard))]


def test_attention_is_only_there_on_request(table: Any) -> None:
    ((found,),) = beam_search(table(5), *source(4), limits=torch.tensor([6]), beam=3)
    assert found.attention is None


def test_more_results_than_beams_are_refused(table: Any) -> None:
    with pytest.raises(ValueError, match=r"n_best \(5\) must not exceed beam \(2\)"):
        beam_search(table(1), *source(4), limits=torch.tensor([6]), beam=2, n_best=5)
