"""Rows that share a past: what they read is theirs alone, and little is kept for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention import past
from regard.attention.past import KeysValues, TreePaths, without_dead_nodes
from regard.models.language_model import LanguageModel, LanguageModelPlan

OPTIONS: dict[str, dict[str, Any]] = {
    "sinusoidal": {},
    "rotary, grouped heads": {"positions": "rotary", "key_value_heads": 1},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative", "reach": 3},
    "window": {"window": 3},
    "linear": {"kernel": "linear"},
}


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "LEAST_ROOM", 4)


def model_of(**options: Any) -> LanguageModel[Any]:
    torch.manual_seed(1)
    plan = LanguageModelPlan(
        **{"layers": 2, "model_dim": 16, "heads": 2, "feed_forward": 24, "max_length": 64} | options
    )
    return plan.language_model(vocab=20).eval()


def whole(model: LanguageModel[Any], tokens: Tensor) -> Tensor:
    return model.read(tokens, model.start(len(tokens))).logits


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("how", ["one token", "three tokens", "weights", "with a gradient"])
@torch.no_grad()
def test_rows_of_a_beam_read_on(options: dict[str, Any], how: str) -> None:
    model = model_of(**options)
    written = torch.randint(4, 20, (2, 5))
    state = model.read(written, model.start(2)).state
    for step in range(9):
        rows = torch.randint(0, len(written) // 2, (2, 3))
        rows[1] += len(written) // 2
        count = 3 if how == "three tokens" and step % 4 == 3 else 1
        tokens = torch.randint(4, 20, (6, count))
        written = torch.cat([written[rows.flatten()], tokens], dim=1)
        state = model.select(state, rows.flatten())
        # What linear attention keeps has no weights.
        weights = how == "weights" and step % 2 == 1 and options.get("kernel") != "linear"
        if how == "with a gradient" and step % 4 == 3:
            with torch.enable_grad():
                read = model.read(tokens, state)
        else:
            read = model.read(tokens, state, with_weights=weights)
        state = read.state
        close(read.logits, whole(model, written))
        if weights:
            assert read.weights is not None
            close(read.weights.sum(1), torch.ones(6))


@torch.inference_mode()
def test_two_continuations_of_a_state_do_not_disturb_each_other() -> None:
    model, begun = model_of(), torch.randint(4, 20, (2, 3))
    first = model.read(begun, model.start(2)).state
    for rows in (torch.tensor([0, 1]), torch.tensor([0, 0, 1, 1])):
        shared = model.select(first, rows)
        prefix = begun[rows]
        once = model.read(prefix[:, :1], shared).state  # makes room behind the state
        branches = [torch.randint(4, 20, (len(rows), 2)) for _ in range(2)]
        states = [model.read(branch[:, :1], once).state for branch in branches]
        for branch, state in zip(branches, states, strict=True):
            text = torch.cat([prefix, prefix[:, :1], branch], dim=1)
            close(model.read(branch[:, 1:], state).logits, whole(model, text))


def test_a_state_may_leave_inference_mode() -> None:
    model, tokens = model_of(), torch.randint(4, 20, (2, 6))
    with torch.inference_mode():
        state = model.read(tokens[:, :4], model.start(2)).state
        state = model.read(tokens[:, 4:5], state).state
    with torch.no_grad():
        close(model.read(tokens[:, 5:], state).logits, whole(model, tokens))


@torch.inference_mode()
def test_sentences_may_keep_unequally_many_rows_or_none() -> None:
    model, tokens = model_of(), torch.randint(4, 20, (2, 4))
    state = model.read(tokens, model.start(2)).state
    state = model.select(state, torch.tensor([0, 0, 1, 1]))
    more = torch.randint(4, 20, (4, 1))
    state = model.read(more, state).state
    rows = torch.tensor([3, 0, 1])
    text = torch.cat([tokens[[0, 0, 1, 1]], more], dim=1)[rows]
    state = model.select(state, rows)
    last = torch.randint(4, 20, (3, 1))
    close(model.read(last, state).logits, whole(model, torch.cat([text, last], dim=1)))
    none = model.select(state, torch.empty(0, dtype=torch.long))
    assert none.layers[0].keys.shape[0] == 0


@torch.inference_mode()
def test_what_no_row_has_come_by_is_forgotten() -> None:
    model, width, steps = model_of(), 4, 50
    state = model.read(torch.full((1, 1), 5), model.start(1)).state
    state = model.select(state, torch.zeros(width, dtype=torch.long))
    most = 0
    for _ in range(steps):
        state = model.read(torch.randint(4, 20, (width, 1)), state).state
        # The last row dies and the first has two children, so prefixes part late.
        state = model.select(state, torch.tensor([0, 0, 1, 2]))
        layer = state.layers[0]
        most = max(most, layer.keys.shape[2])
    assert layer.keys.shape[0] == 1  # one sentence, whatever the width of its beam
    assert most <= 1.5 * (steps + width * width) + 2 * width < width * steps


@torch.inference_mode()
def test_nodes_are_removed_without_a_change_to_the_living() -> None:
    taken = torch.tensor([[[1, 0, 1, 0, 0, 1]], [[1, 1, 1, 0, 1, 0]]]).bool()
    positions = torch.tensor([[0, 1, 1, 2, 2, 2], [0, 1, 2, 2, 3, 3]])
    keys = torch.arange(12.0).view(2, 1, 6, 1).expand(-1, 3, -1, 2) + torch.zeros(3, 1, 2)
    (layer,), paths = without_dead_nodes([KeysValues(keys, -keys)], TreePaths(taken, positions, 6))
    assert layer.keys[:, 2, :, 1].tolist() == [[0, 2, 5, 1], [6, 7, 8, 10]]
    assert torch.equal(layer.values, -layer.keys)
    assert paths.taken[:, 0].int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert paths.positions.tolist() == [[0, 1, 2, 1], [0, 1, 2, 3]]


@torch.inference_mode()
def test_positions_are_copied_only_when_the_room_doubles() -> None:
    kept, places = KeysValues(torch.randn(2, 1, 1, 3), torch.randn(2, 1, 1, 3)), set()
    wanted = [kept.keys]
    for _ in range(100):
        more = torch.randn(2, 1, 1, 3)
        kept = kept.then(more, -more)
        wanted.append(more)
        places.add(kept.keys.data_ptr())
    assert torch.equal(kept.keys, torch.cat(wanted, dim=2))
    assert len(places) <= 6
    last = kept.last(10).then(more, more)
    assert torch.equal(last.keys, torch.cat([*wanted[-10:], more], dim=2))
