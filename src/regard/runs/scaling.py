"""What a training takes on several devices and machines, calculated from its plan.

Every device holds weights, gradients and optimiser and computes its slice of each batch. Then the
gradients are summed in a ring, in which a device sends 2 (n - 1) / n times their bytes (Patarasuk &
Yuan 2009). The sum is not hidden behind the computation, as that of this program is not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from regard.base.errors import SettingsError
from regard.runs.plan import MemoryEstimate, TrainingPlan, megabytes, plan_rows, seconds_text

GIGA = 1e9
# Bytes a second from device to device, where none are given: a bus within a machine, and a network
# of 10 gigabits between machines.
WITHIN, BETWEEN = 10 * GIGA, 1.25 * GIGA
LEAST_TOKENS = 500  # of a device's slice; below, it waits more than it computes
MOST_ACCUMULATED = 64


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """The devices that a training is planned for."""

    devices: int = 1
    """Of each machine."""
    machines: int = 1
    memory: float | None = None
    """Gigabytes of a device; None: not known."""
    speedup: float = 1.0
    """How many times as fast as one process here a device computes."""
    bandwidth: float | None = None
    """Gigabytes a second that a device sends; None: what is usual."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value <= 0:
                raise SettingsError(f"--{name} is {value:g}; give a number above 0.")

    @property
    def count(self) -> int:
        """All devices."""
        return self.devices * self.machines

    @property
    def bytes_per_second(self) -> float:
        """What the slowest connection carries."""
        if self.bandwidth is not None:
            return self.bandwidth * GIGA
        return BETWEEN if self.machines > 1 else WITHIN


@dataclass(frozen=True, kw_only=True)
class ScaledPlan:
    """What a training takes on each of several devices."""

    plan: TrainingPlan
    hardware: Hardware
    memory: MemoryEstimate
    """Of each device."""
    tokens: float
    """Of a batch, in the slice of a device."""
    traffic: int
    """Bytes that a device sends in an update."""
    computing: float
    """Seconds of an update in which a device computes."""
    exchanging: float
    """Seconds of an update in which gradients are summed."""
    advice: tuple[str, ...]
    """What does not fit or does not pay, and what to change."""

    @property
    def fits(self) -> bool | None:
        """Whether a device has memory enough; None if its memory is not known."""
        limit = self.hardware.memory
        return None if limit is None else self.memory.total <= limit * GIGA

    @property
    def seconds_per_update(self) -> float:
        """How long an update takes."""
        return self.computing + self.exchanging

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            **self.plan.to_dict(),
            "hardware": asdict(self.hardware),
            "memory_per_device": asdict(self.memory) | {"total": self.memory.total},
            "fits": self.fits,
            "tokens_per_device": self.tokens,
            "traffic_per_update": self.traffic,
            "computing_seconds": self.computing,
            "exchanging_seconds": self.exchanging,
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        hardware, memory = self.hardware, self.memory
        limit = "" if hardware.memory is None else f" of {hardware.memory:g} GB"
        parts = ", ".join(f"{name} {megabytes(value)}" for name, value in asdict(memory).items())
        updates = self.plan.estimate.updates
        rows = [
            *(row for row in plan_rows(self.plan) if row[0] not in ("memory", "time")),
            ("devices", f"{hardware.machines} x {hardware.devices}, {self.tokens:,.0f} each"),
            ("memory", f"{megabytes(memory.total)} MB{limit} on each ({parts})"),
            ("traffic", f"{megabytes(self.traffic)} MB an update from each device"),
            (
                "time",
                f"{seconds_text(self.seconds_per_update)} an update "
                f"({seconds_text(self.computing)} computing, {seconds_text(self.exchanging)} "
                f"exchanging), {seconds_text(self.seconds_per_update * updates)} in all",
            ),
            *(("" if number else "advice", line) for number, line in enumerate(self.advice)),
        ]
        return "\n".join(f"{name:<11} {text}" for name, text in rows)


def scaled(plan: TrainingPlan, hardware: Hardware) -> ScaledPlan:
    """Return what the training of a plan takes on this hardware, each device with its slice."""
    found, count = plan.estimate, hardware.count
    here = found.processes
    memory = MemoryEstimate(
        weights=found.memory.weights // here,
        gradients=found.memory.gradients // here,
        optimiser=found.memory.optimiser // here,
        activations=round(found.memory.activations / count),
    )
    traffic = round(2 * (count - 1) / count * memory.gradients)
    computing = found.seconds_per_update * here / count / hardware.speedup
    exchanging = traffic / hardware.bytes_per_second
    tokens = found.tokens_per_update / count
    return ScaledPlan(
        plan=plan,
        hardware=hardware,
        memory=memory,
        tokens=tokens,
        traffic=traffic,
        computing=computing,
        exchanging=exchanging,
        advice=(
            *_of_memory(memory, hardware),
            *_of_time(tokens, computing=computing, exchanging=exchanging, unit=plan.unit),
        ),
    )


def _of_memory(memory: MemoryEstimate, hardware: Hardware) -> list[str]:
    """Return what to change if a device has too little memory."""
    if hardware.memory is None or memory.total <= hardware.memory * GIGA:
        return []
    limit, held = hardware.memory * GIGA, memory.total - memory.activations
    found = [
        f"it does not fit: {megabytes(memory.total - round(limit))} MB too much on each device"
    ]
    if held >= limit:
        return [
            *found,
            f"weights, gradients and optimiser alone take {megabytes(held)} MB, on any number of "
            "devices: take a smaller model, or devices with more memory",
        ]
    parts = 2
    while parts < MOST_ACCUMULATED and held + memory.activations / parts > limit:
        parts *= 2
    needed = held + round(memory.activations / parts)
    return [
        *found,
        f"batches of 1/{parts} of the size and training.accumulate={parts} times as large take "
        f"{megabytes(needed)} MB and learn the same; training.recompute=true also saves memory",
    ]


def _of_time(tokens: float, *, computing: float, exchanging: float, unit: str) -> list[str]:
    """Return what to change if devices would wait more than they compute."""
    found = []
    if tokens < LEAST_TOKENS:
        found.append(f"a device has only {tokens:,.0f} {unit} of a batch: enlarge the batch")
    if exchanging > computing:
        found.append(
            "summing gradients takes longer than computing them: enlarge the batch, accumulate "
            "more batches an update, or take fewer devices or a faster network"
        )
    return found
