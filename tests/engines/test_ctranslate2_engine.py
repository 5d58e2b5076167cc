from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.conftest import Sources, decoding, fast_engine, random_sources

from regard.base.results import Hypothesis
from regard.decoding.constraints.phrases import Constraints
from regard.engines.ctranslate2_engine import CTranslate2Engine, worker_batches
from regard.engines.torch_engine import Engine, attention_over
from regard.tasks.translation.model import LoadedTranslator, load

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def loaded(random_transformer_run: Path) -> LoadedTranslator:
    return load(random_transformer_run)


@pytest.fixture(scope="module")
def engine(loaded: LoadedTranslator) -> CTranslate2Engine:
    return fast_engine(loaded)


@pytest.fixture(scope="module")
def sources(loaded: LoadedTranslator) -> Sources:
    return random_sources(loaded, seed=2, count=40, longest=11)


def agreement(
    found: Sequence[list[Hypothesis]], wanted: Sequence[list[Hypothesis]]
) -> tuple[float, float]:
    """Return the share of equal outputs, and the largest difference of score among them."""
    pairs = [(f[0], w[0]) for f, w in zip(found, wanted, strict=True)]
    same = [(f, w) for f, w in pairs if f.tokens == w.tokens]
    worst = max(
        max(abs(f.score - w.score), abs(f.log_probability - w.log_probability)) for f, w in same
    )
    return len(same) / len(pairs), worst


# Where both stop at the same moment. With a length penalty CTranslate2 stops at a number of
# finished outputs: no difference to a model that has learned something, but one to this model.
SAME: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "greedy without length penalty": {"beam": 1, "length_penalty_kind": "none"},
    "beam": {"beam": 4, "length_penalty_kind": "none"},
    "repetition penalty": {"beam": 1, "repetition_penalty": 1.5},
    "repetition penalty in a beam": {
        "beam": 3,
        "repetition_penalty": 1.2,
        "length_penalty_kind": "none",
    },
    "short limits": {"beam": 1, "max_length": 3},
    "limits by ratio": {"beam": 1, "max_ratio": 0.5, "max_extra": 1},
}


@pytest.mark.parametrize("case", SAME)
def test_the_reference_finds_the_same(
    case: str, engine: CTranslate2Engine, sources: Sources
) -> None:
    asked = decoding(**SAME[case])
    assert engine.lacks(asked) is None
    found = engine.search(sources, asked)
    share, worst = agreement(found, engine.reference.search(sources, asked))
    assert share >= 0.95
    assert worst < 1e-3


@pytest.mark.parametrize("case", SAME)
def test_without_scores_the_outputs_are_the_same(
    case: str, engine: CTranslate2Engine, sources: Sources
) -> None:
    asked = decoding(**SAME[case])
    found, plain = (engine.search(sources, asked, scores=wanted) for wanted in (True, False))
    assert [some[0].tokens for some in plain] == [some[0].tokens for some in found]
    assert not any(math.isnan(some[0].score) for some in found)
    if case == "greedy":  # but for sentences at a limit, which the reference has ended
        assert any(math.isnan(some[0].score) for some in plain)


@pytest.mark.parametrize("alpha", [0.4, 1.0])
def test_a_length_penalty_counts_the_end_mark(
    alpha: float, engine: CTranslate2Engine, sources: Sources
) -> None:
    asked = decoding(beam=3, length_penalty=alpha)
    wanted = engine.reference.search(sources, asked)
    for (found,), (best,) in zip(engine.search(sources, asked), wanted, strict=True):
        divisor = (len(found.tokens) + 1) ** alpha
        assert found.score == pytest.approx(found.log_probability / divisor, abs=1e-4)
        assert found.score <= best.score + 1e-3


def test_outputs_are_of_many_lengths(engine: CTranslate2Engine, sources: Sources) -> None:
    found = engine.search(sources, decoding(beam=1))
    assert len({len(hypotheses[0].tokens) for hypotheses in found}) > 3


def test_a_list_of_the_best_is_in_order_and_all_different(
    engine: CTranslate2Engine, sources: Sources
) -> None:
    found = engine.search(sources, decoding(beam=5), n_best=3)
    for hypotheses in found:
        assert len(hypotheses) == 3
        assert len({h.tokens for h in hypotheses}) == 3
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
    best = engine.search(sources, decoding(beam=5))
    assert all(some[0].score >= one.score - 1e-4 for some, (one,) in zip(found, best, strict=True))


