from __future__ import annotations

from torch import nn

from regard.models.inspection import LayerRow, layer_table, parameter_count


def test_rows_name_kind_shapes_and_parameters() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 4, bias=False))
    assert layer_table(model) == [
        LayerRow("0", "Linear", "2x3, 2", 8),
        LayerRow("2", "Linear", "4x2", 8),
    ]


def test_what_is_shared_counts_once() -> None:
    embedding, projection = nn.Embedding(7, 3), nn.Linear(3, 7, bias=False)
    projection.weight = embedding.weight
    model = nn.ModuleList([embedding, projection])
    assert [row.name for row in layer_table(model)] == ["0"]
    assert parameter_count(model) == 21


def test_the_rows_add_up_to_the_count() -> None:
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    assert sum(row.parameters for row in layer_table(model)) == parameter_count(model)


def test_a_model_that_is_no_longer_trained_counts_as_before() -> None:
    assert parameter_count(nn.Linear(3, 2).requires_grad_(False)) == 8
