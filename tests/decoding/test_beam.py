from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.base.protocols import StepDecoder
from regard.decoding.beam import BeamOptions, beam_search
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.search import LengthPenalty

PENALTIES = [
    LengthPenalty(kind, alpha)
    for kind in ("none", "average", "wu")
    for alpha in (0.0, 0.6, 1.0, 2.0)
]


def source(*sentences: int) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([[number, 3] for number in sentences])
    return ids, torch.ones_like(ids, dtype=torch.bool)


def rules(*limits: int, **others: Any) -> Rules:
    return Rules(limits=torch.tensor(limits), **others)


def divisor(penalty: LengthPenalty, length: int) -> float:
    return float(penalty.divisor(torch.tensor(length)))


def test_the_table_keeps_the_protocol(table: Any) -> None:
    assert isinstance(table(1), StepDecoder)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from(PENALTIES),
    limit=st.integers(1, 4),
    n_best=st.integers(1, 5),
)
def test_a_wide_beam_finds_what_brute_force_finds(
    table: Any, seed: int, penalty: LengthPenalty, limit: int, n_best: int
) -> None:
    model = table(seed)
    found = beam_search(
        model,
        *source(5, 6),
        rules=rules(limit, 3),
        options=BeamOptions(beam=300, penalty=penalty, n_best=n_best),
    )
    for sentence, its_limit, hypotheses in zip((5, 6), (limit, 3), found, strict=True):
        every = sorted(model.every_output(sentence, limit=its_limit, penalty=penalty), reverse=True)
        assert [hypothesis.tokens for hypothesis in hypotheses] == [t for _, t in every[:n_best]]
        for hypothesis, (score, tokens) in zip(hypotheses, every, strict=False):
            assert hypothesis.score == pytest.approx(score, abs=1e-5)
            wanted = model.log_probability(sentence, tokens)
            assert hypothesis.log_probability == pytest.approx(wanted, abs=1e-5)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), beam=st.integers(2, 4), penalty=st.sampled_from(PENALTIES))
def test_going_on_to_the_limit_finds_nothing_better(
    table: Any, seed: int, beam: int, penalty: LengthPenalty
) -> None:
    """The stopping rule is right: a search that never stops early returns the same."""

    class Patient(table):  # type: ignore[misc]
        def step(self, *arguments: Any, **options: Any) -> Any:
            self.calls = getattr(self, "calls", 0) + 1
            return super().step(*arguments, **options)

    quick, patient = Patient(seed), Patient(seed)
    (found,) = beam_search(
        quick, *source(4), rules=rules(7), options=BeamOptions(beam=beam, penalty=penalty)
    )
    # The list of all `beam` best is full later, if ever: its first entry must be the same.
    (more,) = beam_search(
        patient,
        *source(4),
        rules=rules(7),
        options=BeamOptions(beam=beam, penalty=penalty, n_best=beam),
    )
    assert quick.calls <= patient.calls
    assert found[0].tokens == more[0].tokens


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy(table: Any, seed: int) -> None:
    model, penalty = table(seed), LengthPenalty("none")
    beams = beam_search(
        model, *source(4, 5, 6), rules=rules(6, 3, 9), options=BeamOptions(beam=1, penalty=penalty)
    )
    greedy = greedy_search(model, *source(4, 5, 6), rules=rules(6, 3, 9), penalty=penalty)
    for (hypothesis,), (wanted,) in zip(beams, greedy, strict=True):
        assert hypothesis.tokens == wanted.tokens
        assert hypothesis.score == pytest.approx(wanted.score, abs=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES[::3])
@pytest.mark.parametrize("beam", [2, 3, 5])
def test_n_best_lists_are_sorted_distinct_and_true(
    table: Any, penalty: LengthPenalty, beam: int
) -> None:
    model = table(7)
    (found,) = beam_search(
        model,
        *source(4),
        rules=rules(6),
        options=BeamOptions(beam=beam, n_best=beam, penalty=penalty),
    )
    assert len(found) == beam
    assert len({hypothesis.tokens for hypothesis in found}) == beam
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    for hypothesis in found:
        wanted = model.log_probability(4, hypothesis.tokens)
        assert hypothesis.log_probability == pytest.approx(wanted, abs=1e-5)
        length = len(hypothesis.tokens) + 1
        assert hypothesis.score == pytest.approx(wanted / divisor(penalty, length), abs=1e-5)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_limits_are_respected(table: Any, limit: int) -> None:
    (found,) = beam_search(
        table(3),
        *source(4),
        rules=rules(limit),
        options=BeamOptions(beam=4, n_best=4, penalty=LengthPenalty(alpha=2.0)),
    )
    assert found
    assert all(len(hypothesis.tokens) + 1 <= limit for hypothesis in found)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), beam=st.integers(1, 4), order=st.permutations(range(3)))
