"""Exercises: right solutions pass however they are written, and each mistake gets its answer."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.base.errors import DataError, SettingsError
from regard.lectures.exercises import catalogue
from regard.lectures.exercises.catalogue import EXERCISES

Solution = Callable[..., Any]


def _loop_softmax(scores: Any) -> Any:
    rows = scores.reshape(-1, scores.shape[-1]).tolist()
    found = []
    for row in rows:
        powers = [math.exp(value - max(row)) for value in row]
        found.append([power / sum(powers) for power in powers])
    return torch.tensor(found).reshape(scores.shape)


def _loop_causal(n: int) -> Any:
    return torch.tensor([[j <= i for j in range(n)] for i in range(n)])


def _loop_padding(lengths: Any, longest: int) -> Any:
    mask = torch.zeros(len(lengths), longest, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, :length] = True
    return mask


def _loop_scores(q: Any, k: Any) -> Any:
    batch, target, width = q.shape
    found = torch.empty(batch, target, k.shape[1])
    for b in range(batch):
        for i in range(target):
            for j in range(k.shape[1]):
                found[b, i, j] = q[b, i] @ k[b, j] / width**0.5
    return found


def _loop_additive(s: Any, h: Any, w: Any, u: Any, v: Any) -> Any:
    found = torch.empty(h.shape[:2])
    for b in range(len(s)):
        for j in range(h.shape[1]):
            found[b, j] = v @ torch.tanh(w @ s[b] + u @ h[b, j])
    return found


def _loop_attend(q: Any, k: Any, v: Any, m: Any) -> Any:
    contexts, all_weights = [], []
    for b in range(len(q)):
        scores = q[b] @ k[b].T / q.shape[-1] ** 0.5
        powers = (scores - scores.max()).exp() * m[b]
        weights = powers / powers.sum(-1, keepdim=True)
        contexts.append(weights @ v[b])
        all_weights.append(weights)
    return torch.stack(contexts), torch.stack(all_weights)


def _fused_attend(q: Any, k: Any, v: Any, m: Any) -> Any:
    context = F.scaled_dot_product_attention(q, k, v, attn_mask=m[:, None, :])
    scores = torch.einsum("btd,bsd->bts", q, k) / q.shape[-1] ** 0.5
    return context, scores.masked_fill(~m[:, None], -1e30).softmax(2)


def _stepwise_causal(q: Any, k: Any, v: Any) -> Any:
    steps = []
    for t in range(q.shape[1]):
        scores = (q[:, t : t + 1] @ k[:, : t + 1].mT) / q.shape[-1] ** 0.5
        steps.append(scores.softmax(-1) @ v[:, : t + 1])
    return torch.cat(steps, 1)


def _headwise(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    width = x.shape[-1] // heads
    found = []
    for n in range(heads):
        part = slice(n * width, (n + 1) * width)
        q, k, v = x @ w_q[:, part], x @ w_k[:, part], x @ w_v[:, part]
        found.append((q @ k.mT / width**0.5).softmax(-1) @ v)
    return torch.cat(found, -1) @ w_o


def _einsum_heads(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    q, k, v = (torch.stack((x @ w).chunk(heads, -1)) for w in (w_q, w_k, w_v))
    weights = torch.einsum("hbtd,hbsd->hbts", q, k).div(q.shape[-1] ** 0.5).softmax(-1)
    return torch.cat(list(torch.einsum("hbts,hbsd->hbtd", weights, v)), -1) @ w_o


def _fused_heads(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, heads: int) -> Any:
    q, k, v = ((x @ w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ w_o


def _gated(x: Any, s: Any, g: Any, c: Any) -> Any:
    units = s.shape[-1]
    gate = torch.sigmoid(s @ g[:, :units].T + x @ g[:, units:].T)
    return s + gate * (torch.tanh(s @ c[:, :units].T + x @ c[:, units:].T) - s)


def _gated_by_row(x: Any, s: Any, g: Any, c: Any) -> Any:
    rows = []
    for one, state in zip(x, s, strict=True):
        both = torch.cat((state, one))
        gate = 1 / (1 + (-(g @ both)).exp())
        rows.append((1 - gate) * state + gate * (c @ both).tanh())
    return torch.stack(rows)


def _lstm_of_torch(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    cell = torch.nn.LSTMCell(x.shape[1], h.shape[1])
    for ours, theirs in ((w, "weight_ih"), (u, "weight_hh"), (b, "bias_ih")):
        getattr(cell, theirs).data.copy_(ours)
    cell.bias_hh.data.zero_()
    return cell(x, (h, c))


def _lstm_by_gate(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    units = h.shape[1]
    quarter = [slice(n * units, (n + 1) * units) for n in range(4)]
    i, f, g, o = (x @ w[q].T + h @ u[q].T + b[q] for q in quarter)
    cell = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _loop_waves(n: int, d: int) -> Any:
    table = np.zeros((n, d))
    for pos in range(n):
        for i in range(0, d, 2):
            angle = pos / 10_000 ** (i / d)
            table[pos, i], table[pos, i + 1] = math.sin(angle), math.cos(angle)
    return torch.tensor(table, dtype=torch.float32)


def _waves_by_log(n: int, d: int) -> Any:
    rates = torch.exp(torch.arange(0, d, 2) * (-math.log(10_000) / d))
    found = torch.zeros(n, d)
    found[:, 0::2] = torch.sin(torch.arange(n)[:, None] * rates)
    found[:, 1::2] = torch.cos(torch.arange(n)[:, None] * rates)
    return found


def _loop_gat(h: Any, edges: Any, w: Any, a: Any) -> Any:
    wh = torch.stack([w @ row for row in h])
    found = torch.zeros_like(wh)
    for i in range(len(h)):
        near = [int(j) for j, target in edges.T.tolist() if target == i]
        if near:
            scores = torch.stack([F.leaky_relu(a @ torch.cat([wh[i], wh[j]]), 0.2) for j in near])
            found[i] = scores.softmax(0) @ wh[near]
    return found


def _dense_gat(h: Any, edges: Any, w: Any, a: Any) -> Any:
    wh, units = h @ w.T, len(w)
    scores = F.leaky_relu((wh @ a[:units])[:, None] + (wh @ a[units:])[None], 0.2)
    allowed = torch.zeros(len(h), len(h), dtype=torch.bool)
    allowed[edges[1], edges[0]] = True
    return scores.masked_fill(~allowed, float("-inf")).softmax(1).nan_to_num(0) @ wh


def _greedy_for(step: Any, begin: int, end: int, longest: int) -> Any:
    prefix = [begin]
    for _ in range(longest):
        prefix.append(int(torch.argmax(step(prefix))))
        if prefix[-1] == end:
            return prefix[1:-1]
    return prefix[1:]


def _greedy_recursive(step: Any, begin: int, end: int, longest: int, done: Any = ()) -> Any:
    best = max(range(6), key=lambda token: float(step([begin, *done])[token]))
    if longest == 0 or best == end:
        return list(done)
    return _greedy_recursive(step, begin, end, longest - 1, (*done, best))


def _beam_heap(step: Any, begin: int, end: int, beam: int, longest: int) -> Any:
    alive, best = [(0.0, (begin,))], (-math.inf, ())
    while alive:
        grown = []
        for total, prefix in alive:
            values = step(list(prefix)).tolist()
            best = max(best, (total + values[end], prefix[1:]))
            if len(prefix) <= longest:
                grown += [(total + v, (*prefix, t)) for t, v in enumerate(values) if t != end]
        alive = heapq.nlargest(beam, grown)
    return list(best[1])


def _beam_tensor(step: Any, begin: int, end: int, beam: int, longest: int) -> Any:
    prefixes, totals, ended = [[begin]], torch.zeros(1), []
    for length in range(longest + 1):
        values = torch.stack([step(prefix) for prefix in prefixes]) + totals[:, None]
        ended += [(float(v), p[1:]) for v, p in zip(values[:, end], prefixes, strict=True)]
        if length == longest:
            break
        values[:, end] = float("-inf")
        totals, places = values.flatten().topk(min(beam, values.numel() - len(prefixes)))
        prefixes = [[*prefixes[p // 6], p % 6] for p in places.tolist()]
    return max(ended)[1]


RIGHT: dict[str, list[Solution]] = {
    "softmax": [
        _loop_softmax,
        lambda s: (s - s.logsumexp(-1, keepdim=True)).exp(),
        lambda s: (p := (s - s.amax(-1, True)).exp()) / p.sum(-1, True),
    ],
    "masked-softmax": [
        lambda s, m: s.where(m, torch.tensor(-1e30)).softmax(-1),
        lambda s, m: (p := (s - s.amax(-1, True)).exp() * m) / p.sum(-1, True),
        lambda s, m: (s + torch.zeros_like(s).masked_fill(~m, float("-inf"))).softmax(-1),
    ],
    "causal-mask": [
        _loop_causal,
        lambda n: torch.arange(n)[:, None] >= torch.arange(n),
        lambda n: ~torch.ones(n, n).triu(1).bool(),
    ],
    "padding-mask": [
        _loop_padding,
        lambda n, m: torch.stack([torch.arange(m) < each for each in n]),
        lambda n, m: torch.arange(m).expand(len(n), m).lt(n.unsqueeze(1)),
    ],
    "scaled-scores": [
        _loop_scores,
        lambda q, k: torch.einsum("btd,bsd->bts", q, k) * q.shape[-1] ** -0.5,
        lambda q, k: torch.bmm(q / k.shape[-1] ** 0.5, k.transpose(1, 2)),
    ],
    "additive-scores": [
        _loop_additive,
        lambda s, h, w, u, v: torch.einsum(
            "bja,a->bj", torch.tanh(F.linear(s, w).unsqueeze(1) + F.linear(h, u)), v
        ),
        lambda s, h, w, u, v: (
            torch.tanh(torch.cat([s[:, None].expand(-1, h.shape[1], -1), h], -1)
                       @ torch.cat([w, u], 1).T) * v
        ).sum(-1),
    ],
    "attend": [
        _loop_attend,
        _fused_attend,
        lambda q, k, v, m: (
            (w := (q @ k.mT / k.shape[-1] ** 0.5 - 1e30 * ~m[:, None]).softmax(-1)) @ v, w,
        ),
    ],
    "causal-attention": [
        _stepwise_causal,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: (
            (q @ k.mT / q.shape[-1] ** 0.5 - 1e30 * torch.ones(q.shape[1], q.shape[1]).triu(1))
            .softmax(-1) @ v
        ),
    ],
    "multi-head": [_headwise, _einsum_heads, _fused_heads],
    "gated-step": [
        _gated,
        _gated_by_row,
        lambda x, s, g, c: torch.lerp(
            s, F.linear(torch.cat((s, x), 1), c).tanh(), F.linear(torch.cat((s, x), 1), g).sigmoid()
        ),
    ],
    "lstm-step": [
        _lstm_of_torch,
        _lstm_by_gate,
        lambda x, h, c, w, u, b: torch.lstm_cell(x, (h, c), w, u, b, torch.zeros_like(b)),
    ],
    "sinusoids": [
        _loop_waves,
        _waves_by_log,
        lambda n, d: torch.tensor(
            [[(math.sin, math.cos)[i % 2](p / 1e4 ** ((i - i % 2) / d)) for i in range(d)]
             for p in range(n)]
        ),
    ],
    "token-loss": [
        lambda x, y, m: F.cross_entropy(x[m], y[m]),
        lambda x, y, m: -x.log_softmax(-1).gather(2, y[..., None])[..., 0][m].mean(),
        lambda x, y, m: F.cross_entropy(
            x.flatten(0, 1), y.masked_fill(~m, -100).flatten(), ignore_index=-100
        ),
    ],
    "warmup-rate": [
        lambda s, d, w: min(s**-0.5, s * w**-1.5) / math.sqrt(d),
        lambda s, d, w: (s / w if s < w else math.sqrt(w / s)) / math.sqrt(d * w),
        lambda s, d, w: d**-0.5 * (s * w**-1.5 if s <= w else 1 / s**0.5),
    ],
    "gat-layer": [
        _loop_gat,
        _dense_gat,
        lambda h, e, w, a: torch.stack([
            (F.leaky_relu((h[i] @ w.T) @ a[:len(w)] + (h[e[0][e[1] == i]] @ w.T) @ a[len(w):], 0.2)
             .softmax(0)[:, None] * (h[e[0][e[1] == i]] @ w.T)).sum(0)
            for i in range(len(h))
        ]),
    ],
    "greedy": [
        _greedy_for,
        _greedy_recursive,
        lambda step, begin, end, longest: _beam_tensor_greedy(step, begin, end, longest),
    ],
    "beam-search": [
        _beam_heap,
        _beam_tensor,
        lambda step, begin, end, beam, longest: list(
            _beam_heap(lambda prefix: step(tuple(prefix)).double(), begin, end, beam, longest)
        ),
    ],
}  # fmt: skip


def _beam_tensor_greedy(step: Any, begin: int, end: int, longest: int) -> Any:
    tokens: list[int] = []
    while True:
        _, order = step([begin, *tokens]).sort(descending=True)
        if order[0] == end or len(tokens) == longest:
            return tokens
        tokens.append(order[0].item())


@pytest.mark.parametrize("name", list(EXERCISES))
def test_right_solutions_pass_however_they_are_written(name: str) -> None:
    assert len(RIGHT[name]) == 3
    for solution in RIGHT[name]:
        assert EXERCISES[name].check(solution) is None


def _last_key_only(q: Any, k: Any, v: Any) -> Any:
    mask = torch.ones(q.shape[1], q.shape[1]).tril(1).bool()
    return (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -1e30).softmax(-1) @ v


def _never_ending(step: Any, begin: int, end: int, longest: int) -> Any:
    tokens = [begin]
    while (token := int(step(tokens).argmax())) != end:
        tokens.append(token)
    return tokens[1:]


def _forgets_what_ended(step: Any, begin: int, end: int, beam: int, longest: int) -> Any:
    tokens: list[int] = []
    for _ in range(longest):
        best = int(step([begin, *tokens]).argmax())
        if best == end:
            break
        tokens.append(best)
    return tokens


# The exercise, a solution with a planted mistake, and words of the answer.
PLANTED: list[tuple[str, Solution, str]] = [
    ("softmax", lambda s: s.softmax(0), "wrong axis"),
    ("softmax", lambda s: s.exp() / s.exp().sum(-1, True), "exp overflows"),
    ("softmax", lambda s: s.exp() / torch.sum(torch.exp(s)), "whole tensor"),
    ("softmax", lambda s: s.exp() / s.exp().sum(-1), "broadcasting|fails with|whole"),
    ("masked-softmax", lambda s, m: (s * m).softmax(-1), "a score of 0 is not minus infinity"),
    ("masked-softmax", lambda s, m: s.masked_fill(m, -1e30).softmax(-1), "wrong way round"),
    ("masked-softmax", lambda s, m: s.softmax(-1).where(m, torch.tensor(0.0)), "after the softmax"),
    ("masked-softmax", lambda s, m: s.softmax(-1), "Hidden places are read"),
    ("causal-mask", lambda n: torch.arange(n)[:, None] <= torch.arange(n), "transposed"),
    ("causal-mask", lambda n: torch.arange(n)[:, None] > torch.arange(n), "diagonal is missing"),
    ("causal-mask", lambda n: torch.arange(n)[:, None] < torch.arange(n), "must be hidden"),
    ("padding-mask", lambda n, m: torch.arange(m)[None] <= n.view(-1, 1), "one place too many"),
    ("padding-mask", lambda n, m: ~(torch.arange(m)[None] < n.view(-1, 1)), "marks the padding"),
    ("scaled-scores", lambda q, k: torch.einsum("btd,bsd->bts", q, k), "scale is forgotten"),
    ("scaled-scores", lambda q, k: torch.bmm(q, k.mT) / q.size(-1), "not by d_k"),
    ("scaled-scores", lambda q, k: (k @ q.mT) / q.shape[-1] ** 0.5, r"The shape is \[2, 5, 3\]"),
    ("additive-scores", lambda s, h, w, u, v: (F.linear(s, w) + F.linear(h, u)).tanh() @ v,
     "Broadcasting"),
    ("additive-scores", lambda s, h, w, u, v: (F.linear(h, u) + F.linear(s, w)[:, None]) @ v,
     "tanh is missing"),
    ("attend", lambda q, k, v, m: ((w := (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)) @ v, w),
     "Padding is read"),
    ("attend", lambda q, k, v, m: (
        (w := (q @ k.mT).masked_fill(~m[:, None], -1e30).softmax(-1)) @ v, w),
     "scale is forgotten"),
    ("attend", lambda q, k, v, m: _loop_attend(q, k, v, m)[0], "must return 2 values"),
    ("causal-attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), "future leaks"),
    ("causal-attention", _last_key_only, "future leaks"),
    ("multi-head", lambda x, q, k, v, o, n: F.scaled_dot_product_attention(
        *((x @ w).reshape(len(x), n, x.shape[1], -1) for w in (q, k, v))).reshape(x.shape) @ o,
     "mix positions"),
    ("multi-head", lambda x, q, k, v, o, n: F.scaled_dot_product_attention(
        *((x @ w).unflatten(-1, (n, -1)).transpose(1, 2) for w in (q, k, v))
    ).transpose(1, 2).flatten(2), "W.O is missing"),
    ("gated-step", lambda x, s, g, c: torch.lerp(
        F.linear(torch.cat((s, x), 1), c).tanh(), s, F.linear(torch.cat((s, x), 1), g).sigmoid()),
     "wrong way round"),
    ("lstm-step", lambda *given: _lstm_by_gate(*given)[::-1], "order of the results"),
    ("lstm-step", lambda x, h, c, w, u, b: (
        (cell := _lstm_by_gate(x, h, c, w, u, b)[1])
        * (x @ w[-4:].T + h @ u[-4:].T + b[-4:]).sigmoid(), cell), "tanh around the cell"),
    ("sinusoids", lambda n, d: torch.cat(
        [_waves_by_log(n, d)[:, 0::2], _waves_by_log(n, d)[:, 1::2]], 1), "in turn"),
    ("sinusoids", lambda n, d: _loop_waves(n + 1, d)[1:], "counted from 0"),
    ("token-loss", lambda x, y, m: F.cross_entropy(x.mT, y), "Padding is read"),
    ("token-loss", lambda x, y, m: (F.cross_entropy(x.mT, y, reduction="none") * m).mean(),
     "Padding counts in the mean"),
    ("token-loss", lambda x, y, m: torch.stack(
        [F.cross_entropy(a[c], b[c]) for a, b, c in zip(x, y, m, strict=True)]).mean(),
     "short sentences count more"),
    ("warmup-rate", lambda s, d, w: d**-0.5 / math.sqrt(s), "warm-up is missing"),
    ("gat-layer", lambda h, e, w, a: _dense_gat(h, e.flip(0), w, a), "is right"),
    ("gat-layer", lambda h, e, w, a: _dense_gat(h, e, w, torch.cat(a.chunk(2)[::-1])), "swapped"),
    ("greedy", _never_ending, "never ends"),
    ("greedy", lambda step, begin, end, longest: [begin, *_greedy_for(step, begin, end, longest)],
     "begin mark"),
    ("greedy", lambda step, begin, end, longest: (
        found := _greedy_for(step, begin, end, longest)) + [end] * (len(found) < longest),
     "end mark"),
    ("beam-search", _forgets_what_ended, "as a greedy search|Only one prefix|is right"),
    ("beam-search", lambda step, begin, end, beam, longest: _beam_heap(
        step, begin, end, 1, longest), "Only one prefix lives on"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "solution", "answer"), PLANTED)
def test_each_planted_mistake_gets_its_answer(name: str, solution: Solution, answer: str) -> None:
    found = EXERCISES[name].check(solution)
    assert found is not None
    assert re.search(answer, found), found


def test_there_are_enough_of_both() -> None:
    assert len(EXERCISES) >= 12
    assert len(PLANTED) >= 30
    assert set(RIGHT) == set(EXERCISES)


@pytest.mark.parametrize("name", list(EXERCISES))
def test_every_wrong_version_is_told_apart(name: str) -> None:
    for version in EXERCISES[name].wrong:
        assert EXERCISES[name].check(version.function) == version.answer


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (lambda: None, "must take 1 arguments: scores"),
        (lambda scores: None, "must return a tensor, not NoneType"),
        (lambda scores: scores.sum(-1), r"The shape is \[\], but must be \[5\]"),
        (lambda scores: 1 / 0, "fails with ZeroDivisionError"),
        (lambda scores: scores.exp_(), "changes its input in place"),
        (lambda scores: scores * 0 + 0.2, "it gives 0.2, but"),
    ],
)
def test_other_mistakes_are_described(solution: Solution, answer: str) -> None:
    with pytest.raises(AssertionError, match=answer):
        raise AssertionError(EXERCISES["softmax"].check(solution))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def softmax(s): return s", "name the exercise with --name"),
        ("# exercise: softmaxx\n", "softmaxx"),
        ("# exercise: softmax\n", "no function 'softmax'"),
        ("# exercise: softmax\ndef softmax(:\n", "SyntaxError"),
        ("# exercise: softmax\n1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_files_that_cannot_be_checked(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises((DataError, SettingsError), match=message):
        catalogue.check(tmp_path / "mine.py")
    with pytest.raises(SettingsError, match="There is no file"):
        catalogue.check(tmp_path / "other.py")
