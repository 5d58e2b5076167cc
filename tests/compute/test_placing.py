"""The choice of a device, and moving to it."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import SettingsError
from regard.compute import device as devices
from regard.compute.device import (
    HOST,
    beside,
    computing_on,
    current_device,
    device_of,
    devices_here,
    find_device,
    moved,
    placed,
    random_states,
    set_random_states,
)

META = torch.device("meta")  # holds no numbers, but is another device


def test_the_processor_is_always_there() -> None:
    assert devices_here()[0] == HOST
    assert find_device("cpu") == HOST


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        torch.accelerator, "current_accelerator", lambda check_available: torch.device("cuda")
    )
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("name", "found"),
    {"auto": "cuda:0", "cuda": "cuda:0", "cuda:1": "cuda:1", "cpu": "cpu"}.items(),
)
def test_a_device_is_found_by_its_name(name: str, found: str) -> None:
    assert find_device(name) == torch.device(found)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("name", ["mps", "cuda:2", "gpu", ""])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(SettingsError) as refused:
        find_device(name)
    assert str(refused.value) == (
        f'The device "{name}" is not there. Here are "cpu", "cuda:0", "cuda:1"; "auto" takes the '
        "fastest. Choose with --device or the variable REGARD_DEVICE."
    )


@pytest.mark.usefixtures("two_gpus")
def test_a_block_chooses_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_DEVICE", raising=False)
    assert current_device() == torch.device("cuda:0")
    monkeypatch.setenv("REGARD_DEVICE", "cuda:1")
    assert current_device() == torch.device("cuda:1")
    with computing_on("cpu") as device:
        assert device == current_device() == HOST
        with computing_on(None):
            assert current_device() == HOST
        with computing_on("cuda:0"):
            assert current_device() == torch.device("cuda:0")
    assert current_device() == torch.device("cuda:1")


def test_models_are_put_onto_the_current_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "devices_here", lambda: [HOST, META])
    with computing_on("meta"):
        model = placed(nn.Linear(2, 2))
    assert device_of(model) == META
    assert beside(model, torch.zeros(2)).device == META
    assert device_of(nn.Identity()) == HOST


@dataclass(frozen=True)
class Part:
    tensor: Tensor | None
    name: str = "part"


class Pair(NamedTuple):
    first: Part
    second: tuple[Tensor, ...]


def test_values_of_any_shape_are_moved() -> None:
    value = Pair(Part(torch.zeros(2)), (torch.ones(1), torch.ones(3)))
    found = moved(
        {"pair": value, "list": [torch.ones(4)], "text": "text", "none": Part(None)}, META
    )
    assert isinstance(found["pair"], Pair)
    tensors = [found["pair"].first.tensor, *found["pair"].second, *found["list"]]
    assert [one.device for one in tensors] == [META] * 4
    assert [one.shape.numel() for one in tensors] == [2, 1, 3, 4]
    assert found["text"] == "text"
    assert found["none"] == Part(None)


def test_what_is_there_is_not_copied() -> None:
    part = Part(torch.zeros(2))
    assert moved(part, HOST) is part


def test_random_numbers_repeat_after_their_states_are_restored() -> None:
    states = random_states()
    first = torch.rand(3)
    set_random_states(states)
    assert torch.equal(torch.rand(3), first)
