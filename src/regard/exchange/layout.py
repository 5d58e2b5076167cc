"""Layouts: a table of rules, read in both directions, says where another program keeps weights.

A rule names tensors of ours, tensors of theirs, and the operation between them. Every operation has
a reverse, so one table reads a model and writes it. Reading accounts for every tensor: each is
used, or on the layout's short list of leftovers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import nn

from regard.attention.positions import Sinusoids
from regard.base.errors import RunError, SettingsError
from regard.base.shapes import Tensor
from regard.exchange.operations import SAME, Constant, Operation
from regard.models.sizes import AnyModule, build_within

MOST_NAMES = 8  # listed in one message


@dataclass(frozen=True)
class Rule:
    """Tensors of ours, and the tensors of theirs that the operation makes them from."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    operation: Operation = SAME

    def named(self, ours: Mapping[str, object], theirs: Mapping[str, object]) -> Rule:
        """Return the rule with placeholders as "{layer}" filled in; others stay."""
        return Rule(
            tuple(_filled(name, ours) for name in self.ours),
            tuple(_filled(name, theirs) for name in self.theirs),
            self.operation,
        )

    def inside(self, ours: str, theirs: str) -> Rule:
        """Return the rule with these texts before all names of each side."""
        return Rule(
            tuple(ours + name for name in self.ours),
            tuple(theirs + name for name in self.theirs),
            self.operation,
        )


TensorNames = str | Sequence[str]


def rule(ours: TensorNames, theirs: TensorNames, operation: Operation = SAME) -> Rule:
    """Return a row of a table; one name may be given as text."""
    sides = [(side,) if isinstance(side, str) else tuple(side) for side in (ours, theirs)]
    return Rule(sides[0], sides[1], operation)


def spread(rules: Iterable[Rule], **values: Iterable[object]) -> list[Rule]:
    """Return the rules for every value of a placeholder, as `layer=range(6)`.

    A value that the two sides write differently is a pair, as `kind=[("bias", "beta")]`. A rule
    without the placeholder stays as it is.
    """
    found = list(rules)
    for name, each in values.items():
        pairs = [value if isinstance(value, tuple) else (value, value) for value in each]
        found = [
            one.named({name: ours}, {name: theirs}) if _mentions(one, name) else one
            for one in found
            for ours, theirs in (pairs if _mentions(one, name) else [("", "")])
        ]
    return found


def _filled(name: str, values: Mapping[str, object]) -> str:
    return re.sub(r"\{(\w+)\}", lambda hit: str(values.get(hit[1], hit[0])), name)


def _mentions(one: Rule, placeholder: str) -> bool:
    return any(f"{{{placeholder}}}" in name for name in (*one.ours, *one.theirs))


@dataclass(frozen=True, kw_only=True)
class WeightLayout:
    """The rules of a model, and what else its files hold."""

    rules: Sequence[Rule]
    copies: Mapping[str, str] = field(default_factory=dict)
    """Tensors that must equal another one, by name: the second name of a shared table."""
    leftovers: Mapping[str, str] = field(default_factory=dict)
    """Tensors that are not needed: a pattern of their names, and why."""


def built(
    build: Callable[[], AnyModule], tensors: Mapping[str, Tensor], *, origin: object
) -> AnyModule:
    """Return the model of a configuration; one far larger than these weights is an error."""
    stored = sum(4 * tensor.numel() for tensor in tensors.values())
    return build_within(build, stored, origin=origin, described_by="configuration")


def require_rows(
    tensors: Mapping[str, Tensor], name: str, rows: int, *, said_by: object, origin: object
) -> None:
    """Refuse a vocabulary size that is not the number of rows of an embedding."""
    table = tensors.get(name)
    if table is None or table.dim() != 2:
        raise RunError(f"{origin} has no matrix {name!r}: it is incomplete, or of another model.")
    if len(table) != rows:
        raise RunError(
            f"{said_by} is {rows:,}, but {name!r} in {origin} has {len(table):,} rows: they belong "
            "to different models."
        )


MOST_OFFSET = 3  # of a first position that is looked for


def sinusoid_settings(table: Tensor) -> dict[str, Any] | None:
    """Return the settings of the sinusoids that a table of positions holds; None if of none."""
    if table.dim() != 2 or table.shape[1] % 2:
        return None
    forms = product(("interleaved", "halves"), (False, True), range(MOST_OFFSET + 1))
    for form, stretched, offset in forms:
        waves = Sinusoids(table.shape[1], layout=form, offset=offset, stretched=stretched)
        if torch.allclose(waves(len(table)), table.float(), atol=1e-3):
            return {
                "sinusoids": form,
                "stretched_sinusoids": stretched,
                "sinusoid_offset": offset,
            }
    return None


