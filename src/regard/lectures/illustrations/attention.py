"""Facts about attention: the softmax, the extreme case, order, positions, heads, shifts."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from regard.attention.masks import Visibility
from regard.attention.multihead import MultiHeadAttention
from regard.attention.positions import RelativePositions, Sinusoids
from regard.base.errors import SettingsError
from regard.compute.device import HOST
from regard.lectures.illustrations.illustration import Illustration, softmax
from regard.pictures.matrices import NamedMatrix

WORDS = ("cats", "do", "not", "like", "dogs")
# States of an encoder as a lecturer would write them on the board: columns y^e(1) .. y^e(5).
STATES = np.array(
    [
        [0.9, 0.1, -0.2, 0.1, 0.3],
        [0.0, 0.2, 0.9, -0.1, 0.1],
        [0.2, 0.1, 0.0, 0.9, -0.1],
        [-0.1, 0.3, 0.2, 0.1, 0.9],
    ]
)
UNITS = tuple(f"unit {number}" for number in range(1, 5))


def without_softmax(strength: float = 2.0) -> Illustration:
    """Attention before and after the softmax: y^a(t) = Y^e a(t), and Y^e softmax(a(t)).

    `strength` is the length of the query: without the softmax the context grows with it.
    """
    query = strength * np.array([-0.3, 0.1, 0.9, 0.1])
    raw = STATES.T @ query
    weights = softmax(raw)
    free, mean = STATES @ raw, STATES @ weights
    return Illustration(
        name="without-softmax",
        title=f"Attention without softmax and with it (length of the query times {strength:g})",
        equation="a(t) = Y^e^T y^d(t);  y^a(t) = Y^e a(t);  "
        "a_1(t) = softmax(a(t)), y^a(t) = Y^e a_1(t)",
        shows=f"Without softmax the shares add up to {raw.sum():.2f} and the smallest is "
        f"{raw.min():.2f}; with it they are positive and add up to 1, and the context stays "
        "between the states.",
        matrices=(
            NamedMatrix("Y^e, a column a word", STATES, UNITS, WORDS),
            NamedMatrix("y^d(t)", query[:, None]),
            NamedMatrix("a(t)", raw[:, None], WORDS),
            NamedMatrix("Y^e a(t)", free[:, None]),
            NamedMatrix("softmax(a(t))", weights[:, None], WORDS, weights=True),
            NamedMatrix("Y^e softmax(a(t))", mean[:, None]),
        ),
        figures={
            "sum_without": float(raw.sum()),
            "sum_with": float(weights.sum()),
            "length_without": float(np.linalg.norm(free)),
            "length_with": float(np.linalg.norm(mean)),
        },
    )


def extreme_case(strength: float = 8.0, word: int = 4) -> Illustration:
    """If the query equals the key of one word and is strong, the context is that word's value.

    `word` counts from 1; `strength` is the factor of the query.
    """
    if not 1 <= word <= len(WORDS):
        raise SettingsError(f"word = {word}: the sentence has words 1 to {len(WORDS)}.")
    keys = STATES / np.linalg.norm(STATES, axis=0)
    query = strength * keys[:, word - 1]
    weights = softmax(keys.T @ query)
    context = STATES @ weights
    value = STATES[:, word - 1]
    gap = float(np.abs(context - value).max())
    return Illustration(
        name="extreme-case",
        title=f'The extreme case: the query is {strength:g} times the key of "{WORDS[word - 1]}"',
        equation="y^d(t) = strength * k_i  =>  softmax(K^T y^d(t)) -> 1 at i, y^a(t) -> y^e(i)",
        shows=f"{weights[word - 1]:.0%} of the weight is on that word; the context differs from "
        f"its value by at most {gap:.3f}.",
        matrices=(
            NamedMatrix("keys k_i, of length 1", keys, UNITS, WORDS),
            NamedMatrix("query y^d(t)", query[:, None]),
            NamedMatrix("weights", weights[:, None], WORDS, weights=True),
            NamedMatrix("context y^a(t)", context[:, None]),
            NamedMatrix(f"y^e({word})", value[:, None]),
        ),
        figures={"weight": float(weights[word - 1]), "gap": gap},
    )


def same_for_any_order(positions: bool = False) -> Illustration:
    """ATT(A, B, C) = ATT(B, C, A), until positions are added to the vectors.

    One query reads three vectors in two orders, with a layer's random matrices.
    """
    generator = torch.Generator().manual_seed(3)
    tokens = 0.8 * torch.randn(3, 4, generator=generator, dtype=torch.float64)
    query = torch.randn(4, generator=generator, dtype=torch.float64)
    places = Sinusoids(4)(3, dtype=torch.float64) if positions else torch.zeros(3, 4)
    orders = {"A, B, C": [0, 1, 2], "B, C, A": [1, 2, 0]}
    matrices, contexts = [], []
    for name, order in orders.items():
        read = (tokens[order] + places).numpy()
        weights = softmax(read @ query.numpy())
        contexts.append(weights @ read)
        labels = name.split(", ")
        matrices += [
            NamedMatrix(f"({name})" + (" + p" if positions else ""), read, labels, new_line=True),
            NamedMatrix("weights", weights[:, None], labels, weights=True),
            NamedMatrix(f"ATT({name.replace(' ', '')})", contexts[-1][None]),
        ]
    gap = float(np.abs(contexts[0] - contexts[1]).max())
    return Illustration(
        name="any-order",
        title="Position-invariance, " + ("broken by positions" if positions else "shown"),
        equation="ATT(A, B, C) = sum_i softmax_i(q . x_i) x_i = ATT(B, C, A)"
        + ("  does not hold for x_i + p_i" if positions else ""),
        shows=f"The two contexts differ by {gap:.3f}."
        + (" Now the order counts." if positions else " A sum does not know its order."),
        matrices=tuple(matrices),
        figures={"difference": gap},
    )


def binary_positions(bits: int = 4) -> Illustration:
    """Sinusoids are a binary code that moves continuously: each wave is twice as long as the last.

    Bit k of a position has period 2^(k+1). So has the sine beside it; the paper's own waves grow by
    a constant factor, too, only a smaller one.
    """
    if not 1 <= bits <= 6:
        raise SettingsError(f"bits = {bits}: choose 1 to 6, for 2 to 64 positions.")
    places = np.arange(2**bits)
    labels = [str(place) for place in places]
    digits = (places[:, None] >> np.arange(bits)) & 1
    # Minus sine, half a step on: a bit is 1 in the second half of its period.
    turns = (places[:, None] + 0.5) / 2.0 ** np.arange(1, bits + 1)
    waves = -np.sin(2 * np.pi * turns)
    paper = Sinusoids(2 * bits)(len(places), dtype=torch.float64).numpy()[:, ::2]
    agree = float(((waves > 0) == (digits == 1)).mean())
    names = [f"bit {bit}" for bit in range(bits)]
    return Illustration(
        name="binary-positions",
        title="Sinusoids as continuous binary numbers",
        equation="bit k of p has period 2^(k+1);  wave k: -sin(2 pi (p + 1/2) / 2^(k+1));  paper: "
        "sin(p / 10000^(2i/d))",
        shows=f"The sign of a wave is its bit in {agree:.0%} of the cells. Fast waves tell "
        "neighbours apart, slow ones far places.",
        matrices=(
            NamedMatrix(
                "the position in binary", digits.astype(float), labels, names, weights=True
            ),
            NamedMatrix("waves of the same periods", waves, labels, names),
            NamedMatrix(
                f"the paper's sines, d = {2 * bits}", paper, labels, [str(i) for i in range(bits)]
            ),
        ),
        figures={"agreement": agree},
    )


def heads_as_convolution(width: int = 3) -> Illustration:
    """As many heads as a convolution is wide, each looking at one distance, are that convolution.

    Head h gives all its weight to the word at distance h; its W^V W^O is the matrix that the
    convolution has for that distance.
    """
    if width not in (1, 3, 5):
        raise SettingsError(f"width = {width}: choose 1, 3 or 5, so that there is a middle.")
    generator = torch.Generator().manual_seed(5)
    length, inputs, outputs = 6, 3, 2
    states = torch.randn(length, inputs, generator=generator)
    kernel = torch.randn(outputs, inputs, width, generator=generator)
    convolved = F.conv1d(states.T[None], kernel, padding=width // 2)[0].T.numpy()
    heads, total = [], np.zeros((length, outputs))
    for tap in range(width):
        distance = tap - width // 2
        weights = np.eye(length, k=distance)  # beyond the ends there is nothing to look at
        total += weights @ states.numpy() @ kernel[:, :, tap].T.numpy()
        heads.append(NamedMatrix(f"head {tap + 1}: distance {distance:+d}", weights, weights=True))
    gap = float(np.abs(total - convolved).max())
    return Illustration(
        name="heads-as-convolution",
        title=f"{width} heads are a convolution of width {width}",
        equation="sum_h A_h X W_h with A_h(t, t + h) = 1   =   conv(X)(t) = sum_h W_h x(t + h)",
        shows=f"The two outputs differ by at most {gap:.1e}. A convolution has its distances fixed;"
        " heads choose theirs by content.",
        matrices=(
            *heads,
            NamedMatrix("sum over heads", total, new_line=True),
            NamedMatrix("convolution", convolved),
        ),
        figures={"difference": gap},
    )


def shifted(by: int = 2) -> Illustration:
    """Relative attention follows a shift of its input; added positions do not.

    The same four vectors stand at two places of a longer line whose other places are padding.
    """
    if not 1 <= by <= 4:
        raise SettingsError(f"by = {by}: choose a shift of 1 to 4 places.")
    torch.manual_seed(0)
    length, size, width = 4, 9, 4
    motif = torch.randn(length, width)
    outputs = {}
    for kind in ("relative", "sinusoidal"):
        own = RelativePositions(width, reach=4) if kind == "relative" else None
        layer = MultiHeadAttention(model_dim=width, heads=1, positions=own).eval()
        added = Sinusoids(width)(size) if kind == "sinusoidal" else torch.zeros(size, width)
        for start in (0, by):
            line, real = torch.zeros(size, width), torch.zeros(size, dtype=torch.bool)
            line[start : start + length], real[start : start + length] = motif, True
            seen = Visibility(
                target=size,
                source=size,
                real=real[None],
                dtype=torch.float32,
                device=HOST,
            )
            with torch.inference_mode():
                attended, _ = layer((line + added)[None], seen)
            outputs[kind, start] = attended.context[0, start : start + length].numpy()
    gaps = {
        kind: float(np.abs(outputs[kind, 0] - outputs[kind, by]).max())
        for kind in ("relative", "sinusoidal")
    }
    rows = ("A", "B", "C", "D")
    return Illustration(
        name="shift",
        title=f"The same four vectors, {by} places later",
        equation="relative: e_ij = q_i . (k_j + w_(j-i)), so shift(ATT(X)) = ATT(shift(X))",
        shows=f"With relative positions the output moves along unchanged (difference "
        f"{gaps['relative']:.1e}); with sinusoids that are added it changes by up to "
        f"{gaps['sinusoidal']:.2f}.",
        matrices=(
            NamedMatrix("relative, at 0", outputs["relative", 0], rows),
            NamedMatrix(f"relative, at {by}", outputs["relative", by], rows),
            NamedMatrix("sinusoidal, at 0", outputs["sinusoidal", 0], rows, new_line=True),
            NamedMatrix(f"sinusoidal, at {by}", outputs["sinusoidal", by], rows),
        ),
        figures=gaps,
    )
