from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.masks import padding_mask
from regard.attention.scores import SCORES
from regard.models.build import build_translator
from regard.models.recurrent import RECURRENT_DECODERS
from regard.models.translator import Translator
from regard.recurrent.cells import CELLS
from regard.settings.models import RecurrentSettings

VOCAB = 11
DECODERS = [*RECURRENT_DECODERS, "feeding"]
KINDS = [
    # every cell with every decoder, every attention with every decoder
    *itertools.product(CELLS, ["dot"], [2], DECODERS),
    *itertools.product(["lstm"], [*SCORES, "none"], [1], DECODERS),
]
KINDS.remove(("lstm", "none", 1, "feeding"))
SOME = [kind for kind in KINDS if kind[1] in ("dot", "additive", "multi-head", "none")]


def translator(cell: str, attention: str, layers: int, decoder: str) -> Translator[Any]:
    torch.manual_seed(1)
    chosen = RecurrentSettings.model_validate(
        {
            "cell": cell,
            "attention": attention,
            "layers": layers,
            "decoder": "luong" if decoder == "feeding" else decoder,
            "input_feeding": decoder == "feeding",
            "bidirectional": decoder != "shared",
            "hidden": 8,
            "embedding": 5,
        }
    )
    return build_translator(chosen, source_vocab=VOCAB, target_vocab=VOCAB).eval()


def sentences(lengths: list[int], size: int, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    mask = padding_mask(torch.tensor(lengths), size=size)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(4, VOCAB, mask.shape, generator=generator) * mask, mask


@pytest.mark.parametrize(("cell", "attention", "layers", "decoder"), KINDS)
@torch.no_grad()
def test_steps_equal_the_full_pass(cell: str, attention: str, layers: int, decoder: str) -> None:
    model = translator(cell, attention, layers, decoder)
    source, mask = sentences([5, 2, 4], size=5)
    target, _ = sentences([6, 6, 6], size=6, seed=4)
    full = model(source, mask, target, with_weights=True)
    logits = model.project(full.features)
    state = model.start(model.encode(source, mask))
    for position in range(6):
        step = model.step(target[:, position], state, with_weights=True)
        torch.testing.assert_close(step.logits, logits[:, position])
        if attention == "none":
            assert step.weights is None
            assert full.attention is None
        else:
            assert step.weights is not None
            assert full.attention is not None
            torch.testing.assert_close(step.weights, full.attention[:, position])
        state = step.state


@pytest.mark.parametrize(("cell", "attention", "layers", "decoder"), KINDS)
@torch.no_grad()
def test_select_reorders_and_repeats_rows(
    cell: str, attention: str, layers: int, decoder: str
) -> None:
    model = translator(cell, attention, layers, decoder)
    source, mask = sentences([5, 2, 4], size=5)
    tokens = torch.tensor([4, 5, 6])
    state = model.step(tokens, model.start(model.encode(source, mask))).state
    rows = torch.tensor([2, 0, 0])
    chosen = model.step(tokens[rows], model.select(state, rows)).logits
    torch.testing.assert_close(chosen, model.step(tokens, state).logits[rows])


@settings(deadline=None, max_examples=20)
@given(
    kind=st.sampled_from(SOME),
    length=st.integers(2, 8),
    data=st.data(),
)
@torch.no_grad()
def test_the_future_never_leaks(
    kind: tuple[str, str, int, str], length: int, data: st.DataObject
) -> None:
    model = translator(*kind)
    source, mask = sentences([5], size=5)
    tokens = st.lists(st.integers(1, VOCAB - 1), min_size=length, max_size=length)
    first, second = torch.tensor([data.draw(tokens)]), torch.tensor([data.draw(tokens)])
    present = data.draw(st.integers(1, length - 1))
    changed = torch.cat([first[:, :present], second[:, present:]], dim=1)
    before, after = model(source, mask, first).features, model(source, mask, changed).features
    assert torch.equal(before[:, :present], after[:, :present])


@settings(deadline=None, max_examples=20)
@given(
    kind=st.sampled_from(SOME),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    extra=st.integers(0, 4),
)
@torch.no_grad()
def test_neighbours_and_padding_never_matter(
    kind: tuple[str, str, int, str], lengths: list[int], extra: int
) -> None:
    model = translator(*kind)
    source, mask = sentences(lengths, size=max(lengths) + extra)
    target, _ = sentences([4] * len(lengths), size=4, seed=5)
    together = model(source, mask, target).features
    for row, length in enumerate(lengths):
        one = slice(row, row + 1)
        alone = model(source[one, :length], mask[one, :length], target[one]).features
        torch.testing.assert_close(together[one], alone)
