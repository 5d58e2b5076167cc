from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from regard.base.errors import SettingsError
from regard.base.special_tokens import BEGIN, END
from regard.decoding.constraints.automaton import TokenAutomaton
from regard.decoding.constraints.phrases import Constraints, ImpossibleConstraintsError
from regard.engines.torch_engine import Engine, TorchEngine
from regard.models.build import build_translator
from regard.settings.decoding import DecodingSettings
from regard.settings.models import TransformerSettings

SOURCES = [[5, 9, 4], [7], [4, 4, 8, 13, 6, 11, 5], [6, 19]]


@pytest.fixture(scope="module")
def engine() -> TorchEngine:
    settings = TransformerSettings(layers=2, model_dim=16, heads=2, feed_forward=24)
    torch.manual_seed(1)
    return TorchEngine(build_translator(settings, source_vocab=20, target_vocab=12))


def decoding(**changes: Any) -> DecodingSettings:
    return DecodingSettings(**{"beam": 3, "max_extra": 4, "max_ratio": 1.0, **changes})


def test_it_keeps_the_protocol(engine: TorchEngine) -> None:
    assert isinstance(engine, Engine)
    assert engine.lacks(decoding()) is None
    assert engine.search([], decoding()) == []


def test_many_sentences_are_searched_in_batches_within_a_budget(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [SOURCES[number % 4] for number in range(400)]
    together = engine.search(sources, decoding())
    sizes: list[int] = []
    search = TorchEngine._search_batch

    def watched(self: TorchEngine, sources: Any, *rest: Any, **options: Any) -> Any:
        sizes.append(len(sources) * (max(map(len, sources)) + 1))
        return search(self, sources, *rest, **options)

    monkeypatch.setattr(TorchEngine, "_search_batch", watched)
    monkeypatch.setattr(TorchEngine, "batch_tokens", 128)
    assert [one[0].tokens for one in engine.search(sources, decoding())] == [
        one[0].tokens for one in together
    ]
    assert max(sizes) <= 256
    narrow = max(sizes)
    sizes.clear()
    engine.search(sources[:60], decoding(method="sample"), n_best=48)
    assert max(sizes) <= narrow / 4
    engine.search([[4] * 300], decoding())  # more than the budget by itself


def test_an_impossible_sentence_is_named_whatever_its_batch(
    engine: TorchEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TorchEngine, "batch_tokens", 4)
    asked = [Constraints()] * 3 + [Constraints(required=((4, 5, 6, 7, 8),))]
    with pytest.raises(ImpossibleConstraintsError, match="Sentence 4") as caught:
        engine.search(SOURCES, decoding(max_length=3), constraints=asked)
    assert caught.value.index == 3


OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {"beam": 1},
    "beam": {"beam": 4, "length_penalty_kind": "wu"},
    "groups": {"beam": 4, "diversity_groups": 2},
    "coverage": {"coverage_penalty": 0.4},
    "sampling": {"method": "sample", "top_k": 5, "top_p": 0.9, "temperature": 0.8},
    "rules": {"no_repeat_ngram": 2, "repetition_penalty": 1.3, "min_length": 2, "max_length": 5},
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_sentence_is_searched_alone_as_in_a_batch(engine: TorchEngine, case: str) -> None:
    settings = decoding(**OPTIONS[case])
    together = engine.search(SOURCES, settings, attention=True)
    backwards = engine.search(SOURCES[::-1], settings, attention=True)[::-1]
    for source, one, other in zip(SOURCES, together, backwards, strict=True):
        ((alone,),) = engine.search([source], settings, attention=True)
        for found in (one[0], other[0]):
            assert found.tokens == alone.tokens
            assert found.score == pytest.approx(alone.score, abs=1e-4)
            assert found.attention is not None
            assert alone.attention is not None
            seen = found.attention[:, : len(source) + 1]
            assert torch.allclose(seen, alone.attention, atol=1e-4)


@pytest.mark.parametrize("case", ["greedy", "beam"])
def test_cached_steps_give_the_probabilities_of_the_whole_pass(
    engine: TorchEngine, case: str
) -> None:
    found = engine.search(SOURCES, decoding(**OPTIONS[case]))
    for source, (hypothesis, *_) in zip(SOURCES, found, strict=True):
        ids = torch.tensor([[*source, END]])
        target = torch.tensor([[BEGIN, *hypothesis.tokens]])
        with torch.no_grad():
            output = engine.model(ids, torch.ones_like(ids, dtype=torch.bool), target)
            values = engine.model.project(output.features)[0].log_softmax(-1)
        wanted = values.gather(1, torch.tensor([[*hypothesis.tokens, END]]).T).sum()
        assert hypothesis.log_probability == pytest.approx(float(wanted), abs=1e-4)


@hypothesis_settings(deadline=None, max_examples=12)
@given(
    required=st.lists(st.lists(st.integers(4, 11), min_size=1, max_size=2).map(tuple), max_size=2),
    prefix=st.lists(st.integers(4, 11), max_size=2).map(tuple),
    forbidden=st.lists(st.integers(4, 11), max_size=2),
)
def test_constraints_hold_or_are_refused(
    engine: TorchEngine,
    required: list[tuple[int, ...]],
    prefix: tuple[int, ...],
    forbidden: list[int],
) -> None:
    wanted = Constraints(
        prefix=prefix,
        required=tuple(required),
        forbidden=tuple((token,) for token in forbidden),
    )
    clash = set(forbidden) & {*prefix, *(token for phrase in required for token in phrase)}
    try:
        ((found, *_),) = engine.search([SOURCES[2]], decoding(), constraints=[wanted])
    except ImpossibleConstraintsError:
        assert clash
        return
    assert not clash
    text = "".join(map(chr, found.tokens))
    assert found.tokens[: len(prefix)] == prefix
    assert all("".join(map(chr, phrase)) in text for phrase in required)
    assert not set(forbidden) & set(found.tokens)


def test_what_contradicts_itself_only_together_is_refused_after_the_search(
    engine: TorchEngine,
) -> None:
    surfaces = ["", "?", "", "", *(f" {letter}" for letter in "abcdefgh")]
    wanted = Constraints(required=((4,),), automaton=TokenAutomaton(surfaces, forbidden=["a"]))
    with pytest.raises(ImpossibleConstraintsError, match="Sentence 2: the search found no output"):
        engine.search(SOURCES[:2], decoding(), constraints=[Constraints(), wanted])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "sample"}, 'no search for required words with method = "sample"'),
        ({"beam": 4, "diversity_groups": 2}, "no search for required words with diversity_groups"),
    ],
)
def test_required_words_need_a_plain_beam(
    engine: TorchEngine, changes: dict[str, Any], message: str
) -> None:
    wanted = [Constraints(required=((4,),))]
    with pytest.raises(SettingsError, match=message):
        engine.search(SOURCES[:1], decoding(**changes), constraints=wanted)