def fill(
    model: nn.Module, layout: WeightLayout, tensors: Mapping[str, Tensor], *, origin: object
) -> dict[str, str]:
    """Give a model the weights of another program; return the leftovers with their reasons.

    `origin` is the file that messages name. Nothing is changed unless everything fits.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    _require_present(layout, tensors, origin)
    _require_shapes(layout, tensors, parameters, origin)
    leftovers = _account(layout, tensors, origin)
    filled: set[int] = set()
    with torch.no_grad():
        for one in layout.rules:
            mine = [parameters[name] for name in one.ours]
            filled.update(map(id, mine))
            if isinstance(one.operation, Constant):
                for parameter in mine:
                    parameter.copy_(one.operation.like(parameter))
                continue
            made = one.operation.apply([tensors[name].float() for name in one.theirs])
            for parameter, tensor in zip(mine, made, strict=True):
                parameter.copy_(tensor)
    unfilled = [name for name, parameter in parameters.items() if id(parameter) not in filled]
    if unfilled:
        raise RunError(f"{origin}: the layout has no weights for {_listed(unfilled)}.")
    return leftovers


@torch.no_grad()
def written(model: nn.Module, layout: WeightLayout) -> dict[str, Tensor]:
    """Return a model's weights as the other program keeps them, copies left out.

    What the layout cannot hold is an error: reading it again must give the same weights.
    """
    parameters = dict(model.named_parameters(remove_duplicate=False))
    tensors: dict[str, Tensor] = {}
    lost: list[str] = []
    for one in layout.rules:
        mine = [parameters[name].detach() for name in one.ours]
        if isinstance(one.operation, Constant):
            back = [one.operation.like(part) for part in mine]
        else:
            made = one.operation.reverse.apply(mine)
            tensors |= {
                name: part.contiguous().clone() for name, part in zip(one.theirs, made, strict=True)
            }
            back = one.operation.apply(made)
        if not getattr(one.operation, "exact", True):
            continue
        lost += [
            name
            for name, part, again in zip(one.ours, mine, back, strict=True)
            if not torch.equal(part, again)
        ]
    if lost:
        raise SettingsError(
            f"That layout has no place for all of {_listed(lost)}: weights that it lacks have been "
            "trained since the import."
        )
    return tensors


def _require_present(layout: WeightLayout, tensors: Mapping[str, Tensor], origin: object) -> None:
    missing = [name for one in layout.rules for name in one.theirs if name not in tensors]
    if missing:
        raise RunError(
            f"{origin} has no tensor {_listed(missing)}: the file is incomplete, or its "
            "configuration is that of another model."
        )


def _require_shapes(
    layout: WeightLayout,
    tensors: Mapping[str, Tensor],
    parameters: Mapping[str, Tensor],
    origin: object,
) -> None:
    """Compare every tensor with the shape that the reverse operation gives to ours."""
    problems = []
    for one in layout.rules:
        if isinstance(one.operation, Constant):
            continue
        mine = [torch.empty(parameters[name].shape, device="meta") for name in one.ours]
        wanted = one.operation.reverse.apply(mine)
        for name, expected in zip(one.theirs, wanted, strict=True):
            if not tensors[name].is_floating_point():
                kind = str(tensors[name].dtype).removeprefix("torch.")
                problems.append(f"{name!r} holds numbers of the type {kind}, which are no weights")
            elif tensors[name].shape != expected.shape:
                problems.append(
                    f"{name!r} has shape {tuple(tensors[name].shape)} instead of "
                    f"{tuple(expected.shape)}"
                )
    if problems:
        raise RunError(f"{origin} does not fit its configuration: {_joined(problems)}.")


def _account(layout: WeightLayout, tensors: Mapping[str, Tensor], origin: object) -> dict[str, str]:
    """Return the leftovers; a tensor that is neither used nor one of them is an error."""
    used = {name for one in layout.rules for name in one.theirs}
    leftovers: dict[str, str] = {}
    unknown = []
    for name, tensor in tensors.items():
        if name in used:
            continue
        if name in layout.copies:
            other = tensors.get(layout.copies[name])
            if other is None or not torch.equal(other, tensor):
                raise RunError(
                    f"{origin}: {name!r} differs from {layout.copies[name]!r}, but the "
                    "configuration says that they are one table."
                )
            leftovers[name] = f"the same as {layout.copies[name]}"
            continue
        reasons = [why for each, why in layout.leftovers.items() if re.fullmatch(each, name)]
        if reasons:
            leftovers[name] = reasons[0]
        else:
            unknown.append(name)
    if unknown:
        raise RunError(
            f"{origin} has tensors that this layout does not know: {_listed(unknown)}. A model is "
            "imported whole or not at all."
        )
    return leftovers


def _listed(names: Sequence[str]) -> str:
    return _joined([repr(name) for name in names])


def _joined(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - MOST_NAMES} more" if len(parts) > MOST_NAMES else ""
    return ", ".join(parts[:MOST_NAMES]) + more
