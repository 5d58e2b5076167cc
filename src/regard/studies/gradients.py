"""Why attention: how far back a loss can be felt, in each kind of network.

The loss at step t + n is differentiated by the state at t. Along a recurrence that is a product
of n Jacobians, for a tanh RNN prod_k U^T diag(tanh'(a_{t+k})), which shrinks or grows with n;
attention has a path from the loss to every state that is one step long.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float as FloatArray
from torch import nn

from regard.attention.lookup import attend
from regard.attention.scores import SCORES
from regard.base.shapes import Float, Int, Tensor
from regard.compute.device import beside, placed
from regard.recurrent.cells import CELLS, CellState, RecurrentStack
from regard.training.optimisers import learning_rate

TOKENS = 8
WIDTH = 16
HIDDEN = 32
BATCH = 64

# What is compared: how each is called, its cell, and whether it attends.
NETWORKS = {
    "tanh RNN": ("tanh", False),
    "gated unit": ("gated", False),
    "GRU": ("gru", False),
    "LSTM": ("lstm", False),
    "attention": ("tanh", True),
}


@dataclass(frozen=True)
class Reach:
    """The mean norm of d loss / d state by distance, for one network at one time."""

    name: str
    trained: bool
    accuracy: float
    norms: list[float]  # norms[n] is that of the state n steps before the loss

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


class Rememberer(nn.Module):
    """Reads tokens one by one and says at the end which of them was marked.

    With attention the last state looks back at all states, and the answer is read from both.
    """

    def __init__(self, *, cell: str, attends: bool, hidden: int = HIDDEN, width: int = WIDTH):
        super().__init__()
        self.embedding = nn.Embedding(2 * TOKENS, width)  # each token plain and marked
        self.stack = RecurrentStack(kind=cell, input_dim=width, hidden=hidden)
        self.score = SCORES["additive"](query_dim=hidden, key_dim=hidden) if attends else None
        self.answer = nn.Linear(2 * hidden if attends else hidden, TOKENS)

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch tokens"]:
        """Return the logits of the answer."""
        states, _ = self.stack(self.embedding(tokens), self.stack.zero_state(len(tokens)))
        return self.read_out(states)

    def read_out(self, states: Float[Tensor, "batch time hidden"]) -> Float[Tensor, "batch tokens"]:
        """Return the logits that these states lead to."""
        last = states[:, -1]
        if self.score is not None:
            scores = self.score(states[:, -1:], self.score.prepare(states))
            everywhere = states.new_ones(states.shape[:2], dtype=torch.bool)
            context, _ = attend(scores, values=states, mask=everywhere)
            last = torch.cat([last, context[:, 0]], dim=-1)
        logits: Tensor = self.answer(last)
        return logits

    def step_by_step(
        self, tokens: Int[Tensor, "batch time"]
    ) -> tuple[Float[Tensor, "batch tokens"], list[CellState]]:
        """Return the logits and the state after every step, each a part of the next one's graph."""
        state = self.stack.zero_state(len(tokens))
        embedded = self.embedding(tokens)
        states = []
        for time in range(tokens.shape[1]):
            _, state = self.stack(embedded[:, time : time + 1], state)
            states.append(state)
        visible = torch.stack([state[0][-1] for state in states], dim=1)
        return self.read_out(visible), states


def draw(
    batch: int, length: int, generator: torch.Generator
) -> tuple[Int[Tensor, "batch time"], Int[Tensor, "batch"]]:
    """Return sequences in which one token, anywhere, is marked; that one is the answer."""
    tokens = torch.randint(TOKENS, (batch, length), generator=generator)
    marked = torch.randint(length, (batch, 1), generator=generator)
    answers = tokens.gather(1, marked)
    return tokens.scatter(1, marked, answers + TOKENS), answers[:, 0]


def gradient_norms(
    model: Rememberer, tokens: Int[Tensor, "batch time"], answers: Int[Tensor, "batch"]
) -> FloatArray[np.ndarray, "time"]:
    """Return the norm of d loss / d state against the distance from the end, mean over sequences.

    The state is all that is handed on: h_t, and for an LSTM c_t with it.
    """
    logits, states = model.step_by_step(tokens)
    loss = nn.functional.cross_entropy(logits, answers, reduction="sum")
    parts = [part for state in states for part in state]
    gradients = torch.autograd.grad(loss, parts, allow_unused=True)
    kept = [torch.zeros_like(p) if g is None else g for p, g in zip(parts, gradients, strict=True)]
    width = len(states[0])
    by_step = [torch.cat(kept[at : at + width], dim=-1) for at in range(0, len(kept), width)]
    norms = [float(step.norm(dim=-1).mean()) for step in by_step]
    return np.array(norms[::-1])


def measure(
    *,
    length: int = 40,
    steps: int = 600,
    seed: int = 1,
    names: Sequence[str] = tuple(NETWORKS),
    on_step: Callable[[str, int], None] = lambda name, step: None,
) -> Iterator[Reach]:
    """Yield the reach of each network, first with fresh weights and then after training."""
    tokens, answers = draw(4 * BATCH, length, torch.Generator().manual_seed(10_000 + seed))
    for name in names:
        cell, attends = NETWORKS[name]
        if cell not in CELLS:
            continue
        torch.manual_seed(seed)
        model = placed(Rememberer(cell=cell, attends=attends))
        for trained in (False, True):
            if trained:
                _train(model, length=length, steps=steps, seed=seed, name=name, on_step=on_step)
            yield Reach(
                name=name,
                trained=trained,
                accuracy=_accuracy(model, *beside(model, (tokens, answers))),
                norms=gradient_norms(model, *beside(model, (tokens, answers))).tolist(),
            )


@torch.no_grad()
def _accuracy(model: Rememberer, tokens: Tensor, answers: Tensor) -> float:
    return float((model(tokens).argmax(dim=-1) == answers).float().mean())


def _train(
    model: Rememberer,
    *,
    length: int,
    steps: int,
    seed: int,
    name: str,
    on_step: Callable[[str, int], None],
) -> None:
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(
                step, step / steps, schedule="cosine", peak=5e-3, warmup=min(50, steps)
            )
        tokens, answers = beside(model, draw(BATCH, length, generator))
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(tokens), answers)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        on_step(name, step)
