"""All illustrations by name, in the order of the lectures, and what can be changed of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeAlias

from regard.base.errors import SettingsError
from regard.lectures.illustrations import attention, gates, self_attention
from regard.lectures.illustrations.illustration import Illustration

Amount: TypeAlias = float | int | bool

ILLUSTRATIONS: dict[str, Callable[..., Illustration]] = {
    "dilution": gates.dilution,
    "single-gate": gates.single_gate,
    "lstm-cell": gates.lstm_cell,
    "unrolled-gates": gates.unrolled_gates,
    "without-softmax": attention.without_softmax,
    "extreme-case": attention.extreme_case,
    "two-words": self_attention.two_words,
    "scaling": self_attention.scaling,
    "concatenated-heads": self_attention.concatenated_heads,
    "causal": self_attention.causal,
    "any-order": attention.same_for_any_order,
    "binary-positions": attention.binary_positions,
    "heads-as-convolution": attention.heads_as_convolution,
    "shift": attention.shifted,
    "patterns": self_attention.patterns,
    "graph-attention": self_attention.graph_attention,
}


def illustrate(name: str, **numbers: Amount) -> Illustration:
    """Return an illustration by name; `numbers` are what its function can be given."""
    if name not in ILLUSTRATIONS:
        names = ", ".join(ILLUSTRATIONS)
        raise SettingsError(f"There is no illustration {name!r}; choose one of: {names}.")
    known = options(name)
    for key in numbers:
        if key not in known:
            listed = ", ".join(known)
            raise SettingsError(f"The illustration {name} has no {key!r}; it has: {listed}.")
    typed = {key: type(known[key])(number) for key, number in numbers.items()}
    return ILLUSTRATIONS[name](**typed)


def options(name: str) -> dict[str, Amount]:
    """Return what can be changed of an illustration, with the values that it has by itself."""
    found = inspect.signature(ILLUSTRATIONS[name]).parameters
    return {key: parameter.default for key, parameter in found.items()}


def read_options(name: str, given: list[str]) -> dict[str, Amount]:
    """Read `key=value` texts as the numbers of an illustration."""
    read: dict[str, Amount] = {}
    known = options(name) if name in ILLUSTRATIONS else {}
    for text in given:
        key, _, value = text.partition("=")
        kind = type(known.get(key, 0.0))
        try:
            read[key] = _flag(value) if kind is bool else kind(value)
        except ValueError as error:
            wanted = {bool: "true or false", int: "a whole number"}.get(kind, "a number")
            raise SettingsError(f"--set {text}: {key} must be {wanted}.") from error
    return read


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
