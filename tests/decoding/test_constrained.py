from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.decoding.beam import BeamOptions, beam_search
from regard.decoding.constraints.automaton import TokenAutomaton
from regard.decoding.constraints.batch import BatchConstraints
from regard.decoding.constraints.phrases import Constraints, ImpossibleConstraintsError
from regard.decoding.greedy import greedy_search
from regard.decoding.rules import Rules
from regard.decoding.sampling import SamplingOptions, sample
from regard.decoding.search import LengthPenalty

VOCAB = 7
LETTERS = st.integers(4, 6)
PHRASE = st.lists(LETTERS, min_size=1, max_size=3).map(tuple)
# The letters of the table as text: "a" and "b", and a space between words.
SURFACES = ["", "?", "", "", "a", "b", " "]


def source(count: int) -> tuple[Tensor, Tensor]:
    ids = torch.tensor([[number + 4, 3] for number in range(count)])
    return ids, torch.ones_like(ids, dtype=torch.bool)


def rules(constraints: list[Constraints], *limits: int) -> Rules:
    lengths = torch.tensor(limits)
    constrained = BatchConstraints(constraints, limits=lengths, vocab=VOCAB)
    return Rules(limits=lengths, constraints=constrained)


def holds(phrase: tuple[int, ...], tokens: tuple[int, ...]) -> bool:
    size = len(phrase)
    return any(tokens[i : i + size] == phrase for i in range(len(tokens) - size + 1))


def satisfies(tokens: tuple[int, ...], wanted: Constraints) -> bool:
    return (
        tokens[: len(wanted.prefix)] == wanted.prefix
        and all(holds(phrase, tokens) for phrase in wanted.required)
        and not any(holds(phrase, tokens) for phrase in wanted.forbidden)
    )


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    wanted=st.lists(
        st.tuples(
            st.lists(LETTERS, max_size=2).map(tuple), st.lists(PHRASE, max_size=3).map(tuple)
        ),
        min_size=2,
        max_size=2,
    ),
    beam=st.integers(1, 4),
    limit=st.integers(8, 14),
)
@example(seed=1, wanted=[((), ()), ((), ((4, 4), (4, 6)))], beam=1, limit=8)  # 4 4 ends with 4
def test_prefixes_and_required_phrases_always_appear(
    table: Any, seed: int, wanted: list[tuple[Any, Any]], beam: int, limit: int
) -> None:
    model = table(seed)
    asked = [Constraints(prefix=prefix, required=required) for prefix, required in wanted]
    try:
        kept = rules(asked, limit, limit + 3)
    except ImpossibleConstraintsError as error:
        assert "do not fit" in str(error)
        return
    found = beam_search(model, *source(2), rules=kept, options=BeamOptions(beam=beam, n_best=beam))
    for number, (hypotheses, constraints) in enumerate(zip(found, asked, strict=True)):
        assert hypotheses
        for hypothesis in hypotheses:
            assert satisfies(hypothesis.tokens, constraints)
            assert len(hypothesis.tokens) < kept.limits[number]
            true = model.log_probability(number + 4, hypothesis.tokens)
            assert hypothesis.log_probability == pytest.approx(true, abs=1e-4)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    forbidden=st.lists(PHRASE, min_size=1, max_size=3).map(tuple),
    prefix=st.lists(LETTERS, max_size=2).map(tuple),
)
def test_forbidden_phrases_never_appear_in_any_search(
    table: Any, seed: int, forbidden: tuple[tuple[int, ...], ...], prefix: tuple[int, ...]
) -> None:
    model, wanted = table(seed), Constraints(prefix=prefix, forbidden=forbidden)
    try:
        kept = rules([wanted], 6)
    except ImpossibleConstraintsError as error:
        assert any(holds(phrase, prefix) for phrase in forbidden)
        assert str(error) == "Sentence 1: its prefix holds what is forbidden."
        return
    found = [
        *beam_search(model, *source(1), rules=kept, options=BeamOptions(beam=3, n_best=3))[0],
        *greedy_search(model, *source(1), rules=kept)[0],
        *sample(model, *source(1), rules=kept, count=3, options=SamplingOptions(seed=seed))[0],
    ]
    assert found
    for hypothesis in found:
        assert satisfies(hypothesis.tokens, wanted)


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10**6), phrase=PHRASE)
@example(seed=1, phrase=(5, 4))  # 5 5 has begun the phrase as well as 5 has
def test_a_wide_beam_finds_the_best_output_that_has_the_phrase(
    table: Any, seed: int, phrase: tuple[int, ...]
) -> None:
    model, wanted, penalty = table(seed), Constraints(required=(phrase,)), LengthPenalty()
    ((found, *_),) = beam_search(
        model, *source(1), rules=rules([wanted], 4), options=BeamOptions(beam=300)
    )
    every = model.every_output(4, limit=4, penalty=penalty)
    best = max((score, tokens) for score, tokens in every if holds(phrase, tokens))
    assert found.tokens == best[1]


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    forbidden=st.lists(st.sampled_from(["a", "b", "ab", "a b", "bab"]), max_size=2),
    opening=st.sampled_from(["", "a", "ab", "b a", "ba"]),
)
@example(seed=308, forbidden=["a b"], opening="")  # "a?b" is something else
def test_spelling_holds_however_the_words_are_cut(
    table: Any, seed: int, forbidden: list[str], opening: str
) -> None:
    automaton = TokenAutomaton(SURFACES, opening=opening, forbidden=forbidden)
    try:
        kept = rules([Constraints(automaton=automaton)], 7)
    except ImpossibleConstraintsError as error:
        assert "begins as asked without what is forbidden" in str(error)
        return
    (beams,) = beam_search(
        table(seed), *source(1), rules=kept, options=BeamOptions(beam=3, n_best=2)
    )
    (greedy,) = greedy_search(table(seed), *source(1), rules=kept)
    assert beams and greedy
    for hypothesis in (*beams, *greedy):
        text = "".join(SURFACES[token] for token in hypothesis.tokens)
        assert text.lstrip().startswith(opening)
        for phrase in forbidden:  # as whole words; "?" is no letter, and no space either
            assert not re.search(rf"(?<![ab]){phrase}(?![ab])", text)