def test_attention_comes_from_one_pass_over_the_finished_output(
    engine: CTranslate2Engine, sources: Sources
) -> None:
    asked = decoding(beam=3, length_penalty_kind="none")
    found = engine.search(sources, asked, attention=True, n_best=2)
    wanted = engine.reference.search(sources, asked, attention=True, n_best=2)
    compared = 0
    for source, ours, theirs in zip(sources, found, wanted, strict=True):
        for hypothesis in ours:
            assert hypothesis.attention is not None
            shape = (len(hypothesis.tokens) + 1, len(source) + 1)
            assert tuple(hypothesis.attention.shape) == shape
        if ours[0].tokens == theirs[0].tokens:
            assert ours[0].attention is not None
            assert theirs[0].attention is not None
            width = len(source) + 1
            assert torch.allclose(ours[0].attention, theirs[0].attention[:, :width], atol=1e-5)
            compared += 1
    assert compared > 30


@given(order=st.permutations(range(8)), cut=st.integers(1, 8))
@settings(deadline=None, max_examples=5)
def test_a_sentence_does_not_depend_on_its_neighbours(
    engine: CTranslate2Engine, sources: Sources, order: list[int], cut: int
) -> None:
    asked = decoding(beam=3, max_length=8)
    alone = [engine.search([sources[row]], asked)[0][0].tokens for row in order]
    together = [
        hypotheses[0].tokens
        for part in (order[:cut], order[cut:])
        for hypotheses in engine.search([sources[row] for row in part], asked)
    ]
    assert together == alone


def test_a_few_sentences_are_shared_out_among_the_workers(
    loaded: LoadedTranslator,
    engine: CTranslate2Engine,
    sources: Sources,
    batches: list[dict[str, Any]],
) -> None:
    pair = fast_engine(loaded, workers=2)
    asked = decoding(beam=1)
    for some, sizes in (([[5] * 9] * 8, [4, 4]), ([[5] * 9], [1]), (sources[:10], [4, 6])):
        batches.clear()
        found = [hypotheses[0].tokens for hypotheses in pair.search(some, asked)]
        assert [len(batch["source"]) for batch in batches] == sizes
        assert found == [hypotheses[0].tokens for hypotheses in engine.search(some, asked)]


# Sentences, the tokens of each, workers and the most rows of a batch; then the batches' sizes.
@pytest.mark.parametrize(
    ("count", "length", "workers", "most", "sizes"),
    [
        (1, 10, 2, 256, [1]),
        (3, 10, 4, 256, [1, 1, 1]),
        (200, 10, 2, 256, [100] * 2),
        (200, 16, 2, 51, [50] * 4),  # four would do for one worker too
        (210, 16, 2, 51, [35] * 6),  # five would do, but one worker would wait
        (400, 30, 2, 256, [67, 66, 67, 67, 66, 67]),  # 2,010 tokens
        (400, 30, 1, 256, [67, 66, 67, 67, 66, 67]),
    ],
)
def test_workers_have_as_many_batches_within_the_limits(
    count: int, length: int, workers: int, most: int, sizes: list[int]
) -> None:
    batches = worker_batches([length] * count, workers=workers, max_rows=most)
    assert [len(batch) for batch in batches] == sizes


@given(
    lengths=st.lists(st.integers(1, 400), min_size=1, max_size=60),
    workers=st.integers(1, 5),
    most=st.integers(1, 30),
)
def test_batches_hold_every_sentence_once_and_the_longest_first(
    lengths: list[int], workers: int, most: int
) -> None:
    batches = worker_batches(lengths, workers=workers, max_rows=most)
    rows = [row for batch in batches for row in batch]
    assert sorted(rows) == list(range(len(lengths)))
    assert [lengths[row] for row in rows] == sorted(lengths, reverse=True)
    assert all(batches)


def test_long_sentences_make_smaller_batches() -> None:
    batches = worker_batches([30] * 50 + [10] * 50, workers=2, max_rows=256)
    assert [len(batch) for batch in batches] == [40, 60]  # of 50 and 30 by work each


