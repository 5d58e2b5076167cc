from __future__ import annotations

import pytest
import torch
from torch import nn

from regard.base.errors import RunError, SettingsError
from regard.exchange.layout import WeightLayout, fill, rule, spread, written
from regard.exchange.operations import (
    NEVER,
    SAME,
    TRANSPOSED,
    Constant,
    Cut,
    Deinterleaved,
    Flattened,
    GroupedHeads,
    Interleaved,
    Joined,
    Operation,
    Selected,
    Summed,
)

A, B = torch.arange(12.0).view(6, 2), -torch.arange(12.0).view(6, 2)


@pytest.mark.parametrize(
    ("operation", "theirs"),
    [
        (SAME, [A]),
        (TRANSPOSED, [A]),
        (TRANSPOSED, [A[0]]),
        (Joined(2), [A, B]),
        (Joined((6, 4)), [A, B[:4]]),
        (Joined(2, dim=1), [A, B]),
        (Cut(3), [A]),
        (Cut((1, 5)), [A]),
        (Interleaved(), [A, B]),
        (Deinterleaved(3), [A]),
        (GroupedHeads(2), [A]),
        (Flattened(), [A[:, :1].T]),
        (Flattened((1, -1, 2), (-1, 2)), [A[None]]),
        (Selected((5, 2, -1, 0, 1, 3, 4), 6), [A]),
        (Selected((1, 0), 2), [A[:2, 0]]),
        (TRANSPOSED.then(Joined(2)), [A.T, B.T]),
        (Flattened().then(Joined(2)), [A[None, :, 0], B[None, :, 0]]),
    ],
    ids=str,
)
def test_every_operation_has_a_reverse(operation: Operation, theirs: list[torch.Tensor]) -> None:
    back = operation.reverse.apply(operation.apply(theirs))
    assert len(back) == len(theirs)
    assert all(torch.equal(one, other) for one, other in zip(back, theirs, strict=True))


def test_what_the_operations_do() -> None:
    assert Interleaved().apply([A, B])[0][:4].tolist() == [[0, 1], [0, -1], [2, 3], [-2, -3]]
    # two heads, each with a row of queries, keys and values
    grouped = torch.arange(6)[:, None]  # q1 k1 v1 q2 k2 v2
    assert GroupedHeads(2).apply([grouped])[0].flatten().tolist() == [0, 3, 1, 4, 2, 5]
    chosen = Selected((2, -1, 0, 0), 3, fill=7.0)
    assert chosen.apply([A[:3, 0]])[0].tolist() == [4, 7, 0, 0]
    assert Summed().reverse.apply(Summed().apply([A, B + 1]))[0].tolist() == [[1.0, 1.0]] * 6
    bias = Constant(never=(1,)).like(torch.empty(3))
    assert bias.tolist() == [0, NEVER, 0]
    assert bias.log_softmax(0).exp()[1] == 0


def test_placeholders_spread() -> None:
    table = [rule("layers.{layer}.norm.{kind}", "l{layer}_ln_{kind}"), rule("last", "end")]
    found = spread(table, layer=[(0, 1), (1, 2)], kind=[("weight", "scale"), ("bias", "bias")])
    assert [(one.ours[0], one.theirs[0]) for one in found] == [
        ("layers.0.norm.weight", "l1_ln_scale"),
        ("layers.0.norm.bias", "l1_ln_bias"),
        ("layers.1.norm.weight", "l2_ln_scale"),
        ("layers.1.norm.bias", "l2_ln_bias"),
        ("last", "end"),
    ]


LAYOUT = WeightLayout(
    rules=[rule("weight", ["w_a", "w_b"], TRANSPOSED.then(Joined(2))), rule("bias", "b")],
    copies={"b_again": "b"},
    leftovers={r"step_\d+": "a counter of the training"},
)


def tensors() -> dict[str, torch.Tensor]:
    return {"w_a": torch.rand(3, 2), "w_b": torch.rand(3, 2), "b": torch.rand(4)}


def test_one_table_reads_and_writes() -> None:
    model, theirs = nn.Linear(3, 4), tensors()
    more = {"b_again": theirs["b"].clone(), "step_12": torch.ones(())}
    left = fill(model, LAYOUT, theirs | more, origin="file")
    assert left == {"b_again": "the same as b", "step_12": "a counter of the training"}
    assert torch.equal(model.weight[2:], theirs["w_b"].T)
    back = written(model, LAYOUT)
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"w_b": None}, r"file has no tensor 'w_b': the file is incomplete"),
        ({"w_a": torch.rand(2, 3)}, r"'w_a' has shape \(2, 3\) instead of \(3, 2\)"),
        (
            {"more": torch.rand(1), "most": torch.rand(1)},
            r"does not know: 'more', 'most'\. A model",
        ),
        ({"b_again": torch.rand(4)}, r"'b_again' differs from 'b'"),
    ],
)
def test_nothing_is_changed_unless_everything_fits(
    changes: dict[str, torch.Tensor | None], message: str
) -> None:
    model = nn.Linear(3, 4)
    before = model.weight.detach().clone()
    given = {name: part for name, part in (tensors() | changes).items() if part is not None}
    with pytest.raises(RunError, match=message):
        fill(model, LAYOUT, given, origin="file")
    assert torch.equal(model.weight, before)


def test_long_lists_are_cut() -> None:
    extra = {f"x{number}": torch.ones(1) for number in range(20)}
    with pytest.raises(RunError, match=r"'x7' and 12 more"):
        fill(nn.Linear(3, 4), LAYOUT, tensors() | extra, origin="file")


def test_a_parameter_without_a_rule_is_an_error() -> None:
    with pytest.raises(RunError, match=r"no weights for 'bias'"):
        fill(
            nn.Linear(2, 2), WeightLayout(rules=[rule("weight", "w")]), {"w": A[:2]}, origin="file"
        )


def test_what_was_trained_and_has_no_place_is_not_lost_silently() -> None:
    layout = WeightLayout(
        rules=[
            rule("weight", "w", Selected((0, 0, 1), 2)),
            rule("bias", (), Constant(never=(0,))),
        ]
    )
    model = nn.Linear(2, 3)
    fill(model, layout, {"w": A[:2]}, origin="file")
    assert torch.equal(written(model, layout)["w"], A[:2])
    with torch.no_grad():
        model.weight[0] += 1
        model.bias[1] = 2
    with pytest.raises(SettingsError, match="no place for all of 'weight', 'bias'"):
        written(model, layout)


def test_added_rows_of_an_output_bias_may_be_trained() -> None:
    layout = WeightLayout(
        rules=[rule("weight", "w"), rule("bias", "b", Selected((0, -1), 1, NEVER, exact=False))]
    )
    model = nn.Linear(2, 2)
    fill(model, layout, {"w": A[:2], "b": torch.ones(1)}, origin="file")
    assert model.bias.tolist() == [1, NEVER]
    with torch.no_grad():
        model.bias[1] += 1
    assert written(model, layout)["b"].tolist() == [1]
