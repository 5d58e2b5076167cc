from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.base.errors import RunError
from regard.training.optimisers import Muon, MuonMatrix, orthogonal

BETAS = (0.9, 0.98)


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (8, 24), (24, 8), (1, 7)])
def test_all_directions_of_a_step_are_about_equally_strong(rows: int, columns: int) -> None:
    torch.manual_seed(1)
    given = torch.randn(5, rows, columns) * torch.logspace(-3, 3, 5)[:, None, None]
    found = orthogonal(given)
    strengths = torch.linalg.svdvals(found)
    assert strengths.min() > 0.3  # Jordan et al. 2024: 0.7 to 1.2, but for the weakest directions
    assert strengths.max() < 1.3
    left, _, right = torch.linalg.svd(given, full_matrices=False)
    mixed = left.mT @ found @ right.mT  # diagonal where the singular vectors are kept
    assert torch.allclose(mixed, torch.diag_embed(mixed.diagonal(dim1=1, dim2=2)), atol=1e-4)


def test_nothing_to_learn_is_no_step() -> None:
    assert torch.equal(orthogonal(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def muon(parameter: nn.Parameter, *, parts: int = 1, **options: Any) -> Muon:
    return Muon([MuonMatrix(parameter, parts)], [], betas=BETAS, **options)


def after(optimizer: Muon, parameter: nn.Parameter, gradient: Tensor) -> Tensor:
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    before = parameter.detach().clone()
    parameter.grad = gradient.clone()
    optimizer.step()
    return parameter.detach() - before


def test_parts_of_a_matrix_are_matrices_of_their_own() -> None:
    torch.manual_seed(1)
    gradient = torch.randn(12, 4)
    whole = nn.Parameter(torch.zeros(12, 4))
    changes = after(muon(whole, parts=3), whole, gradient).chunk(3)
    for piece, change in zip(gradient.chunk(3), changes, strict=True):
        alone = nn.Parameter(torch.zeros(4, 4))
        assert torch.allclose(after(muon(alone), alone, piece), change, atol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (32, 128), (128, 32)])
def test_a_step_is_as_large_as_one_of_adam(rows: int, columns: int) -> None:
    torch.manual_seed(1)
    weight = nn.Parameter(torch.zeros(rows, columns))
    change = after(muon(weight), weight, torch.randn(rows, columns))
    assert change.square().mean().sqrt() == pytest.approx(0.1 * 0.2, rel=0.2)


def test_weight_decay_pulls_matrices_towards_zero() -> None:
    weight = nn.Parameter(torch.ones(4, 4))
    change = after(muon(weight, weight_decay=0.5), weight, torch.zeros(4, 4))
    assert torch.allclose(change, torch.full((4, 4), -0.05))


def test_all_else_goes_by_adam() -> None:
    torch.manual_seed(1)
    matrix, other, twin = (nn.Parameter(torch.randn(3, 3)) for _ in range(3))
    twin.data.copy_(other.data)
    ours = Muon([MuonMatrix(matrix)], [other], betas=BETAS, weight_decay=0.1)
    theirs = torch.optim.AdamW([twin], betas=BETAS, weight_decay=0.1)
    for _ in range(5):
        gradient = torch.randn(3, 3)
        matrix.grad, other.grad, twin.grad = torch.randn(3, 3), gradient, gradient.clone()
        ours.step()
        theirs.step()
    assert torch.allclose(other, twin, atol=1e-6)
    assert ours.state[matrix].keys() == {"momentum", "step"}


def test_a_frozen_matrix_stays() -> None:
    matrix = nn.Parameter(torch.ones(3, 3), requires_grad=False)
    muon(matrix).step()
    assert torch.equal(matrix, torch.ones(3, 3))


@pytest.fixture
def with_muon(toy: Any) -> Callable[[Path], Any]:
    def make(folder: Path) -> Any:
        task = toy(folder)
        first, *others = task.model.parameters()
        task.optimizer = Muon([MuonMatrix(first)], others, betas=BETAS)
        return task

    return make


def test_a_stopped_training_goes_on_exactly(with_muon: Callable[[Path], Any], tmp_path: Path):
    whole = with_muon(tmp_path / "whole")
    whole.fit(steps=6, checkpoint_every=3)
    with_muon(tmp_path / "parts").fit(steps=3, checkpoint_every=3)
    resumed = with_muon(tmp_path / "parts")
    resumed.fit(steps=6, checkpoint_every=3)
    for name, weights in whole.weights().items():
        assert torch.equal(resumed.weights()[name], weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("0.exp_avg"), "has no tensor '0.exp_avg'"),
        (lambda t: t.update({"9.exp_avg": torch.zeros(1)}), "more parameters than the recipe's"),
    ],
)
def test_a_damaged_memory_is_named(
    with_muon: Callable[[Path], Any], tmp_path: Path, change: Any, message: str
) -> None:
    with_muon(tmp_path).fit(steps=2, checkpoint_every=1)
    path = sorted(tmp_path.glob("checkpoints/*/optimizer.safetensors"))[-1]
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    state = path.with_name("state.json")
    state.write_text(json.dumps(json.loads(state.read_text()) | {"checksums": {}}))
    with pytest.raises(RunError, match=message):
        with_muon(tmp_path).fit(steps=3)
