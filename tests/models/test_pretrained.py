from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.base.errors import SettingsError
from regard.models.pretrained import freeze, load_extended


def model_of(*, vocab: int, width: int = 3) -> nn.Module:
    parts = {"encoder": nn.Embedding(vocab, width), "decoder": nn.Linear(width, vocab)}
    return nn.ModuleDict(parts)


def test_old_rows_are_kept_and_new_ones_fresh() -> None:
    old, new = model_of(vocab=4), model_of(vocab=6)
    fresh = {name: p.detach().clone() for name, p in new.named_parameters()}
    extended = load_extended(new, dict(old.named_parameters()))
    assert extended == ["encoder.weight", "decoder.weight", "decoder.bias"]
    for name, parameter in new.named_parameters():
        assert torch.equal(parameter[:4], dict(old.named_parameters())[name])
        assert torch.equal(parameter[4:], fresh[name][4:])
    same = model_of(vocab=4)
    assert load_extended(same, dict(old.named_parameters())) == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (model_of(vocab=4, width=5), r"'encoder.weight' has shape \(4, 5\) there and \(4, 3\)"),
        (model_of(vocab=9), r"'encoder.weight' has shape \(9, 3\) there and \(4, 3\) here"),
        (nn.Linear(1, 1), "has no weights 'encoder.weight'"),
    ],
)
def test_another_model_is_refused_before_anything_is_loaded(other: nn.Module, message: str) -> None:
    model = model_of(vocab=4)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    with pytest.raises(SettingsError, match=message):
        load_extended(model, dict(other.named_parameters()))
    assert all(torch.equal(before[name], p) for name, p in model.named_parameters())


def test_parts_are_frozen_by_name() -> None:
    model = model_of(vocab=4)
    assert freeze(model, []) == []
    assert freeze(model, ["encoder.*", "*.bias", "encoder.weight"]) == [
        "encoder.weight", "decoder.bias",
    ]  # fmt: skip
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["decoder.weight"]


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["encodr.*"], r"named like 'encodr\.\*'; the parts of this model are encoder\.\*, decod"),
        (["*"], "leaves nothing to train"),
    ],
)
def test_patterns_that_cannot_be_meant(patterns: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        freeze(model_of(vocab=4), patterns)
