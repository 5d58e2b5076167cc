"""The plan of a model says what the model does: shapes, parameters and connections."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from regard.attention.edges import Edges
from regard.attention.graph import GraphInput
from regard.base.results import Block
from regard.models import blocks
from regard.models.architecture import architecture
from regard.models.build import build_translator
from regard.models.translator import Translator
from regard.settings.models import RecurrentSettings
from regard.settings.recipe import Recipe
from regard.tasks import find_recipe, task_of

TINY_RNN = ("model.hidden=6", "model.embedding=4", "model.source_vocab=9", "model.target_vocab=8")
TINY = ("model.model_dim=8", "model.heads=2", "model.feed_forward=12", "model.layers=2")
PAIRS = ("model.source_vocab=9", "model.target_vocab=9")
CASES = {
    "lstm": ("seq2seq", *TINY_RNN),
    "characters": ("char-lstm", "model.source_vocab=9", "model.target_vocab=8", "model.hidden=5"),
    "luong": ("luong", *TINY_RNN),
    "input feeding": ("luong", *TINY_RNN, "model.input_feeding=true", "model.layers=2"),
    "bahdanau": ("bahdanau", *TINY_RNN),
    "two layers": ("bahdanau", *TINY_RNN, "model.layers=2"),
    "constant context": ("bahdanau", *TINY_RNN, "model.attention=none"),
    "one matrix": ("simple-attention", "model.hidden=4", "model.source_vocab=9",
                   "model.target_vocab=8", "model.embedding=4"),
    "parameterised": ("parameterised-attention", "model.hidden=4", "model.source_vocab=9",
                      "model.target_vocab=8", "model.embedding=4"),
    "transformer": ("transformer-base", *TINY, *PAIRS),
    "norm first": ("transformer-tiny", *TINY, *PAIRS, "model.norm_placement=pre"),
    "learned positions": ("transformer-tiny", *TINY, *PAIRS, "model.positions=learned"),
    "relative positions": ("transformer-tiny", *TINY, *PAIRS, "model.positions=relative"),
    "bias by distance": ("transformer-tiny", *TINY, *PAIRS, "model.positions=bucketed"),
    "no positions": ("transformer-tiny", *TINY, *PAIRS, "model.positions=none"),
    "experts": ("transformer-tiny", *TINY, *PAIRS, "model.experts=3", "model.expert_every=2"),
    "recurrent decoder": ("transformer-tiny", *TINY, *PAIRS, "model.decoder=ssru"),
    "convolutions": ("convolutional-tiny", *TINY, *PAIRS),
    "language model": ("gpt-nano", *TINY, "model.vocab=9"),
    "hidden tokens": ("bert-nano", *TINY, "model.vocab=9"),
    "recurrent text": ("lstm-nano", "model.hidden=6", "model.embedding=4", "model.vocab=9"),
    "classifier": ("text-classifier", *TINY, "model.vocab=9"),
    "forecaster": ("forecast", "data.window=7", "model.hidden=4"),
    "graph": ("gat-cora", "model.features=5", "model.classes=3", "model.head_dim=2"),
    "convolution on a graph": ("gat-cora", "model.features=5", "model.layer=convolution"),
    "messages on a graph": ("gat-cora", "model.features=5", "model.layer=messages"),
}  # fmt: skip
SIZES = {"batch": 2, "source": 7, "target": 5, "time": 6, "7": 7, "nodes": 4}


def network_of(name: str, *overrides: str) -> tuple[nn.Module, Recipe]:
    recipe = find_recipe(name, overrides=overrides)
    network: nn.Module = task_of(recipe.task).build(recipe)
    return network.eval(), recipe


def read_something(network: Any, task: str) -> None:
    """Let the model read inputs of the sizes above."""
    if task == "translate":
        source, target = torch.ones(2, 7, dtype=torch.long), torch.ones(2, 5, dtype=torch.long)
        network.project(network(source, torch.ones(2, 7, dtype=torch.bool), target).features)
    elif task == "language-model":
        network.project(network(torch.ones(2, 6, dtype=torch.long)).features)
    elif task == "classify-text":
        network(torch.ones(2, 6, dtype=torch.long), torch.ones(2, 6, dtype=torch.bool))
    elif task == "forecast":
        network(torch.rand(2, 7, dtype=torch.float64))
    else:
        ends = torch.arange(4)
        edges = Edges.sort(ends, ends, sources=4, targets=4)
        network(GraphInput(torch.rand(4, 5), edges, torch.zeros(4, dtype=torch.long)))


@pytest.mark.parametrize("case", CASES)
def test_shapes_are_those_that_come_out(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, recipe = network_of(*CASES[case])
    made: dict[str, tuple[nn.Module | None, ...]] = {}
    add = blocks.BlockList.add

    def noted(self: blocks.BlockList, block: Block, *parts: nn.Module | None) -> str:
        made[block.name] = parts
        return add(self, block, *parts)

    monkeypatch.setattr(blocks.BlockList, "add", noted)
    plan = architecture(network)
    shapes: dict[str, tuple[int, ...]] = {}
    for name, parts in made.items():
        if len(parts) == 1 and isinstance(parts[0], nn.Module):
            parts[0].register_forward_hook(partial(keep_shape, shapes, name))
    with torch.no_grad():
        read_something(network, recipe.task)
    checked = 0
    for block in plan.layers:
        if block.name not in shapes or block.role == "positions" or block.shared:
            continue
        wanted = tuple(SIZES.get(str(size), size) for size in block.shape)
        step = (wanted[0], 1, *wanted[2:])  # what is read in a loop
        assert shapes[block.name] in (wanted, step), block.name
        checked += 1
    assert checked >= 2


def keep_shape(
    shapes: dict[str, tuple[int, ...]], name: str, part: nn.Module, given: Any, output: Any
) -> None:
    shapes.setdefault(name, tuple(first_of(output).shape))


def first_of(output: Any) -> torch.Tensor:
    while not isinstance(output, torch.Tensor):
        output = output[0]
    return output


@pytest.mark.parametrize("case", CASES)
def test_every_parameter_is_counted_once(case: str) -> None:
    network, _ = network_of(*CASES[case])
    plan = architecture(network)
    assert plan.parameters == sum(p.numel() for p in network.parameters())
    assert plan.bytes == sum(p.numel() * p.element_size() for p in network.parameters())
    assert plan.trainable == plan.parameters
    assert len({block.name for block in plan.blocks}) == len(plan.blocks)


@pytest.mark.parametrize("case", CASES)
def test_everything_is_connected(case: str) -> None:
    network, _ = network_of(*CASES[case])
    plan = architecture(network)
    names = {block.name for block in plan.blocks}
    read = {link.block for block in plan.blocks for link in block.inputs}
    assert read <= names
    assert names - read == {plan.blocks[-1].name}  # only the output is read by nobody
    for block in plan.layers:
        assert block.inputs or block.role == "positions", block.name


def test_the_numbers_of_the_lectures() -> None:
    def counted(name: str, *overrides: str) -> list[int]:
        network, _ = network_of(name, *overrides)
        return [block.parameters for block in architecture(network).layers if block.parameters]

    assert counted("fibonacci-rnn") == [8, 3]  # 11
    assert counted("fibonacci-lecture") == [8, 22, 3]  # 33
    assert counted("char-lstm", "model.source_vocab=74", "model.target_vocab=78") == [
        338_944, 343_040, 20_046,
    ]  # fmt: skip


def test_what_is_shared_says_with_what() -> None:
    plan = architecture(network_of(*CASES["one matrix"])[0])
    assert plan["decoder.rnn"].shared == "encoder.rnn"
    assert plan["decoder.rnn"].parameters == 0
    with pytest.raises(KeyError):
        plan["encoder.lstm"]


def test_what_is_frozen_is_not_trainable() -> None:
    network, _ = network_of(*CASES["lstm"])
    plain: Any = network
    plain.encoder.requires_grad_(False)
    plan = architecture(network)
    assert not plan["encoder.lstm"].trainable and plan["decoder.lstm"].trainable
    assert plan.trainable < plan.parameters


class OwnEncoder(nn.Module):
    """What a user may have written."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 4)


def test_networks_of_users_are_blocks_too() -> None:
    made = build_translator(
        RecurrentSettings(hidden=4, embedding=4), source_vocab=9, target_vocab=9
    )
    mine = Translator(encoder=OwnEncoder(), decoder=OwnEncoder(), projection=made.projection)
    plan = architecture(mine)
    assert plan["encoder"].title == "OwnEncoder" and plan["encoder"].parameters == 36
    assert [link.block for link in plan["decoder"].inputs] == ["target", "encoder"]
    plain = architecture(nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 4)))
    assert [(block.name, block.note) for block in plain.blocks] == [
        ("0", "2x3, 2"), ("2", "4x2, 4"),
    ]  # fmt: skip
