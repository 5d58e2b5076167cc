"""Several processes find what one finds."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch

from regard.compute.device import can_fork, current_device
from regard.decoding.constraints.automaton import TokenAutomaton
from regard.decoding.constraints.phrases import Constraints
from regard.engines.torch_engine import Engine, TorchEngine, TorchProcesses
from regard.models.build import build_translator
from regard.settings.decoding import DecodingSettings
from regard.settings.models import TransformerSettings

pytestmark = pytest.mark.skipif(
    not can_fork(current_device()), reason="workers need Linux and no GPU"
)
RANDOM = Random(1)
SOURCES = [[RANDOM.randrange(4, 20) for _ in range(RANDOM.randint(1, 9))] for _ in range(17)]

AUTOMATON = TokenAutomaton(["", "?", "", "", *"abcd", " a", " b", " c", " d"], forbidden=["a", "b"])


@pytest.fixture
def shared() -> Iterator[TorchProcesses]:
    torch.manual_seed(1)
    settings = TransformerSettings(
        layers=1, model_dim=8, heads=2, feed_forward=8, positions="learned", max_length=12
    )
    model = build_translator(settings, source_vocab=20, target_vocab=12)
    engine = TorchProcesses(TorchEngine(model), processes=3)
    yield engine
    engine.close()


def settings_of(**changes: Any) -> DecodingSettings:
    return DecodingSettings.model_validate({"max_length": 8, **changes})


def test_it_keeps_the_protocol(shared: TorchProcesses) -> None:
    assert isinstance(shared, Engine)
    assert shared.batch_tokens == 3 * TorchEngine.batch_tokens
    assert shared.lacks(settings_of()) is None


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"beam": 1}, {}),
        ({"beam": 3}, {"n_best": 2}),
        ({"method": "sample"}, {"n_best": 2}),
        ({"beam": 2}, {"attention": True}),
        ({"beam": 2}, {"constraints": [Constraints(prefix=(5,))] * len(SOURCES)}),
        ({"beam": 2}, {"constraints": [Constraints(automaton=AUTOMATON)] * len(SOURCES)}),
    ],
)
def test_all_find_what_one_finds(
    shared: TorchProcesses, changes: dict[str, Any], asked: dict[str, Any]
) -> None:
    settings = settings_of(**changes)
    wanted = shared.engine.search(SOURCES, settings, **asked)
    found = shared.search(SOURCES, settings, **asked)
    for ours, theirs in zip(found, wanted, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs])


def test_mistakes_are_named_as_by_one(shared: TorchProcesses) -> None:
    too_long = [*SOURCES[:-1], [5] * 13]
    with pytest.raises(Exception) as alone:
        shared.engine.search(too_long, settings_of())
    with pytest.raises(type(alone.value)) as found:
        shared.search(too_long, settings_of())
    assert str(found.value) == str(alone.value)
    assert len(shared.search(SOURCES, settings_of())) == len(SOURCES)  # nobody was hurt


def test_the_search_goes_on_without_a_worker_that_has_ended(shared: TorchProcesses) -> None:
    wanted = shared.search(SOURCES, settings_of())
    worker, *_ = multiprocessing.active_children()
    os.kill(worker.pid or 0, signal.SIGKILL)
    for _ in range(2):
        assert shared.search(SOURCES, settings_of()) == wanted