def test_a_sentence_is_searched_alone_as_in_any_batch(
    table: Any, seed: int, beam: int, order: list[int]
) -> None:
    model, sentences, limits = table(seed), (4, 5, 6), (2, 7, 4)
    together = beam_search(
        model,
        *source(*(sentences[i] for i in order)),
        rules=rules(*(limits[i] for i in order)),
        options=BeamOptions(beam=beam),
    )
    for index, (hypothesis,) in zip(order, together, strict=True):
        ((alone,),) = beam_search(
            model,
            *source(sentences[index]),
            rules=rules(limits[index]),
            options=BeamOptions(beam=beam),
        )
        assert alone.tokens == hypothesis.tokens
        assert alone.score == pytest.approx(hypothesis.score, abs=1e-6)


def test_the_search_stops_as_soon_as_nothing_better_can_come(table: Any) -> None:
    class Certain(table):  # type: ignore[misc]
        def logits(self, sentence: int, read: tuple[int, ...]) -> Tensor:
            return torch.tensor([0.0, 0, 0, 99, 0, 0, 0])  # the end mark, surely

    model = Certain(1)
    ((found,),) = beam_search(model, *source(4), rules=rules(50), options=BeamOptions(beam=3))
    assert found.tokens == ()
    assert model.steps == 1


@pytest.mark.parametrize("groups", [1, 3])
def test_the_attention_belongs_to_the_hypothesis(table: Any, groups: int) -> None:
    (found,) = beam_search(
        table(5),
        *source(4),
        rules=rules(6),
        with_weights=True,
        options=BeamOptions(
            beam=3, n_best=3, penalty=LengthPenalty(alpha=2.0), groups=groups, diversity=1.0
        ),
    )
    assert any(hypothesis.tokens for hypothesis in found)
    for hypothesis in found:
        heard = [2, *hypothesis.tokens]
        assert hypothesis.attention is not None
        assert hypothesis.attention.tolist() == [[i + 1, heard[i]] for i in range(len(heard))]


def test_attention_is_only_there_on_request(table: Any) -> None:
    for coverage in (0.0, 0.5):
        ((found,),) = beam_search(
            table(5), *source(4), rules=rules(6), options=BeamOptions(beam=3, coverage=coverage)
        )
        assert found.attention is None


def test_what_was_not_looked_at_costs_a_finished_output(table: Any) -> None:
    class Looking(table):  # type: ignore[misc]
        """Each letter looks at the source word that it is even or odd like."""

        def step(self, tokens: Tensor, state: Any, *, with_weights: bool = False) -> Any:
            step = super().step(tokens, state, with_weights=with_weights)
            seen = torch.stack([tokens % 2 == 0, tokens % 2 == 1], dim=1).float()
            return type(step)(step.logits, step.state, seen if with_weights else None)

    model = Looking(3)
    options = BeamOptions(beam=300, n_best=5, coverage=0.7)
    (found,) = beam_search(model, *source(4), rules=rules(4), options=options)
    every = []
    for score, tokens in model.every_output(4, limit=4, penalty=LengthPenalty()):
        read = [2, *tokens]
        sums = [sum(t % 2 == side for t in read) for side in (0, 1)]
        every.append((score + 0.7 * sum(math.log(min(1, max(s, 1e-6))) for s in sums), tokens))
    assert [h.tokens for h in found] == [tokens for _, tokens in sorted(every, reverse=True)[:5]]


def test_groups_differ_more_than_beams(table: Any) -> None:
    different = {}
    for groups in (1, 4):
        firsts = set()
        for seed in range(6):
            (found,) = beam_search(
                table(seed, sharpness=3.0),
                *source(4),
                rules=rules(5),
                options=BeamOptions(
                    beam=4,
                    n_best=4,
                    groups=groups,
                    diversity=20.0,
                    penalty=LengthPenalty(alpha=2.0),
                ),
            )
            firsts |= {(seed, hypothesis.tokens[:1]) for hypothesis in found}
        different[groups] = len(firsts)
    assert different[4] > different[1]


def test_groups_without_diversity_find_what_their_beams_find(table: Any) -> None:
    model, penalty = table(9), LengthPenalty()
    (found,) = beam_search(
        model,
        *source(4),
        rules=rules(6),
        options=BeamOptions(beam=4, groups=2, n_best=4, penalty=penalty),
    )
    (narrow,) = beam_search(
        model, *source(4), rules=rules(6), options=BeamOptions(beam=2, n_best=2, penalty=penalty)
    )
    assert [h.tokens for h in found] == [h.tokens for h in narrow]  # what both found counts once


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 2, "n_best": 5}, r"n_best \(5\) must not exceed beam \(2\)"),
        ({"beam": 3, "groups": 2}, r"beam \(3\) must be divisible by groups \(2\)"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(
    table: Any, options: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        beam_search(table(1), *source(4), rules=rules(6), options=BeamOptions(**options))
