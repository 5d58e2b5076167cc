"""A short, seeded part of `bench/fuzz.py`: no input may end in anything but an answer."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import fuzz_targets as targets

INPUTS = 40
READERS = {target.name: target for target in targets.reader_targets()}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networkx's, about odd GraphML
        yield


@pytest.mark.parametrize("name", READERS)
def test_readers_answer_whatever_they_are_given(name: str, tmp_path: Path) -> None:
    for number in range(INPUTS):
        targets.try_input(READERS[name], number, seed=0, folder=tmp_path)


def test_runs_answer_whatever_their_files_hold(toy_run: Path, tmp_path: Path) -> None:
    (target,) = targets.run_targets({"toy": toy_run})
    for number in range(INPUTS):
        targets.try_input(target, number, seed=0, folder=tmp_path)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> dict[str, targets.FuzzTarget]:
    """The targets for models and tokenizers of other programs."""
    pytest.importorskip("tokenizers")
    from fuzz_foreign import foreign_targets

    folder = tmp_path_factory.mktemp("foreign")
    return {target.name: target for target in foreign_targets(folder)}


def test_imports_answer_whatever_they_are_given(
    foreign: dict[str, targets.FuzzTarget], tmp_path: Path
) -> None:
    for target in foreign.values():
        for number in range(INPUTS // 4):
            targets.try_input(target, number, seed=0, folder=tmp_path)


def test_the_server_answers_whatever_it_is_sent(toy_run: Path, tmp_path: Path) -> None:
    with targets.http_targets(toy_run) as found:
        for target in found:
            for number in range(INPUTS):
                targets.try_input(target, number, seed=0, folder=tmp_path)


def test_an_input_follows_from_its_number(tmp_path: Path) -> None:
    def content(number: int) -> bytes:
        kept: list[bytes] = []
        target = targets.FuzzTarget("a", lambda random, folder: kept.append(random.randbytes(9)))
        targets.try_input(target, number, seed=0, folder=tmp_path)
        return kept[0]

    assert content(1) == content(1) != content(2)


def test_a_failure_is_not_hidden(tmp_path: Path) -> None:
    def fail(random: Any, folder: Path) -> None:
        raise KeyError("x")

    attempt: Callable[..., None] = fail
    with pytest.raises(KeyError):
        targets.try_input(targets.FuzzTarget("a", attempt), 1, seed=0, folder=tmp_path)
