"""Recurrent states in small numbers: gates, their unrolled weights, and what is felt from afar."""

from __future__ import annotations

import numpy as np
import torch

from regard.attention.ladder import unrolled_weights
from regard.base.errors import SettingsError
from regard.lectures.illustrations.illustration import Illustration
from regard.pictures.matrices import NamedMatrix

# Inputs of a unit over six steps, as on the board; their tanh are the candidates.
INPUTS = np.array([0.8, -1.2, 0.4, 1.6, -0.5, 0.2])
STEPS = tuple(f"t = {step}" for step in range(1, len(INPUTS) + 1))


def _require_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise SettingsError(f"{name} = {value:g}: a gate lies between 0 and 1.")


def single_gate(gate: float = 0.0, write_at: int = 2) -> Illustration:
    """A single-gate unit with gates made by hand: s_t = (1 - g_t) s_{t-1} + g_t tanh(x_t).

    The gate is 1 at step `write_at` and `gate` elsewhere: with 0 the unit keeps what it wrote.
    """
    _require_share("gate", gate)
    if not 1 <= write_at <= len(INPUTS):
        raise SettingsError(f"write_at = {write_at}: the steps are 1 to {len(INPUTS)}.")
    gates = np.full(len(INPUTS), float(gate))
    gates[write_at - 1] = 1.0
    candidates, states, state = np.tanh(INPUTS), [], 0.0
    for now, candidate in zip(gates, candidates, strict=True):
        state = (1 - now) * state + now * candidate
        states.append(state)
    kept = state - candidates[write_at - 1]
    return Illustration(
        name="single-gate",
        title=f"One gate: it is 1 at step {write_at} and {gate:g} elsewhere",
        equation="s_t = (1 - g_t) s_{t-1} + g_t tanh(x_t)",
        shows=f"At the end the state is {state:.2f}; what was written at step {write_at} is "
        f"{candidates[write_at - 1]:.2f}. A gate of exactly 0 keeps, one of exactly 1 writes.",
        matrices=(
            NamedMatrix("x_t", INPUTS[None], columns=STEPS),
            NamedMatrix("tanh(x_t)", candidates[None], columns=STEPS, new_line=True),
            NamedMatrix("g_t", gates[None], columns=STEPS, weights=True, new_line=True),
            NamedMatrix("s_t", np.array(states)[None], columns=STEPS, new_line=True),
        ),
        figures={"state": float(state), "change": float(abs(kept))},
    )


def lstm_cell(forget: float = 1.0, write: float = 0.0, output: float = 1.0) -> Illustration:
    """An LSTM's memory with the same three gates at every step, after a first that writes.

    c_t = f c_{t-1} + i tanh(x_t), h_t = o tanh(c_t): what is kept, written and shown.
    """
    for name, value in {"forget": forget, "write": write, "output": output}.items():
        _require_share(name, value)
    candidates = np.tanh(INPUTS)
    cell, cells, shown = 0.0, [], []
    for step, candidate in enumerate(candidates):
        cell = forget * cell + (1.0 if step == 0 else write) * candidate
        cells.append(cell)
        shown.append(output * np.tanh(cell))
    return Illustration(
        name="lstm-cell",
        title=f"An LSTM with f = {forget:g}, o = {output:g}, and i = {write:g} after step 1",
        equation="c_t = f_t c_{t-1} + i_t tanh(x_t);  h_t = o_t tanh(c_t)",
        shows=f"The memory is {cells[-1]:.2f} after it was {cells[0]:.2f}; "
        f"{'the visible state is nothing' if output == 0 else f'visible is {shown[-1]:.2f}'}.",
        matrices=(
            NamedMatrix("tanh(x_t)", candidates[None], columns=STEPS),
            NamedMatrix("memory c_t", np.array(cells)[None], columns=STEPS, new_line=True),
            NamedMatrix("visible state h_t", np.array(shown)[None], columns=STEPS, new_line=True),
        ),
        figures={"first": float(cells[0]), "last": float(cells[-1]), "shown": float(shown[-1])},
    )


