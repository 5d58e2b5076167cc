"""Transformer-XL: its positions in numpy, and a memory that is nothing but a mask."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.attention.masks import Segments, Visibility
from regard.attention.multihead import MultiHeadAttention
from regard.attention.positions import SegmentPositions
from regard.models.language_model import LanguageModel, build_language_model
from regard.settings.language_models import CausalTransformerSettings

DIM, HEADS = 8, 2


def test_scores_equal_their_equation() -> None:
    """A_ij = q_i k_j + q_i W_R r_{i-j} + u k_j + v W_R r_{i-j} (Dai et al. 2019, section 3.3)."""
    torch.manual_seed(1)
    positions = SegmentPositions(DIM, heads=HEADS, head_dim=DIM // HEADS)
    torch.nn.init.normal_(positions.content)
    torch.nn.init.normal_(positions.place)
    attention = MultiHeadAttention(model_dim=DIM, heads=HEADS, positions=positions).double().eval()
    inputs = torch.randn(1, 5, DIM, dtype=torch.float64)
    seen = Visibility.back(inputs, read=0, window=None, distance_bias=None)
    weights = attention(inputs, seen, with_weights=True)[0].weights
    projected = (inputs[0] @ attention.projection.weight.T).detach().numpy()
    q, k, _ = projected.reshape(5, 3, HEADS, DIM // HEADS).transpose(1, 2, 0, 3)
    rates = 10_000.0 ** (-2 * np.arange(DIM // 2) / DIM)
    w_r = positions.projection.weight.detach().numpy().reshape(HEADS, DIM // HEADS, DIM)
    u, v = (part.detach().numpy()[:, 0] for part in (positions.content, positions.place))
    for h in range(HEADS):
        for i in range(5):
            scores = []
            for j in range(i + 1):
                angles = (i - j) * rates
                r = w_r[h] @ np.concatenate([np.sin(angles), np.cos(angles)])
                scores.append(q[h, i] @ k[h, j] + q[h, i] @ r + u[h] @ k[h, j] + v[h] @ r)
            raised = np.exp(np.array(scores) / np.sqrt(DIM // HEADS))
            np.testing.assert_allclose(
                weights[0, h, i, : i + 1].detach().numpy(), raised / raised.sum(), rtol=1e-6
            )


def model(positions: str = "segment", **more: object) -> LanguageModel[object]:
    torch.manual_seed(2)
    settings = {"layers": 2, "model_dim": DIM, "heads": HEADS, "context": 24, "memory": 5}
    settings |= {"segment": 4, "positions": positions, **more}  # type: ignore[dict-item]
    made = build_language_model(CausalTransformerSettings.model_validate(settings), vocab=11)
    for part in made.modules():
        if isinstance(part, SegmentPositions):
            torch.nn.init.normal_(part.content)
            torch.nn.init.normal_(part.place)
    return made.double().eval()


def tokens(time: int = 23) -> Tensor:
    return torch.randint(11, (2, time), generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize(
    "positions", ["segment", "relative", "rotary", "alibi", "bucketed", "none"]
)
def test_segments_are_a_mask_over_the_whole_text(positions: str) -> None:
    chosen, text = model(positions), tokens()
    in_segments = chosen(text).features
    torch.testing.assert_close(chosen(text, with_weights=True).features, in_segments)
    maps = chosen.head_maps(text)
    for i in range(text.shape[1]):
        begin = max(0, i // 4 * 4 - 5)
        assert (maps[..., i, begin : i + 1] > 0).all()
        assert (maps[..., i, :begin] == 0).all()
        assert (maps[..., i, i + 1 :] == 0).all()


@pytest.mark.parametrize("positions", ["segment", "rotary", "alibi"])
def test_any_division_of_a_text_gives_the_same_in_bounded_memory(positions: str) -> None:
    chosen, text = model(positions), tokens()
    whole = chosen(text).features
    for sizes in ([1] * 23, [3, 9, 2, 9], [4, 19]):
        state, found = chosen.start(2), []
        for part in text.split(sizes, dim=1):
            output, state = chosen.backbone(part, state)
            found.append(output.features)
            assert max(past.keys.shape[2] for past in state.layers) <= 5 + 4 - 1
        torch.testing.assert_close(torch.cat(found, dim=1), whole)


def test_the_matrices_learn_from_the_memory_and_its_tokens_do_not() -> None:
    chosen = model().train()
    text = tokens(8)
    embedded = chosen.backbone.embedded.embedding.weight
    first, second = text[:, :4], text[:, 4:]
    state = chosen.start(2)
    _, state = chosen.backbone(first, state)
    output, _ = chosen.backbone(second, state)
    (gradient,) = torch.autograd.grad(output.features.sum(), embedded, retain_graph=True)
    only_before = sorted(set(first.flatten().tolist()) - set(second.flatten().tolist()))
    assert only_before
    assert (gradient[only_before] == 0).all()
    assert all(past.keys.requires_grad for past in state.layers)  # through W^K alone


def test_a_memory_reads_texts_of_any_length() -> None:
    assert model().context is None
    assert model().backbone.segments == Segments(4, 5)


@pytest.mark.parametrize(
    ("read", "kept"), [(0, 0), (3, 3), (4, 4), (7, 7), (8, 5), (9, 6), (11, 8), (12, 5)]
)
def test_what_a_state_keeps(read: int, kept: int) -> None:
    assert Segments(4, 5).kept(read) == kept
