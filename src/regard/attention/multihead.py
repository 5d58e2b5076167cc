"""Multi-head attention: one module for self-attention, masked self-attention and cross-attention.

The kernel is chosen by the shape at hand; weights are made only on request.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from regard.attention import efficient
from regard.attention.masks import Visibility
from regard.attention.past import KeysValues
from regard.attention.patterns import Pattern
from regard.attention.places import PairPositions, RotatedPositions
from regard.attention.probe import Probe
from regard.attention.scores import AttentionScore
from regard.base.results import Attended
from regard.base.shapes import Float, Tensor
from regard.compute.device import HOST, uses_hand_kernels
from regard.compute.dropout import Dropout
from regard.compute.kernels import (
    fused_attention,
    fused_pays,
    group_penalties,
    group_queries,
    plain_attention,
    short_attention,
    split_heads,
)
from regard.compute.linear import Linear, linear

Past = KeysValues | efficient.LinearState


class MultiHeadAttention(nn.Module):
    """head_i = softmax(q_i k_i^T / sqrt(d)) v_i, concatenated (Vaswani et al. 2017, 3.2.2).

    One matrix projects to queries, keys and values at once. `positions` are relative or rotary;
    `linear` replaces the softmax by a kernel of linear cost. Another `score` than the scaled dot
    product is shared by the heads and computed step by step: the fast kernels know only that one.
    With fewer `key_value_heads`, neighbouring heads share keys and values (Ainslie et al. 2023),
    which are stored once. `head_norms` act on each head's queries and keys. A `pattern` leaves
    pairs out.
    """

    def __init__(
        self,
        *,
        model_dim: int,
        heads: int,
        dropout: float = 0.0,
        positions: PairPositions | RotatedPositions | None = None,
        linear: bool = False,
        score: AttentionScore | None = None,
        pattern: Pattern | None = None,
        head_dim: int | None = None,
        key_value_heads: int | None = None,
        head_norms: tuple[nn.Module, nn.Module] | None = None,
        biases: str = "all",
    ):
        super().__init__()
        if head_dim is None and model_dim % heads:
            raise ValueError(f"model_dim ({model_dim}) must be divisible by heads ({heads})")
        self.groups = key_value_heads or heads
        if heads % self.groups:
            raise ValueError(
                f"heads ({heads}) must be divisible by key_value_heads ({self.groups})"
            )
        if score is not None and (linear or isinstance(positions, PairPositions)):
            raise ValueError("linear attention and relative positions take no score but their own")
        if pattern is not None:
            pattern.require(
                plain=not linear and score is None, by_pair=isinstance(positions, PairPositions)
            )
        self.model_dim = model_dim
        self.heads = heads
        self.linear = linear
        width = head_dim or model_dim // heads
        self.query_dim = heads * width
        keyless = pattern is not None and pattern.keys_are_queries
        self.parts = (
            (self.heads, self.groups) if keyless else (self.heads, self.groups, self.groups)
        )
        sizes = [part * width for part in self.parts]  # queries, keys, values
        self.projection = Linear(model_dim, sum(sizes), bias=biases != "none")
        self.output = Linear(self.query_dim, model_dim, bias=biases == "all")
        self.dropout = Dropout(dropout)
        self.positions = positions
        self.score = score
        self.pattern = pattern
        self.query_norm = None if head_norms is None else head_norms[0]
        self.key_norm = None if head_norms is None else head_norms[1]
        for weights in (*torch.split(self.projection.weight, sizes), self.output.weight):
            nn.init.xavier_uniform_(weights)
        for part in (self.projection, self.output):
            if part.bias is not None:
                nn.init.zeros_(part.bias)

    def forward(
        self,
        inputs: Float[Tensor, "batch target model_dim"],
        visibility: Visibility,
        *,
        past: Past | None = None,
        start: int = 0,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> tuple[Attended, Past]:
        """Attend to the inputs and to the past; return the context and the new past.

        `start` is the position of the first input. Rows of a sentence that share their past are
        together like the positions of one text, in which each sees its own path.
        """
        rows = inputs.shape[:2]
        if visibility.paths is not None:
            inputs = inputs.reshape(-1, visibility.target, inputs.shape[2])
        explicit = with_weights or probe is not None
        together = visibility.paths is not None  # then all are at the same position
        query, keys, values = self._heads_of(inputs, start=start, together=together)
        if self.linear and visibility.causal and not explicit:
            state = past if isinstance(past, efficient.LinearState) else None
            keys, values = self._for_every_head(keys, values)
            attended, after = efficient.causal_linear_attention(query, keys, values, state=state)
            return self._joined(attended), after
        kept = KeysValues(keys, values)
        if visibility.segments is not None and torch.is_grad_enabled():
            # No gradient flows into an earlier segment, but the matrices have that of its keys.
            kept = KeysValues(*self._heads_of(inputs.detach(), start=start)[1:])
        if isinstance(past, KeysValues):
            seen = past.then(keys, values)
            kept = seen if kept.keys is keys else past.then(kept.keys, kept.values)
            keys, values = seen.keys, seen.values
        if probe is not None:
            attended = self._seen(query, keys, values, visibility, probe)
        else:
            attended = self._attend(query, keys, values, visibility, with_weights=with_weights)
        context, weights = self._joined(attended, with_weights=with_weights)
        return Attended(context.view(*rows, -1), weights), kept.last(visibility.kept)

    def _heads_of(
        self, inputs: Tensor, *, start: int, together: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of inputs, the first of which is at position `start`."""
        found = split_heads(self.projection(inputs), heads=self.parts)
        query, values = found[0], found[-1]
        keyless = len(found) == 2
        keys = query if keyless else found[1]
        if self.query_norm is not None and self.key_norm is not None:
            query, keys = self.query_norm(query), self.key_norm(keys)
        if isinstance(self.positions, RotatedPositions):
            query, keys = (
                rotated(self.positions, part, start=start, together=together)
                for part in (query, keys)
            )
        return query, nn.functional.normalize(query, dim=-1) if keyless else keys, values

    def memory(self, inputs: Float[Tensor, "batch source model_dim"]) -> KeysValues:
        """Return the keys and values that `cross` attends to, however many queries follow."""
        weight, bias = self._projection(slice(self.query_dim, None))
        keys, values = split_heads(linear(inputs, weight, bias), heads=(self.groups, self.groups))
        return KeysValues(keys if self.key_norm is None else self.key_norm(keys), values)

    def cross(
        self,
        inputs: Float[Tensor, "batch target model_dim"],
        memory: KeysValues,
        penalties: Float[Tensor, "batch 1 1 source"] | None,
        *,
        with_weights: bool = False,
        probe: Probe | None = None,
    ) -> Attended:
        """Attend to another sequence, whose padding the penalties hide."""
        weight, bias = self._projection(slice(self.query_dim))
        (query,) = split_heads(linear(inputs, weight, bias), heads=(self.heads,))
        if self.query_norm is not None:
            query = self.query_norm(query)
        if with_weights or self.score is not None or probe is not None:
            found = self._plain(query, memory.keys, memory.values, penalties=penalties, probe=probe)
        elif fused_pays(query, memory.keys, drops=self._drops):
            found = fused_attention(
                query, memory.keys, memory.values, penalties=penalties, dropout=self._share
            )
        else:
            found = self._short(query, memory.keys, memory.values, penalties=penalties)
        return self._joined(found, with_weights=with_weights)

    def _attend(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        visibility: Visibility,
        *,
        with_weights: bool,
    ) -> Attended:
        """Choose the kernel for this shape."""
        if self.linear:
            keys, values = self._for_every_head(keys, values)
            kernel = (
                efficient.explicit_linear_attention if with_weights else efficient.linear_attention
            )
            return kernel(query, keys, values, visibility=visibility)
        relative = self.positions if isinstance(self.positions, PairPositions) else None
        simple = relative is None and self.score is None and not with_weights
        if self.pattern is not None:
            if simple and visibility.target == visibility.source:
                keys, values = self._for_every_head(keys, values)
                return self.pattern.attend(query, keys, values, visibility, self._drop)
            simple = False
        if simple and efficient.window_pays(visibility) and visibility.window is not None:
            keys, values = self._for_every_head(keys, values)
            return efficient.local_attention(
                query,
                keys,
                values,
                window=visibility.window,
                causal=visibility.causal,
                real=visibility.real,
                dropout=self._drop,
            )
        if simple and fused_pays(query, keys, drops=self._drops):
            only = visibility.causal_only
            penalties = None if only else visibility.penalties
            share = self._share
            return fused_attention(
                query, keys, values, penalties=penalties, causal_only=only, dropout=share
            )
        if simple:
            return self._short(query, keys, values, penalties=visibility.penalties)
        found = self._plain(
            query,
            keys,
            values,
            penalties=self._penalties(keys, visibility),
            distances=None if relative is None else visibility.distances,
        )
        return Attended(found.context, found.weights if with_weights else None)

    def _seen(
        self, query: Tensor, keys: Tensor, values: Tensor, visibility: Visibility, probe: Probe
    ) -> Attended:
        """Attend step by step, and show each value to a probe."""
        if self.linear:
            keys, values = self._for_every_head(keys, values)
            _, weights = efficient.explicit_linear_attention(
                probe("queries", query), probe("keys", keys), values, visibility=visibility
            )
            weights = probe("weights", torch.empty(0) if weights is None else weights)
            return Attended(probe("context", weights @ probe("values", values)), weights)
        relative = isinstance(self.positions, PairPositions)
        return self._plain(
            query,
            keys,
            values,
            penalties=self._penalties(keys, visibility),
            distances=visibility.distances if relative else None,
            probe=probe,
        )

    def _plain(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        penalties: Tensor | None,
        distances: Tensor | None = None,
        probe: Probe | None = None,
    ) -> Attended:
        """Attend step by step, which knows every option and gives the weights."""
        heads, target = query.shape[1:3]
        if distances is not None and isinstance(self.positions, PairPositions):
            query = self.positions.shifted(query)
        if probe is not None:
            keys, values = self._for_every_head(keys, values)
        grouped = self.groups != heads and probe is None
        if grouped:
            query, penalties = self._grouped(query, penalties)
            if distances is not None:
                distances = distances.repeat(heads // self.groups, 1)
        positions = self.positions if isinstance(self.positions, PairPositions) else None
        context, weights = plain_attention(
            query,
            keys,
            values,
            penalties=penalties,
            dropout=self._drop,
            relative=None if positions is None or distances is None else (positions, distances),
            score=self._score_heads,
            see=probe,
        )
        if not grouped or weights is None:
            return Attended(context, weights)
        shape = (len(query), heads, target, -1)
        return Attended(context.view(shape), weights.view(shape))

    def _penalties(self, keys: Tensor, visibility: Visibility) -> Tensor | None:
        """Return what is added to scores, by order and distance and by the pattern."""
        if self.pattern is None:
            return visibility.penalties
        (every,) = self._for_every_head(keys)
        of_pattern = self.pattern.penalties(every, visibility)
        known = visibility.penalties
        return of_pattern if known is None else of_pattern + known

    def _short(
        self, query: Tensor, keys: Tensor, values: Tensor, *, penalties: Tensor | None
    ) -> Attended:
        """Attend by batched products; on a CPU with the gradient by hand."""
        learned_bias = penalties is not None and penalties.requires_grad  # no gradient by hand
        if learned_bias or not uses_hand_kernels(query) or torch.is_autocast_enabled(HOST.type):
            return Attended(self._plain(query, keys, values, penalties=penalties).context, None)
        share = self._share
        if self.groups == self.heads:
            context = short_attention(query, keys, values, penalties=penalties, dropout=share)
            return Attended(context, None)
        together, penalties = self._grouped(query, penalties)
        context = short_attention(together, keys, values, penalties=penalties, dropout=share)
        return Attended(context.view(query.shape), None)

    def _grouped(self, query: Tensor, penalties: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return queries that share keys below each other, and the penalties of their scores."""
        heads, target = query.shape[1:3]
        return group_queries(query, groups=self.groups), group_penalties(
            penalties, heads=heads, groups=self.groups, target=target
        )

    def _for_every_head(self, *shared: Tensor) -> tuple[Tensor, ...]:
        """Return keys and values, copied for all heads that share them."""
        times = self.heads // self.groups
        return shared if times == 1 else tuple(p.repeat_interleave(times, dim=1) for p in shared)

    @property
    def shares_past(self) -> bool:
        """Return whether rows can attend along the paths of a tree, as `forward` says."""
        plain = not self.linear and self.pattern is None
        return plain and not isinstance(self.positions, PairPositions)

    @property
    def _score_heads(self) -> Callable[[Tensor, Tensor], Tensor] | None:
        """What scores queries and keys that are split into heads; None for the scaled product."""
        return None if self.score is None else partial(score_heads, self.score)

    def _joined(self, attended: Attended, *, with_weights: bool = True) -> Attended:
        """Concatenate the heads and mix them: [batch, target, model_dim]."""
        context: Tensor = self.output(attended.context.transpose(1, 2).flatten(2))
        return Attended(context, attended.weights if with_weights else None)

    def _projection(self, part: slice) -> tuple[Tensor, Tensor | None]:
        """Return the rows of the projection that make queries, or keys and values."""
        bias = self.projection.bias
        return self.projection.weight[part], None if bias is None else bias[part]

    @property
    def _drops(self) -> bool:
        return self.training and self.dropout.p > 0

    @property
    def _share(self) -> float:
        return self.dropout.p if self._drops else 0.0

    @property
    def _drop(self) -> Dropout | None:
        return self.dropout if self._drops else None


def rotated(
    positions: RotatedPositions,
    heads: Float[Tensor, "batch heads time head_dim"],
    *,
    start: int,
    together: bool,
) -> Float[Tensor, "batch heads time head_dim"]:
    """Return queries or keys that stand one after the other from `start` on, or all `together`."""
    if not together:
        moved: Tensor = positions(heads, start=start)
        return moved
    apart: Tensor = positions(heads.flatten(1, 2)[:, :, None], start=start)
    return apart.view(heads.shape)


def score_heads(
    score: AttentionScore,
    query: Float[Tensor, "batch heads target head_dim"],
    keys: Float[Tensor, "batch heads source head_dim"],
) -> Float[Tensor, "batch heads target source"]:
    """Return the score of every pair in every head, with the same parameters for all heads."""
    found: Tensor = score(query.flatten(0, 1), score.prepare(keys.flatten(0, 1)))
    return found.view(*query.shape[:2], *found.shape[1:])
