"""Memory is kept where the C library can be told to, and elsewhere nothing happens."""

from __future__ import annotations

import ctypes
import platform
from types import SimpleNamespace

import pytest

from regard.compute import device as allocator
from regard.compute.device import keep_memory


class Calls:
    """A mallopt that remembers what it was told."""

    def __init__(self, answer: int):
        self.answer = answer
        self.told: dict[int, int] = {}

    def __call__(self, name: int, value: int) -> int:
        self.told[name] = value
        return self.answer


@pytest.mark.parametrize(("answer", "possible"), [(1, True), (0, False)])
def test_large_blocks_come_from_a_heap_that_is_kept(
    answer: int, possible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mallopt = Calls(answer)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=mallopt))
    assert keep_memory() is possible
    assert mallopt.told[allocator.MMAP_MAX] == 0


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_another_c_library_is_left_alone(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: None) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert keep_memory() is False


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_glibc_agrees() -> None:
    assert keep_memory() is True
