from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from regard.compute import device as processor
from regard.compute.device import has_idle_avx512


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    has_idle_avx512.cache_clear()
    yield
    has_idle_avx512.cache_clear()


@pytest.mark.parametrize(
    ("maker", "capability", "idle"),
    [
        ("AuthenticAMD", "AVX512", True),
        ("AuthenticAMD", "AVX2", False),
        ("GenuineIntel", "AVX512", False),
    ],
)
def test_idle_registers(
    maker: str, capability: str, idle: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(f"processor\t: 0\nvendor_id\t: {maker}\n")
    monkeypatch.setattr(processor, "PROCESSORS", described)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert has_idle_avx512() is idle


def test_a_system_without_the_list_is_asked_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "PROCESSORS", tmp_path / "nowhere")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(processor.platform, "processor", lambda: "Family 6, GenuineIntel")
    assert not has_idle_avx512()
