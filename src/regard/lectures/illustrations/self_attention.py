"""Self-attention worked through: two words, masks, scale, heads, patterns, edges of a graph."""

from __future__ import annotations

import math

import numpy as np
import torch

from regard.base.errors import SettingsError
from regard.lectures.illustrations.illustration import Illustration, softmax
from regard.pictures.matrices import NamedMatrix

PAIR = ("Thinking", "Machines")
EMBEDDINGS = np.array([[1.0, 0.2, -0.5, 0.6], [-0.3, 1.1, 0.4, 0.1]])
WIDTH, HEAD = 4, 3


def _matrix(seed: int, rows: int, columns: int) -> np.ndarray:
    """Return small numbers with one decimal, as one would write them on the board."""
    random = np.random.default_rng(seed)
    return np.asarray(np.round(random.uniform(-1, 1, (rows, columns)), 1))


def two_words(scaled: bool = True) -> Illustration:
    """Self-attention of two words, step by step: X, Q, K, V, scores, softmax, Z.

    The rows are the vectors of the words, so the same numbers are the vectors q_1, k_1, v_1 of one
    lecture and the matrices of another. Without `scaled`, nothing divides by sqrt(d_k).
    """
    queries, keys, values = (EMBEDDINGS @ _matrix(seed, WIDTH, HEAD) for seed in (4, 15, 6))
    products = queries @ keys.T
    scores = products / math.sqrt(HEAD) if scaled else products
    weights = softmax(scores)
    divided = "Q K^T / sqrt(d_k)" if scaled else "Q K^T, not divided"
    return Illustration(
        name="two-words",
        title="Self-attention of two words",
        equation="Q = X W^Q, K = X W^K, V = X W^V;  Z = softmax(Q K^T / sqrt(d_k)) V",
        shows=f'"{PAIR[0]}" gives {weights[0, 0]:.0%} of its weight to itself and '
        f'{weights[0, 1]:.0%} to "{PAIR[1]}"; z_1 is that mixture of v_1 and v_2.',
        matrices=(
            NamedMatrix("X", EMBEDDINGS, PAIR),
            NamedMatrix("Q = X W^Q", queries),
            NamedMatrix("K = X W^K", keys),
            NamedMatrix("V = X W^V", values),
            NamedMatrix("Q K^T", products, PAIR, ("k_1", "k_2"), new_line=True),
            NamedMatrix(divided, scores),
            NamedMatrix("softmax", weights, weights=True),
            NamedMatrix("Z", weights @ values),
        ),
        figures={"to_itself": float(weights[0, 0])},
    )


def concatenated_heads(heads: int = 2) -> Illustration:
    """Several heads: each has its own Q, K and V; their outputs stand side by side, times W^O."""
    if not 1 <= heads <= 8:
        raise SettingsError(f"heads = {heads}: choose 1 to 8.")
    outputs = []
    for head in range(heads):
        queries, keys, values = (
            EMBEDDINGS @ _matrix(10 * head + seed, WIDTH, HEAD) for seed in (4, 15, 6)
        )
        outputs.append(softmax(queries @ keys.T / math.sqrt(HEAD)) @ values)
    side_by_side = np.concatenate(outputs, axis=1)
    joining = _matrix(99, heads * HEAD, WIDTH)
    return Illustration(
        name="concatenated-heads",
        title=f"{heads} head{'s' * (heads > 1)}, side by side, times W^O",
        equation="MultiHead(X) = [Z_1; ...; Z_h] W^O",
        shows=f"{heads} times {HEAD} numbers a word become {WIDTH} again: the next layer reads "
        "them as it reads X.",
        matrices=(
            NamedMatrix(f"[Z_1 ... Z_{heads}]", side_by_side, PAIR),
            NamedMatrix("W^O", joining, new_line=heads > 4),
            NamedMatrix("the layer's output", side_by_side @ joining, PAIR, new_line=True),
        ),
        figures={"columns": float(heads * HEAD)},
    )


def scaling(width: int = 64) -> Illustration:
    """Why scores are divided by sqrt(d_k): the spread of a product grows with the vectors' length.

    One query and eight keys of `width` random numbers with variance 1.
    """
    if not 1 <= width <= 1024:
        raise SettingsError(f"width = {width}: choose 1 to 1024.")
    random = np.random.default_rng(7)
    vectors = random.standard_normal((9, 1024))[:, :width]
    products = vectors[1:] @ vectors[0]
    raw, divided = softmax(products), softmax(products / math.sqrt(width))
    keys = tuple(f"k_{number}" for number in range(1, 9))
    return Illustration(
        name="scaling",
        title=f"Products of vectors of {width} numbers",
        equation="Var(q . k) = d_k  =>  softmax(q K^T / sqrt(d_k))",
        shows=f"Without the division the largest weight is {raw.max():.0%}, with it "
        f"{divided.max():.0%}. Where the softmax is almost 0 and 1, hardly any gradient passes.",
        matrices=(
            NamedMatrix("q . k_j", products[None], columns=keys),
            NamedMatrix("softmax(q . k_j)", raw[None], columns=keys, weights=True, new_line=True),
            NamedMatrix("softmax(q . k_j / sqrt(d_k))", divided[None], columns=keys, weights=True,
                        new_line=True),
        ),
        figures={"largest_raw": float(raw.max()), "largest": float(divided.max())},
    )  # fmt: skip