def unrolled_gates(keep: float = 0.7) -> Illustration:
    """A gated recurrence is a weighted sum, if the product of gates begins after the candidate.

    h_t = u_t h_{t-1} + (1 - u_t) h~_t, unrolled: the product runs over j = i + 1 .. t. Common
    slides let it begin at i, or end at t - 1: then the sum is not the state.
    """
    _require_share("keep", keep)
    gates = np.clip(keep + 0.25 * np.sin(2.1 * np.arange(len(INPUTS))), 0.0, 1.0)
    candidates, state, states = np.tanh(INPUTS), 0.0, []
    for gate, candidate in zip(gates, candidates, strict=True):
        state = gate * state + (1 - gate) * candidate
        states.append(state)
    right = unrolled_weights(torch.from_numpy(gates)[None, :, None])[0, :, :, 0].numpy()
    wrong = np.zeros_like(right)
    for now in range(len(INPUTS)):
        for then in range(now + 1):
            wrong[now, then] = np.prod(gates[then : now + 1]) * (1 - gates[then])
    rows = {"the recurrence": np.array(states), "j = i+1 .. t": right @ candidates,
            "j = i .. t": wrong @ candidates}  # fmt: skip
    gaps = {name: float(np.abs(row - states).max()) for name, row in rows.items()}
    return Illustration(
        name="unrolled-gates",
        title="The unrolled gates, and the indices that slides get wrong",
        equation="h_t = sum_i (prod_{j=i+1..t} u_j) (1 - u_i) h~_i   (h_0 = 0)",
        shows=f"With the product from i + 1 the sum is the state (difference "
        f"{gaps['j = i+1 .. t']:.0e}); from i it is off by up to {gaps['j = i .. t']:.2f}.",
        matrices=(
            NamedMatrix("weight of h~_i (across) in h_t", right, STEPS, STEPS, weights=True),
            NamedMatrix("the same with j from i: wrong", wrong, STEPS, STEPS, weights=True),
            NamedMatrix("h_t", np.stack(list(rows.values())), list(rows), STEPS, new_line=True),
        ),
        figures={"right": gaps["j = i+1 .. t"], "wrong": gaps["j = i .. t"]},
    )


def dilution(words: int = 12, scale: float = 0.9, gate: float = 0.2) -> Illustration:
    """How strongly the last state depends on each word: the bottleneck, in one row a network.

    |d h_T / d h_t| of a tanh RNN whose matrix is `scale` times a rotation, of a unit whose gate
    lets `gate` of the new in, and of attention with equal weights.
    """
    if not 2 <= words <= 40:
        raise SettingsError(f"words = {words}: choose 2 to 40.")
    if not 0 < scale <= 3:
        raise SettingsError(f"scale = {scale:g}: choose a scale above 0, up to 3.")
    _require_share("gate", gate)
    generator = torch.Generator().manual_seed(2)
    width = 8
    rotation = torch.linalg.qr(torch.randn(width, width, generator=generator)).Q
    recurrent = scale * rotation.double()
    inputs = 0.5 * torch.randn(words, width, generator=generator).double()
    states = [torch.zeros(width, dtype=torch.float64)]
    for row in inputs:
        states.append(torch.tanh(recurrent @ states[-1] + row))
    product, norms = torch.eye(width, dtype=torch.float64), [1.0]
    for state in reversed(states[2:]):  # d h_T / d h_t = prod_n diag(1 - h^2) W
        product = product @ (torch.diag(1 - state**2) @ recurrent)
        norms.append(float(torch.linalg.matrix_norm(product, 2)))
    rows = np.stack(
        [
            np.array(norms[::-1]),
            (1 - gate) ** np.arange(words - 1, -1, -1.0),
            np.ones(words),
        ]
    )
    names = [str(place) for place in range(1, words + 1)]
    return Illustration(
        name="dilution",
        title=f"What the end still feels of each of {words} words",
        equation="d h_T / d h_t = prod_{n=1..T-t} diag(tanh'(a_{t+n})) W   of a tanh RNN;   "
        "(1 - g)^(T-t)   of a gate",
        shows=f"Of the first word {norms[-1]:.1e} is left in the tanh RNN, "
        f"{(1 - gate) ** (words - 1):.1e} behind the gates; attention has every word at hand.",
        matrices=(
            NamedMatrix("relative to the last word", rows,
                        ["tanh RNN", "gated unit", "attention"], names),
        ),
        figures={"tanh": norms[-1], "gated": float((1 - gate) ** (words - 1))},
    )  # fmt: skip
