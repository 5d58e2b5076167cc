"""Losses over the vocabulary: plain, in chunks of rows, and with R-Drop."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from regard.base.shapes import Bool, Float, Int, Tensor
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
    with torch.autocast(features.device.type, enabled=False):  # sums need all their bits
        objective, nats = _ChunkedLoss.apply(  # type: ignore[no-untyped-call]
            features[mask].to(weight.dtype), weight, bias, expected[mask], smoothing, rows
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
            torch.softmax(p, dim=-1, out=p)  # in place: from here on the logits are gone
            losses = _negative_logs(p, chunk, weight, bias, tokens)
            nats += losses.sum()
            if smoothing:
                lse = losses + logits
                means = chunk @ weight_mean + bias_mean
                objective += ((1 - smoothing) * losses + smoothing * (lse - means)).sum()
            if not any(wanted):
                continue
            p.scatter_add_(1, tokens, p.new_full(tokens.shape, smoothing - 1))
            by_logits = narrowed(p)
            if by_features is not None:
                by_features[start : start + rows] = product(by_logits, rounded)
            if by_columns is not None:
                add_product(by_columns, narrowed(chunk).T, by_logits)
            if by_bias is not None:
                by_bias += p.sum(dim=0)
        if smoothing:
            if by_features is not None:
                by_features -= smoothing * weight_mean
            if by_columns is not None:
                by_columns -= smoothing / vocab * features.sum(dim=0)[:, None]
            if by_bias is not None:
                by_bias -= smoothing * len(features) / vocab
        by_weight = None if by_columns is None else by_columns.T.contiguous()
        ctx.save_for_backward(by_features, by_weight, by_bias)
        ctx.mark_non_differentiable(nats)
        return (objective if smoothing else nats.clone()), nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * gradient for part in ctx.saved_tensors]
        return (*scaled, None, None, None)


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
    first, second = passes
    with torch.autocast(first.device.type, enabled=False):  # sums need all their bits
        objective, nats = _RDrop.apply(  # type: ignore[no-untyped-call]
            first[mask].to(weight.dtype),
            second[mask].to(weight.dtype),
            weight,
            bias,
            expected[mask],
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
        smoothing: float,
        strength: float,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        passes = (first, second)
        by_passes = [torch.empty_like(one) for one in passes]
        by_columns = weight.new_zeros(weight.T.shape)  # the gradient of W, transposed
        by_bias = None if bias is None else torch.zeros_like(bias)
        vocab, columns, rounded = len(weight), transposed(weight), narrowed(weight)
        weight_mean = weight.mean(dim=0)
        bias_mean = 0.0 if bias is None else bias.mean()
        objective, nats = first.new_zeros(()), first.new_zeros(())
        held = first.new_empty(4, min(rows, len(first)), vocab)
        for start in range(0, len(first), rows):
            chunks = [one[start : start + rows] for one in passes]
            tokens = expected[start : start + rows, None]
            p, q, by_p, by_q = held[:, : len(tokens)]
            for probabilities, chunk in zip((p, q), chunks, strict=True):
                scores = product(chunk, columns, room=probabilities)
                if bias is not None:
                    scores += bias
                logits = scores.gather(1, tokens).squeeze(1)
                torch.log_softmax(scores, dim=-1, out=probabilities)
                losses = -probabilities.gather(1, tokens).squeeze(1)
                nats += losses.sum() / 2
                even = losses + logits - chunk @ weight_mean - bias_mean
                objective += ((1 - smoothing) * losses + smoothing * even).sum() / 2
            apart = torch.sub(p, q, out=by_q)
            p.exp_()
            q.exp_()
            far_p = torch.linalg.vecdot(p, apart)[:, None]
            far_q = -torch.linalg.vecdot(q, apart)[:, None]
            objective += strength * (far_p + far_q).sum()
            torch.mul(apart, strength, out=by_p)
            _by_logits(by_p, far_p, own=p, other=q, strength=strength)
            _by_logits(by_q.mul_(-strength), far_q, own=q, other=p, strength=strength)
            for part, chunk, by in zip((by_p, by_q), chunks, by_passes, strict=True):
                part.scatter_add_(1, tokens, part.new_full(tokens.shape, (smoothing - 1) / 2))
                by_logits = narrowed(part)
                by[start : start + rows] = product(by_logits, rounded)
                add_product(by_columns, narrowed(chunk).T, by_logits)
                if by_bias is not None:
                    by_bias += part.sum(dim=0)
        if smoothing:
            for by in by_passes:
                by -= smoothing / 2 * weight_mean
            by_columns -= smoothing / 2 / vocab * (first + second).sum(dim=0)[:, None]
            if by_bias is not None:
                by_bias -= smoothing * len(first) / vocab
        ctx.save_for_backward(*by_passes, by_columns.T.contiguous(), by_bias)
        ctx.mark_non_differentiable(nats)
        return objective, nats

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [None if part is None else part * gradient for part in ctx.saved_tensors]
        return (*scaled, None, None, None, None)


def _by_logits(
    distances: Tensor, far: Tensor, *, own: Tensor, other: Tensor, strength: float
) -> None:
    """Turn a d into p / 2 + a (p (d + 1 - KL) - q), in place."""
    distances += 0.5 + strength * (1 - far)
    distances *= own
    distances.sub_(other, alpha=strength)