def test_searches_side_by_side_change_nothing(
    loaded: LoadedTranslator, engine: CTranslate2Engine, sources: Sources
) -> None:
    texts = [loaded.source_tokenizer.decode(source) for source in sources] + ["", " "]

    class Small:
        """The same in batches of a few sentences; it notes who searches at the same time."""

        name, attends, batch_tokens = "small", True, 40
        lacks = staticmethod(engine.lacks)

        def __init__(self, at_once: int):
            self.at_once = at_once
            self.threads: set[int] = set()

        def concurrent_searches(self, *given: Any, **options: Any) -> int:
            return min(self.at_once, engine.concurrent_searches(*given, **options))

        def search(self, *given: Any, **options: Any) -> list[list[Hypothesis]]:
            self.threads.add(get_ident())
            return engine.search(*given, **options)

    def found(engine: Engine, **changes: Any) -> list[str]:
        translator = LoadedTranslator(
            model=loaded.model,
            source_tokenizer=loaded.source_tokenizer,
            target_tokenizer=loaded.target_tokenizer,
            recipe=loaded.recipe,
            engine=engine,
        )
        return [one.text for one in translator.translate(texts, attention=False, **changes)]

    for changes in ({"beam": 1}, {"beam": 3, "length_penalty_kind": "none", "max_length": 4}):
        both, alone = Small(2), Small(1)
        assert found(both, **changes) == found(alone, **changes) == found(engine, **changes)
        assert get_ident() not in both.threads
        assert alone.threads == {get_ident()}
    both = Small(2)
    found(both, method="sample")  # by the reference, which uses all cores for one search
    assert both.threads == {get_ident()}


LACKING: dict[str, tuple[dict[str, Any], str]] = {
    "sampling": ({"method": "sample"}, 'method = "sample"'),
    "risk": ({"method": "mbr"}, 'method = "mbr"'),
    "wu": ({"length_penalty_kind": "wu"}, 'length_penalty_kind = "wu"'),
    "much length": ({"beam": 3, "length_penalty": 1.8}, "length_penalty above 1.6"),
    "coverage": ({"coverage_penalty": 0.2}, "coverage_penalty"),
    "diversity": ({"beam": 4, "diversity_groups": 2}, "diversity_groups"),
    "a least length": ({"min_length": 2}, "min_length"),
    "a least ratio": ({"min_ratio": 0.5}, "min_ratio"),
    "n-grams": ({"no_repeat_ngram": 2}, "no_repeat_ngram"),
}


@pytest.mark.parametrize("case", LACKING)
def test_what_it_would_do_otherwise_is_left_to_the_reference(
    case: str,
    engine: CTranslate2Engine,
    sources: Sources,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen, named = LACKING[case]
    asked = decoding(**chosen)
    assert engine.lacks(asked) == named
    answer: list[list[Hypothesis]] = []
    calls: list[Any] = []

    def search(*given: Any, **options: Any) -> list[list[Hypothesis]]:
        calls.append((given, options))
        return answer

    monkeypatch.setattr(engine.reference, "search", search)
    limits = [Constraints()] * 2
    assert engine.search(sources[:2], asked, n_best=1, constraints=limits) is answer
    assert calls == [
        ((sources[:2], asked), {"n_best": 1, "attention": False, "constraints": limits})
    ]


def test_constraints_are_left_to_the_reference(engine: CTranslate2Engine) -> None:
    asked = decoding()
    assert engine.lacks(asked, [Constraints()]) is None
    assert engine.lacks(asked, [Constraints(), Constraints(prefix=(5,))]) == "constraints"


def test_nothing_in_nothing_out(engine: CTranslate2Engine) -> None:
    assert engine.search([], decoding()) == []


def test_what_is_longer_than_the_table_is_left_to_the_reference(
    loaded: LoadedTranslator, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = decoding(beam=2, length_penalty_kind="none")
    monkeypatch.setattr("regard.engines.ctranslate2_engine.MOST_POSITIONS", 6)
    engine = fast_engine(loaded)
    wanted = engine.reference.search(sources, asked)
    share, worst = agreement(engine.search(sources, asked), wanted)
    assert share >= 0.95
    assert worst < 1e-3


def test_it_says_what_it_is(engine: CTranslate2Engine) -> None:
    assert engine.name == "ctranslate2 float32, 1 x 1 threads"
    assert engine.attends


def test_a_single_head_can_be_asked_for(loaded: LoadedTranslator, sources: Sources) -> None:
    targets = sources[::-1]
    shown = attention_over(loaded.model, sources, targets)
    heads = [attention_over(loaded.model, sources, targets, head=(1, n)) for n in range(2)]
    for row, weights in enumerate(shown):
        assert torch.allclose(weights, (heads[0][row] + heads[1][row]) / 2, atol=1e-5)
        assert weights.shape == (len(targets[row]) + 1, len(sources[row]) + 1)
