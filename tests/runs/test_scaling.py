"""A plan for several devices: slices of batches, traffic of a ring, and what to change."""

from __future__ import annotations

import pytest

from regard.base.errors import SettingsError
from regard.runs.plan import Estimate, MemoryEstimate, TrainingPlan
from regard.runs.scaling import Hardware, scaled

MEGA = 1_000_000


def planned(processes: int = 2) -> TrainingPlan:
    """Return a plan that two processes of this machine have measured."""
    memory = MemoryEstimate(
        weights=processes * 100 * MEGA,
        gradients=processes * 100 * MEGA,
        optimiser=processes * 200 * MEGA,
        activations=1600 * MEGA,
    )
    estimate = Estimate(
        parameters=25 * MEGA,
        trained_parameters=25 * MEGA,
        processes=processes,
        memory=memory,
        tokens_per_update=8_000.0,
        seconds_per_update=1.0,
        measured_updates=3,
        updates_per_epoch=100,
        updates=1_000,
        seconds=1_000.0,
        by_minutes=False,
    )
    return TrainingPlan(facts=(), estimate=estimate)


def test_every_device_holds_the_model_and_computes_its_slice() -> None:
    found = scaled(planned(), Hardware(devices=4, machines=2))
    assert found.memory == MemoryEstimate(
        weights=100 * MEGA, gradients=100 * MEGA, optimiser=200 * MEGA, activations=200 * MEGA
    )
    assert found.tokens == 1_000
    assert found.computing == pytest.approx(2 * 1.0 / 8)  # two processes took a second
    assert found.traffic == 175 * MEGA  # 2 * 7/8 of the gradients
    assert found.exchanging == pytest.approx(175e6 / 1.25e9)
    assert found.fits is None and not found.advice


def test_one_device_exchanges_nothing() -> None:
    found = scaled(planned(1), Hardware())
    assert (found.traffic, found.exchanging) == (0, 0.0)
    assert found.seconds_per_update == 1.0
    assert scaled(planned(1), Hardware(speedup=10.0)).seconds_per_update == pytest.approx(0.1)


def test_it_says_what_does_not_fit_and_what_to_change() -> None:
    found = scaled(planned(), Hardware(memory=1.0))
    assert found.fits is False
    assert "1,000 MB too much" in str(found)
    assert "1/4 of the size and training.accumulate=4 times" in str(found)
    assert "800 MB and learn the same" in str(found)
    assert scaled(planned(), Hardware(memory=2.0)).fits is True
    large = scaled(planned(), Hardware(devices=8, machines=8, memory=0.3))
    assert "alone take 400 MB, on any number of devices" in str(large)


def test_it_says_what_does_not_pay() -> None:
    found = scaled(planned(), Hardware(devices=8, machines=8, speedup=100.0, bandwidth=0.1))
    assert "only 125 target tokens of a batch" in str(found)
    assert "summing gradients takes longer than computing" in str(found)
    assert found.to_dict()["hardware"]["bandwidth"] == 0.1


@pytest.mark.parametrize("wrong", [{"devices": 0}, {"machines": -1}, {"memory": 0.0}])
def test_hardware_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match=r"--\w+ is -?[01]; give a number above 0"):
        Hardware(**wrong)  # type: ignore[arg-type]
