"""Losses over the vocabulary: plain, in chunks of rows, and with R-Drop."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from regard.base.shapes import Bool, Float, Int, Tensor
from regard.compute.device import on_host, uses_hand_kernels
from regard.compute.linear import add_product, product, transposed
from regard.compute.precision import narrowed


class LossSum(NamedTuple):
    """What to minimise, and the plain negative log-likelihood in nats; both are sums."""

    objective: Float[Tensor, ""]
    nats: Float[Tensor, ""]


def token_loss(
    features: Float[Tensor, "batch target model_dim"],
    *,
    expected: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
    project: Callable[[Tensor], Tensor],
    smoothing: float = 0.0,
) -> LossSum:
    """Return -sum_i log p(y_i), with label smoothing (Szegedy et al. 2016) in the objective.

    Only real positions are projected onto the vocabulary: padding costs nothing here.
    """
    logits = project(features[mask])  # [positions, vocab]
    wanted = expected[mask]
    nats = F.cross_entropy(logits, wanted, reduction="sum")
    if smoothing == 0.0:
        return LossSum(nats, nats.detach())
    smoothed = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
    return LossSum(smoothed, nats.detach())


ROWS = 512  # positions whose logits are held at once
# The same on other devices, which want few large steps.
LOGITS = 1 << 28


def _rows_at_once(rows: int, features: Tensor, weight: Tensor) -> int:
    """Return how many positions are projected at once."""
    return rows if on_host(features) else max(rows, LOGITS // len(weight))


def _of_places(mask: Tensor, *parts: Tensor) -> tuple[Tensor | None, tuple[Tensor, ...]]:
    """Return the real positions; where choosing them would cost a pause, all, and which are real.

    A compiler cannot choose either, since it has to know how many there are.
    """
    if uses_hand_kernels(mask):
        return None, tuple(part[mask] for part in parts)
    return mask.flatten(), tuple(part.flatten(0, 1) for part in parts)


def chunked_token_loss(
    features: Float[Tensor, "batch target model_dim"],
    *,
    expected: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
    weight: Float[Tensor, "vocab model_dim"],
    bias: Float[Tensor, "vocab"] | None = None,
    smoothing: float = 0.0,
    rows: int = ROWS,
) -> LossSum:
    """Return what `token_loss` returns for the projection x W^T + b, without holding all logits."""
    real, (chosen, wanted) = _of_places(mask, features, expected)
    rows = _rows_at_once(rows, features, weight)
    with torch.autocast(features.device.type, enabled=False):  # sums need all their bits
        objective, nats = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            chosen.to(weight.dtype), weight, bias, wanted, real, smoothing, rows
        )
    return LossSum(objective, nats)


class _ChunkedLoss(torch.autograd.Function):
    """sum_i (1 - s) (lse_i - x_iy) + s (lse_i - mean_v x_iv), with x = f W^T + b.

    Its derivative by the logits is p - (1 - s) [v = y] - s / V. The last term is the same for all
    positions, so it is added to the results and not to the logits.

    Logits have all bits, as losses are small differences of them; factors of gradients may have
    fewer.
    """

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        expected: Tensor,
        real: Tensor | None,
        smoothing: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        wanted = ctx.needs_input_grad
        by_features = torch.empty_like(features) if wanted[0] else None
        by_columns = weight.new_zeros(weight.T.shape) if wanted[1] else None  # dW, transposed
        by_bias = torch.zeros_like(bias) if bias is not None and wanted[2] else None
        vocab, columns, rounded = len(weight), transposed(weight), narrowed(weight)
        weight_mean = weight.mean(dim=0)
        bias_mean = 0.0 if bias is None else bias.mean()
        objective, nats = features.new_zeros(()), features.new_zeros(())
        held = features.new_empty(min(rows, len(features)), vocab)
        for start in range(0, len(features), rows):
            chunk, tokens = features[start : start + rows], expected[start : start + rows, None]
            p = product(chunk, columns, room=held[: len(chunk)])
            if bias is not None:
                p += bias
            logits = p.gather(1, tokens).squeeze(1)
            losses = _softmax_in_place(p, logits, chunk, weight, bias, tokens)
            here = None if real is None else real[start : start + rows]
            nats += _sum_of_real(losses, here)
            if smoothing:
                lse = losses + logits
                means = chunk @ weight_mean + bias_mean
                even = (1 - smoothing) * losses + smoothing * (lse - means)
                objective += _sum_of_real(even, here)
            if not any(wanted):
                continue
            p.scatter_add_(1, tokens, p.new_full(tokens.shape, smoothing - 1))
            _keep_real(p, here)
            by_logits = narrowed(p)
            if by_features is not None:
                by_features[start : start + rows] = product(by_logits, rounded)
            if by_columns is not None:
                add_product(by_columns, narrowed(chunk).T, by_logits)
            if by_bias is not None:
                by_bias += p.sum(dim=0)
        if smoothing:
            count: int | Tensor = len(features)
            if real is not None:
                count, features = real.sum(), features * real[:, None]
            if by_features is not None:
                by_features -= smoothing * _rows_of(weight_mean, real)
            if by_columns is not None:
                by_columns -= smoothing / vocab * features.sum(dim=0)[:, None]
            if by_bias is not None:
                by_bias -= smoothing * count / vocab
        by_weight = None if by_columns is None else by_columns.T.contiguous()
        ctx.save_for_backward(by_features, by_weight, by_bias)
        ctx.mark_non_differentiable(nats)
        return (objective if smoothing else nats.clone()), nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * gradient for part in ctx.saved_tensors]
        return (*scaled, None, None, None, None)


def _sum_of_real(values: Tensor, real: Tensor | None) -> Tensor:
    return values.sum() if real is None else (values * real).sum()


def _keep_real(rows: Tensor, real: Tensor | None) -> None:
    """Turn the rows of positions that are not real into zeros, in place."""
    if real is not None:
        rows *= real[:, None]


def _rows_of(rows: Tensor, real: Tensor | None) -> Tensor:
    """Return rows, or one row for all positions, with zeros where a position is not real."""
    return rows if real is None else rows * real[:, None]


def _softmax_in_place(
    scores: Tensor,
    wanted: Tensor,
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tokens: Tensor,
) -> Tensor:
    """Turn logits into probabilities and return -log p(y) of each row."""
    if uses_hand_kernels(scores):
        torch.softmax(scores, dim=-1, out=scores)  # from here on the logits are gone
        return _negative_logs(scores, features, weight, bias, tokens)
    sums = scores.logsumexp(dim=-1)
    scores.sub_(sums[:, None]).exp_()
    return sums - wanted


def _negative_logs(
    probabilities: Tensor, features: Tensor, weight: Tensor, bias: Tensor | None, tokens: Tensor
) -> Tensor:
    """Return -log p(y) of each row; where p(y) is too small to be exact, from the logits again."""
    found = probabilities.gather(1, tokens).squeeze(1)
    losses = -found.log()
    vague = found < 1e-30
    if bool(vague.any()):
        logits = F.linear(features[vague], weight, bias)
        losses[vague] = logits.logsumexp(dim=-1) - logits.gather(1, tokens[vague]).squeeze(1)
    return losses


def r_drop_loss(
    passes: tuple[Float[Tensor, "batch target model_dim"], Float[Tensor, "batch target model_dim"]],
    *,
    expected: Int[Tensor, "batch target"],
    mask: Bool[Tensor, "batch target"],
    weight: Float[Tensor, "vocab model_dim"],
    bias: Float[Tensor, "vocab"] | None = None,
    smoothing: float = 0.0,
    strength: float,
    rows: int = ROWS,
) -> LossSum:
    """Return 1/2 (L_1 + L_2) + a/4 (KL(p_1 || p_2) + KL(p_2 || p_1)) of two passes, a sum.

    This is half of the paper's objective, so that it is as large as the loss of one pass. The
    gradient is computed on the way, so the logits of a whole batch are never held.
    """
    real, (first, second, wanted) = _of_places(mask, *passes, expected)
    rows = _rows_at_once(rows, first, weight)
    with torch.autocast(first.device.type, enabled=False):  # sums need all their bits
        objective, nats = _RDrop.apply(  # type: ignore[no-untyped-call]
            first.to(weight.dtype),
            second.to(weight.dtype),
            weight,
            bias,
            wanted,
            real,
            smoothing,
            strength / 4,
            rows,
        )
    return LossSum(objective, nats)


class _RDrop(torch.autograd.Function):
    """With p and q of the two passes and d = log p - log q, the distance is sum (p - q) d.

    Its derivative by the logits of p is p (d + 1 - KL(p || q)) - q, and so for q with -d. That of
    the losses is as in `chunked_loss`: what smoothing gives to all tokens is the same for all
    positions, so it is added to the results and not to the logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        expected: Tensor,
        real: Tensor | None,
        smoothing: float,
        strength: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        passes, by_passes = (first, second), [torch.empty_like(one) for one in (first, second)]
        by_columns = weight.new_zeros(weight.T.shape)  # the gradient of W, transposed
        by_bias = None if bias is None else torch.zeros_like(bias)
        vocab, columns, rounded = len(weight), transposed(weight), narrowed(weight)
        weight_mean, bias_mean = weight.mean(dim=0), 0.0 if bias is None else bias.mean()
        objective, nats = first.new_zeros(()), first.new_zeros(())
        held = first.new_empty(4, min(rows, len(first)), vocab)
        for start in range(0, len(first), rows):
            chunks = [one[start : start + rows] for one in passes]
            tokens = expected[start : start + rows, None]
            p, q, by_p, by_q = held[:, : len(tokens)]
            here = None if real is None else real[start : start + rows]
            for probabilities, chunk in zip((p, q), chunks, strict=True):
                scores = product(chunk, columns, room=probabilities)
                if bias is not None:
                    scores += bias
                logits = scores.gather(1, tokens).squeeze(1)
                torch.log_softmax(scores, dim=-1, out=probabilities)
                losses = -probabilities.gather(1, tokens).squeeze(1)
                nats += _sum_of_real(losses, here) / 2
                even = losses + logits - chunk @ weight_mean - bias_mean
                objective += _sum_of_real((1 - smoothing) * losses + smoothing * even, here) / 2
            apart = torch.sub(p, q, out=by_q)
            p, q = p.exp_(), q.exp_()
            far_p = torch.linalg.vecdot(p, apart)[:, None]
            far_q = -torch.linalg.vecdot(q, apart)[:, None]
            objective += strength * _sum_of_real((far_p + far_q)[:, 0], here)
            torch.mul(apart, strength, out=by_p)
            _by_logits(by_p, far_p, own=p, other=q, strength=strength)
            _by_logits(by_q.mul_(-strength), far_q, own=q, other=p, strength=strength)
            for part, chunk, by in zip((by_p, by_q), chunks, by_passes, strict=True):
                part.scatter_add_(1, tokens, part.new_full(tokens.shape, (smoothing - 1) / 2))
                _keep_real(part, here)
                by_logits = narrowed(part)
                by[start : start + rows] = product(by_logits, rounded)
                add_product(by_columns, narrowed(chunk).T, by_logits)
                if by_bias is not None:
                    by_bias += part.sum(dim=0)
        if smoothing:
            for by in by_passes:
                by -= smoothing / 2 * _rows_of(weight_mean, real)
            both = _rows_of(first + second, real).sum(dim=0)
            by_columns -= smoothing / 2 / vocab * both[:, None]
            if by_bias is not None:
                by_bias -= smoothing * (len(first) if real is None else real.sum()) / vocab
        ctx.save_for_backward(*by_passes, by_columns.T.contiguous(), by_bias)
        ctx.mark_non_differentiable(nats)
        return objective, nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * gradient for part in ctx.saved_tensors]
        return (*scaled, None, None, None, None, None)


def _by_logits(
    distances: Tensor, far: Tensor, *, own: Tensor, other: Tensor, strength: float
) -> None:
    """Turn a d into p / 2 + a (p (d + 1 - KL) - q), in place."""
    distances += 0.5 + strength * (1 - far)
    distances *= own
    distances.sub_(other, alpha=strength)
