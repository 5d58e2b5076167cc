"""An exercise: a function to write, and checks that find out what is wrong with it.

Checks observe behaviour only. They call the function with inputs that a mistake would give away,
and compare it with the reference and with wrong versions of it, each of which has its explanation.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch

from regard.base.errors import DataError, SettingsError
from regard.base.shapes import Tensor

Function: TypeAlias = Callable[..., Any]
Check: TypeAlias = Callable[[Function], None]
TOLERANCE = 1e-4


class MistakeError(Exception):
    """What is wrong with a solution, in words for the one who wrote it."""


@dataclass(frozen=True)
class WrongVersion:
    """A version of the function with a well-known mistake, and what to say about it."""

    function: Function
    answer: str


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """A function to write: its task and equation, where to begin, and how it is checked."""

    name: str
    title: str
    topic: str
    task: str
    """What to write, with the equation."""
    starter: str
    """The file that a student begins with."""
    reference: Function = field(repr=False)
    cases: Callable[[], Sequence[tuple[Any, ...]]] = field(repr=False)
    """Inputs on which solution and reference must agree, the same each time."""
    preconditions: tuple[Check, ...] = field(default=(), repr=False)
    """Checked first, against solutions that would never end."""
    checks: tuple[Check, ...] = field(default=(), repr=False)
    """Properties that hold for every right solution, for mistakes that no wrong version has."""
    wrong: tuple[WrongVersion, ...] = field(default=(), repr=False)
    edge_checks: tuple[Check, ...] = field(default=(), repr=False)
    """Extreme inputs, tried last: on others the solution is right."""

    @property
    def function(self) -> str:
        """The name of the function to write."""
        return self.reference.__name__

    def check(self, solution: Function) -> str | None:
        """Return what is wrong with a solution; None if nothing is."""
        try:
            _require_signature(solution, self.reference)
            for precondition in self.preconditions:
                precondition(solution)
            difference = self._difference(solution)
            for check in self.checks:
                check(solution)
            if difference is not None:
                raise difference
            for check in self.edge_checks:
                check(solution)
        except MistakeError as mistake:
            return str(mistake)
        return None

    def _difference(self, solution: Function) -> MistakeError | None:
        """Return how the values differ; raise if a wrong version or the shape explains it."""
        cases = self.cases()
        found = [call(solution, *case) for case in cases]
        wanted = [self.reference(*copied(case)) for case in cases]
        for one, other in zip(found, wanted, strict=True):
            _require_like(one, other, self.function)
        if all(map(same, found, wanted)):
            return None
        for version in self.wrong:
            if all(map(same, found, (version.function(*copied(case)) for case in cases))):
                raise MistakeError(version.answer)
        first = next(
            number for number, pair in enumerate(zip(found, wanted, strict=True)) if not same(*pair)
        )
        return MistakeError(_difference(self.function, cases[first], found[first], wanted[first]))


def call(solution: Function, *arguments: Any) -> Any:
    """Return the answer of a solution; its errors and changes of its inputs are mistakes."""
    given = copied(arguments)
    try:
        with torch.no_grad():
            found = solution(*given)
    except NotImplementedError:
        raise MistakeError("Nothing is written yet: replace `raise NotImplementedError`.") from None
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".strip().rstrip(":")
        shapes = ", ".join(_shown(argument) for argument in arguments)
        raise MistakeError(f"It fails with {problem} when called with {shapes}.") from error
    for before, after in zip(arguments, given, strict=True):
        if isinstance(before, Tensor) and not same(before, after):
            raise MistakeError("It changes its input in place: work on a copy.")
    return found


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Return the arguments with tensors that may be changed."""
    return [each.clone() if isinstance(each, Tensor) else each for each in arguments]


def same(one: Any, other: Any) -> bool:
    """Return whether two answers agree: tensors up to rounding, everything else exactly."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.shape != other.shape:
            return False
        return bool(torch.allclose(one.double(), other.double(), atol=TOLERANCE, equal_nan=True))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return abs(one - other) <= TOLERANCE * max(1.0, abs(other))
    return bool(one == other)


def _require_signature(solution: Function, reference: Function) -> None:
    wanted = list(inspect.signature(reference).parameters)
    try:
        signature = inspect.signature(solution)
    except ValueError:  # a function of torch itself, which does not say
        return
    try:
        signature.bind(*wanted)
    except TypeError:
        raise MistakeError(
            f"The function must take {len(wanted)} arguments: {', '.join(wanted)}."
        ) from None


def _require_like(found: Any, wanted: Any, name: str) -> None:
    """Refuse an answer of another type or shape than the reference's."""
    if isinstance(wanted, tuple):
        if not isinstance(found, tuple | list) or len(found) != len(wanted):
            raise MistakeError(f"`{name}` must return {len(wanted)} values, as a tuple.")
        for one, other in zip(found, wanted, strict=True):
            _require_like(one, other, name)
    elif isinstance(wanted, Tensor):
        if not isinstance(found, Tensor):
            kind = type(found).__name__
            raise MistakeError(f"`{name}` must return a tensor, not {kind}. (Is `return` missing?)")
        if found.shape != wanted.shape:
            raise MistakeError(
                f"The shape is {list(found.shape)}, but must be {list(wanted.shape)}. If no "
                "dimension seems to be missing, look for broadcasting: two tensors whose shapes "
                "differ are stretched to fit."
            )
    elif found is None:
        raise MistakeError(f"`{name}` returns nothing. (Is `return` missing?)")


def _difference(name: str, case: Sequence[Any], found: Any, wanted: Any) -> str:
    given = ", ".join(_shown(argument) for argument in case)
    where = ""
    while isinstance(wanted, tuple):
        index = [same(one, other) for one, other in zip(found, wanted, strict=True)].index(False)
        where += f"value {index + 1}, "
        found, wanted = found[index], wanted[index]
    if isinstance(wanted, Tensor):
        apart = ~torch.isclose(found.double(), wanted.double(), atol=TOLERANCE, equal_nan=True)
        place = tuple(int(number) for number in apart.nonzero()[0])
        where += f"place {list(place)}, "
        found, wanted = found[place].item(), wanted[place].item()
    return f"{name}({given}): {where}it gives {_number(found)}, but {_number(wanted)} is right."


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _shown(argument: Any) -> str:
    if isinstance(argument, Tensor):
        return f"a tensor {list(argument.shape)}"
    return "a function" if callable(argument) else repr(argument)


def load_solution(path: Path, name: str) -> Function:
    """Return the function of this name in a student's file."""
    if not path.is_file():
        raise SettingsError(f"There is no file {path}.")
    spec = importlib.util.spec_from_file_location("solution", path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{path} is not a Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.pop("solution", None)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise DataError(
            f"{type(error).__name__}: {error}", path=path, line=line, remedy="Run it with Python."
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        raise DataError(f"there is no function {name!r}", path=path, remedy="Keep its name.")
    function: Function = found
    return function
