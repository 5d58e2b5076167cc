from __future__ import annotations

from typing import Any

import pytest
import torch

from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.recurrent.cells import RecurrentStack
from regard.recurrent.encoder import share_recurrence
from regard.settings.models import RecurrentSettings

SOURCE, TARGET = torch.tensor([[4, 5, 6]]), torch.tensor([[2, 7, 4]])


def translator(attention: str, *, inputs: bool = False) -> Translator[Any]:
    torch.manual_seed(1)
    settings = RecurrentSettings.model_validate(
        {
            "cell": "tanh",
            "decoder": "shared",
            "bidirectional": False,
            "attention": attention,
            "hidden": 6,
            "embedding": 4,
            "shared_inputs": inputs,
        }
    )
    return build_translator(settings, source_vocab=9, target_vocab=9).eval()


@pytest.mark.parametrize("attention", ["dot", "parameterised"])
@torch.no_grad()
def test_the_whole_network_follows_the_equations(attention: str) -> None:
    model: Any = translator(attention)
    found = model.project(model(SOURCE, torch.ones_like(SOURCE, dtype=torch.bool), TARGET).features)

    reader, writer = model.encoder.stack.cells[0], model.decoder.stack.cells[0]
    shared = reader.state_weights  # W^h
    y, memory = torch.zeros(6), []
    for token in SOURCE[0]:
        x = reader.input_weights @ model.encoder.embedding.weight[token] + reader.bias
        y = torch.tanh(shared @ y + x)
        memory.append(y)
    encoded = torch.stack(memory, dim=1)  # Y^e, a column a position; y is y^d(0) = y^e(T)
    keys, values, ask = encoded, encoded, torch.eye(6)
    if attention == "parameterised":
        score = model.decoder.lookup.score
        keys, values = score.key_weights.weight @ encoded, score.value_weights.weight @ encoded
        ask = score.query_weights.weight
    for position, token in enumerate(TARGET[0]):
        x = writer.input_weights @ model.decoder.embedding.weight[token] + writer.bias
        y = torch.tanh(shared @ y + x)
        attended = values @ torch.softmax(keys.T @ (ask @ y), dim=0)
        expected = model.projection.weight @ torch.cat([y, attended])
        torch.testing.assert_close(found[0, position], expected)


@torch.no_grad()
def test_one_matrix_reads_state_and_input_of_both_networks() -> None:
    model: Any = translator("dot", inputs=True)
    found = model.project(model(SOURCE, torch.ones_like(SOURCE, dtype=torch.bool), TARGET).features)
    cell = model.encoder.stack.cells[0]
    matrix = torch.cat([cell.state_weights, cell.input_weights], dim=1)  # W^h
    y, memory = torch.zeros(6), []
    for token in SOURCE[0]:
        y = torch.tanh(matrix @ torch.cat([y, model.encoder.embedding.weight[token]]))
        memory.append(y)
    encoded = torch.stack(memory, dim=1)
    for position, token in enumerate(TARGET[0]):
        y = torch.tanh(matrix @ torch.cat([y, model.decoder.embedding.weight[token]]))
        attended = encoded @ torch.softmax(encoded.T @ y, dim=0)
        expected = model.projection.weight @ torch.cat([y, attended])
        torch.testing.assert_close(found[0, position], expected)
    of_cells = [name for name, _ in model.named_parameters() if ".stack." in name]
    assert of_cells == [f"encoder.stack.weights.0.{part}_weights" for part in ("input", "state")]


def test_the_matrix_is_one_and_learns_from_both() -> None:
    model: Any = translator("dot")
    reader, writer = model.encoder.stack.cells[0], model.decoder.stack.cells[0]
    assert reader.state_weights is writer.state_weights
    names = [name for name, _ in model.named_parameters() if name.endswith("state_weights")]
    assert len(names) == 1


@pytest.mark.parametrize("options", [{"bidirectional": True}, {"hidden": 4}])
def test_what_cannot_be_shared_is_refused(options: dict[str, Any]) -> None:
    first = RecurrentStack(**{"kind": "tanh", "input_dim": 3, "hidden": 6, **options})
    second = RecurrentStack(kind="tanh", input_dim=3, hidden=6)
    with pytest.raises(ValueError, match="both read in one direction with one width"):
        share_recurrence(first, second)