def causal(masked: bool = True) -> Illustration:
    """Masked self-attention: a word sees itself and what came before, never what comes."""
    words = ("Katzen", "mögen", "keine", "Hunde")
    scores = np.round(np.random.default_rng(8).uniform(-1.5, 1.5, (4, 4)), 1)
    allowed = np.tril(np.ones((4, 4))) if masked else np.ones((4, 4))
    weights = softmax(np.where(allowed > 0, scores, -np.inf))
    ahead = float(np.triu(weights, 1).sum())
    return Illustration(
        name="causal",
        title="The mask of the decoder" if masked else "Without the mask the future leaks",
        equation="softmax(Q K^T / sqrt(d_k) + M),  M_ij = 0 for j <= i, otherwise -infinity",
        shows=f"Weight on words that are not written yet: {ahead:.2f}. "
        + (
            "All positions are trained at once, each as if it were the last."
            if masked
            else "In training the next word could be copied; in use it is not there."
        ),
        matrices=(
            NamedMatrix("scores", scores, words, words),
            NamedMatrix("may be seen", allowed, words, words, weights=True),
            NamedMatrix("weights", weights, words, words, weights=True),
        ),
        figures={"ahead": ahead},
    )


def patterns(span: int = 3) -> Illustration:
    """Which pairs are computed: all, a window, a window with every s-th word, buckets, a memory.

    `span` is the width of the window, the stride, the size of a bucket and the memory.
    """
    if not 2 <= span <= 6:
        raise SettingsError(f"span = {span}: choose 2 to 6.")
    size = 16
    row, column = np.indices((size, size))
    past = column <= row
    bucket = np.random.default_rng(4).permutation(size) // span
    segment = row // (2 * span) == column // (2 * span)
    remembered = (row // (2 * span) * 2 * span - column <= span) & (column < row)
    shown = {
        "all earlier words": past,
        "a window": past & (row - column < span),
        "window and stride": past & ((row - column < span) | (column % span == span - 1)),
        "buckets of like words": past & (bucket[row] == bucket[column]),
        "segments and a memory": past & (segment | remembered),
    }
    shares = {name: float(seen.sum() / past.sum()) for name, seen in shown.items()}
    return Illustration(
        name="patterns",
        title=f"Which words each of {size} words compares itself with (span {span})",
        equation="n^2 / 2 pairs for all; n w for a window; about n sqrt(n) with a stride; "
        "n^2 / buckets; n (segment + memory)",
        shows="; ".join(f"{name} {share:.0%}" for name, share in shares.items()) + " of the pairs.",
        matrices=tuple(
            NamedMatrix(name, seen.astype(float), weights=True, new_line=number == 3)
            for number, (name, seen) in enumerate(shown.items())
        ),
        figures={name.replace(" ", "_"): share for name, share in shares.items()},
    )


EDGES = ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4))
FEATURES = np.array([[1.0, 0.0], [0.8, 0.3], [0.1, 0.9], [-0.6, 0.7], [-1.0, 0.1]])


def graph_attention(slope: float = 0.2) -> Illustration:
    """Attention over the edges of a small graph (Velickovic et al. 2018, eq. 3).

    A node attends to its neighbours and itself; LeakyReLU has the slope `slope` below 0.
    """
    if not 0 <= slope <= 1:
        raise SettingsError(f"slope = {slope:g}: choose 0 to 1; 1 is no bend at all.")
    count = len(FEATURES)
    adjacent = np.eye(count, dtype=bool)
    for one, other in EDGES:
        adjacent[one, other] = adjacent[other, one] = True
    projected = FEATURES @ np.array([[0.9, -0.4], [0.3, 1.1]])
    own, neighbour = projected @ np.array([0.8, -1.0]), projected @ np.array([-0.6, 1.2])
    raw = own[:, None] + neighbour[None]
    scores = torch.nn.functional.leaky_relu(torch.from_numpy(raw), slope).numpy()
    weights = softmax(np.where(adjacent, scores, -np.inf))
    nodes = tuple("ABCDE")
    return Illustration(
        name="graph-attention",
        title="Attention over the edges A-B, A-C, B-C, C-D, D-E",
        equation="alpha_ij = softmax_j LeakyReLU(a^T [W h_i || W h_j]) over the edges of i;  "
        "h'_i = sum_j alpha_ij W h_j",
        shows=f"Node C has {int(adjacent[2].sum())} neighbours with itself, which share its "
        f"weight; pairs without an edge ({int((~adjacent).sum())} of {count**2}) get none.",
        matrices=(
            NamedMatrix("W h_i", projected, nodes),
            NamedMatrix("who is joined", adjacent.astype(float), nodes, nodes, weights=True),
            NamedMatrix("LeakyReLU(a^T [W h_i || W h_j])", scores, nodes, nodes, new_line=True),
            NamedMatrix("alpha_ij", weights, nodes, nodes, weights=True),
            NamedMatrix("h'_i", weights @ projected, nodes),
        ),
        figures={"outside": float(weights[~adjacent].sum())},
    )
