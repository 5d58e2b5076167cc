"""How much memory a model takes: one that is far too large is refused before it is made."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from regard.base.budgets import MEGABYTE, machine_memory
from regard.base.errors import RunError, SettingsError

AnyModule = TypeVar("AnyModule", bound=nn.Module)
GIGABYTE = 1 << 30


def build_for(build: Callable[[], AnyModule], weights: Path) -> AnyModule:
    """Return a model for the weights in a folder; refuse a recipe of a far larger model."""
    stored = sum(file.stat().st_size for file in weights.glob("*.safetensors"))
    return build_within(build, stored, origin=weights, described_by="recipe")


def build_within(
    build: Callable[[], AnyModule], stored: int, *, origin: object, described_by: str
) -> AnyModule:
    """Return a model for so many bytes of weights; refuse to build a far larger one.

    A stranger's recipe may describe a model that fills the memory, with weights of a few bytes. So
    parameters are counted when they are registered, before anything is written into them.
    """
    most = 8 * stored + MEGABYTE
    too_large = RunError(
        f"The {described_by} describes a model of more than {most / MEGABYTE:,.1f} MB, but the "
        f"weights in {origin} have {stored / MEGABYTE:,.1f} MB: they do not belong together."
    )
    thread = threading.get_ident()
    counted, wanted = set[int](), 0

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal wanted
        if parameter is None or not stored or threading.get_ident() != thread:
            return
        if id(parameter) not in counted:  # a tied parameter is registered more than once
            counted.add(id(parameter))
            wanted += parameter.numel() * parameter.element_size()
        if wanted > most:
            raise too_large

    try:
        with register_module_parameter_registration_hook(count):
            return build()
    except (MemoryError, RuntimeError) as error:
        if "allocate" in str(error):  # one parameter larger than the memory
            raise too_large from None
        raise


def require_memory(model: nn.Module) -> None:
    """Refuse a model on the device "meta" whose weights alone would fill the memory."""
    wanted, memory = model_bytes(model), machine_memory()
    if wanted > memory:
        raise SettingsError(
            f"The model has {wanted / GIGABYTE:,.1f} GB of weights, but there are "
            f"{memory / GIGABYTE:,.1f} GB of memory: choose a smaller model."
        )


def model_bytes(model: nn.Module) -> int:
    """Return how many bytes the parameters of a model take."""
    return sum(p.numel() * p.element_size() for p in model.parameters())
