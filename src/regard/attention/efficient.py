"""Attention whose cost grows only linearly with the length: to a window, or by a kernel."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F

from regard.attention.masks import Visibility, penalties_of
from regard.base.results import Attended
from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.kernels import Drop

# A window pays from this many windows of keys on; below, masking all pairs is cheaper.
MANY_WINDOWS = 4


def window_pays(visibility: Visibility) -> bool:
    """Return whether a window is worth its own kernel here; it reads whole sequences only."""
    return (
        visibility.window is not None
        and visibility.distance_bias is None
        and visibility.target == visibility.source
        and visibility.source >= MANY_WINDOWS * visibility.window
    )


def local_attention(
    query: Float[Tensor, "batch heads time head_dim"],
    keys: Float[Tensor, "batch heads time head_dim"],
    values: Float[Tensor, "batch heads time head_dim"],
    *,
    window: int,
    causal: bool,
    real: Bool[Tensor, "batch time"] | None = None,
    dropout: Drop | None = None,
    bias: Callable[..., Float[Tensor, "heads window width"]] | None = None,
) -> Attended:
    """Return the context of keys at most `window` positions away (Beltagy et al. 2020, 3.1).

    The sequence is cut into blocks of `window` queries; each block looks at its own keys and those
    of the neighbouring blocks, and a mask removes what is too far. `bias` gives what is added to
    the scores at each distance.
    """
    batch, _, time, head_dim = query.shape
    blocks = math.ceil(time / window)
    missing = blocks * window - time
    if real is None:
        real = torch.ones(batch, time, dtype=torch.bool, device=query.device)
    after = 0 if causal else window
    asked = torch.unflatten(F.pad(query, (0, 0, 0, missing)), 2, (blocks, window))
    seen_keys, seen_values = (
        surroundings(part, window=window, missing=missing, after=after) for part in (keys, values)
    )  # [batch, heads, blocks, width, head_dim]
    seen_real = F.pad(real, (window, missing + after)).unfold(1, 2 * window + after, window)
    distances = block_distances(window, 2 * window + after, device=query.device)
    allowed = distances.abs() <= window
    if causal:
        allowed &= distances <= 0
    mask = allowed & seen_real[:, :, None, :]  # [batch, blocks, window, width]
    scores = (
        asked / math.sqrt(head_dim) @ seen_keys.transpose(-1, -2)
    )  # [batch, heads, blocks, window, width]
    scores = scores + penalties_of(mask, dtype=scores.dtype)[:, None]
    if bias is not None:
        scores = scores + bias(distances, dtype=scores.dtype)[:, None]
    weights = torch.softmax(scores, dim=-1)
    context = (weights if dropout is None else dropout(weights)) @ seen_values
    return Attended(context.flatten(2, 3)[:, :, :time], None)


def surroundings(
    part: Float[Tensor, "batch heads time head_dim"], *, window: int, missing: int, after: int
) -> Float[Tensor, "batch heads blocks width head_dim"]:
    """Return for each block the keys (or values) of itself and its neighbours."""
    padded = F.pad(part, (0, 0, window, missing + after))
    return padded.unfold(2, 2 * window + after, window).transpose(-1, -2)


def block_distances(
    window: int, width: int, *, device: torch.device
) -> Int[Tensor, "{window} {width}"]:
    """Return the position of each of a block's surroundings minus that of each of its queries."""
    places = torch.arange(width, device=device)[None, :] - window
    return places - torch.arange(window, device=device)[:, None]


CHUNK = 64  # positions computed at once, with all their pairs


class LinearState(NamedTuple):
    """The sums over all positions so far (Katharopoulos et al. 2020, eq. 10-11)."""

    products: Float[Tensor, "batch heads head_dim head_dim"]  # S = sum_j phi(k_j) v_j^T
    totals: Float[Tensor, "batch heads head_dim"]  # z = sum_j phi(k_j)


def features(heads: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return phi(x) = elu(x) + 1, which is positive (Katharopoulos et al. 2020, eq. 7)."""
    return F.elu(heads) + 1


def linear_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    visibility: Visibility,
) -> Attended:
    """Return the context of all real keys, in linear time (Katharopoulos et al. 2020, eq. 6)."""
    asked, offered = features(query), _without_padding(features(keys), visibility)
    products = offered.transpose(-1, -2) @ values
    totals = offered.sum(dim=2)
    return Attended(_normalised(asked @ products, asked @ totals[..., None]), None)


def causal_linear_attention(
    query: Float[Tensor, "batch heads time head_dim"],
    keys: Float[Tensor, "batch heads time head_dim"],
    values: Float[Tensor, "batch heads time head_dim"],
    *,
    state: LinearState | None,
) -> tuple[Attended, LinearState]:
    """Return the context of the positions so far, chunk by chunk, and the sums to go on with."""
    batch, heads, _, head_dim = query.shape
    products, totals = state or LinearState(
        query.new_zeros(batch, heads, head_dim, head_dim), query.new_zeros(batch, heads, head_dim)
    )
    contexts = []
    chunks = (torch.split(part, CHUNK, 2) for part in (features(query), features(keys), values))
    for asked, offered, value in zip(*chunks, strict=True):
        inside = (asked @ offered.transpose(-1, -2)).tril()
        upper = asked @ products + inside @ value
        lower = asked @ totals[..., None] + inside.sum(-1, keepdim=True)
        contexts.append(_normalised(upper, lower))
        products = products + offered.transpose(-1, -2) @ value
        totals = totals + offered.sum(dim=2)
    return Attended(torch.cat(contexts, dim=2), None), LinearState(products, totals)


def explicit_linear_attention(
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
    values: Float[Tensor, "batch heads source head_dim"],
    *,
    visibility: Visibility,
) -> Attended:
    """Return context and weights at quadratic cost, for pictures and as a reference in tests."""
    products = features(query) @ _without_padding(features(keys), visibility).transpose(-1, -2)
    if visibility.causal:
        products = products * visibility.near
    weights = _normalised(products, products.sum(-1, keepdim=True))
    return Attended(weights @ values, weights)


def _without_padding(offered: Tensor, visibility: Visibility) -> Tensor:
    return offered if visibility.real is None else offered * visibility.real[:, None, :, None]


def _normalised(upper: Tensor, lower: Tensor) -> Tensor:
    """Divide; where nothing may be attended to, the result is zero and not NaN."""
    return upper / lower.clamp_min(torch.finfo(lower.dtype).tiny)