def test_with_spelling_a_required_phrase_ends_its_word() -> None:
    surfaces = ["", "?", "", "", " a", "b", " c"]

    automaton = TokenAutomaton(surfaces)
    assert automaton.joins.tolist() == [False, False, False, False, False, True, False]
    wanted = Constraints(required=((4,),), automaton=automaton)
    constrained = BatchConstraints([wanted], limits=torch.tensor([9]), vocab=VOCAB)
    state = constrained.follow(constrained.start(), torch.tensor([4]))
    values = torch.zeros(1, VOCAB)
    constrained.ban(values, state, torch.tensor([0]), remaining=torch.tensor([6]))
    assert values[0, 5] == -torch.inf
    assert values[0, 6] == 0


IMPOSSIBLE: dict[str, tuple[Constraints, str]] = {
    "a prefix beyond the limit": (
        Constraints(prefix=(4, 4, 4, 4)),
        "a prefix of 4 tokens does not fit into an output of at most 3; shorten it",
    ),
    "more required than there is room": (
        Constraints(prefix=(4,), required=((5, 5), (6,))),
        "what is required takes 3 tokens more, which do not fit into an output of at most 3",
    ),
    "required and forbidden": (
        Constraints(required=((5, 6),), forbidden=((6,),)),
        "its required phrase holds what is forbidden",
    ),
    "an empty phrase": (Constraints(required=((),)), "must have tokens"),
    "a phrase of special tokens": (Constraints(forbidden=((3,),)), r"the phrase \(3,\)"),
    "too many phrases": (
        Constraints(forbidden=tuple((number,) for number in range(4, 80))),
        "at most 62 phrases",
    ),
    "an opening beyond the limit": (
        Constraints(automaton=TokenAutomaton(SURFACES, opening="a b a")),
        "no output of at most 3 tokens begins as asked",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_hold_is_refused_before_the_search(case: str) -> None:
    wanted, message = IMPOSSIBLE[case]
    with pytest.raises(ImpossibleConstraintsError, match=f"Sentence 2: .*{message}") as caught:
        rules([Constraints(), wanted], 4, 4)
    assert caught.value.index == 1


def test_too_many_forbidden_words_for_the_table_are_refused() -> None:
    words = [f"word{number}" for number in range(300)]
    with pytest.raises(Exception, match="300 forbidden words are too many"):
        TokenAutomaton(["x"] * 400_000, forbidden=words)
