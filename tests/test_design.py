"""The design test: a new attention score and a new kind of positions touch no file but their own.

Each is a class and a line in its registry; settings find it by name, and it trains. (A new task is
tried in `tests/tasks`.)
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.attention.edges import Edges
from regard.attention.graph import EDGE_SCORES, EdgeScore, GraphInput
from regard.attention.places import AddedPositions, DistanceBias, PositionOptions
from regard.attention.positions import POSITIONS
from regard.attention.scores import SCORES, AttentionScore
from regard.base.errors import SettingsError
from regard.base.shapes import Float, Int, Tensor
from regard.models.graph_classifier import build_graph_classifier
from regard.models.translator import Translator
from regard.settings.models import GraphModelSettings
from regard.studies.positions import PositionCurves, PositionVectors, positions_of
from regard.tasks import find_recipe, task_of, trace_recipe

SMALL = ["model.dropout=0", "model.source_vocab=12", "model.target_vocab=12"]
RECURRENT = ["model.hidden=8", "model.embedding=8", *SMALL]
TRANSFORMER = ["model.layers=1", "model.model_dim=8", "model.heads=2", "model.feed_forward=16"]


class NegativeDistance(AttentionScore):
    """e = -|W s - h|^2: the nearer, the higher."""

    formula = "e_ij = -|W {s} - h_j|^2"

    def __init__(self, *, query_dim: int, key_dim: int, heads: int = 1):
        super().__init__(query_dim=query_dim, key_dim=key_dim, heads=heads)
        self.weights = torch.nn.Linear(query_dim, key_dim, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch target query_dim"],
        keys: Float[Tensor, "batch source prepared_dim"],
    ) -> Float[Tensor, "batch *heads target source"]:
        difference = self.weights(query)[:, :, None] - keys[:, None]
        return -difference.square().sum(-1)


class EdgeDistance(EdgeScore):
    """e_ij = -|W h_i - W h_j|^2 on edges."""

    projections = 1

    def forward(
        self,
        queries: Float[Tensor, "nodes heads head_dim"],
        keys: Float[Tensor, "nodes heads head_dim"],
        edges: Edges,
    ) -> Float[Tensor, "heads edges"]:
        return -(queries[edges.target] - keys[edges.source]).square().sum(-1).T


class Parity(AddedPositions):
    """One vector for even positions and one for odd ones."""

    def __init__(self, model_dim: int):
        super().__init__()
        self.vectors = torch.nn.Parameter(torch.randn(2, model_dim))

    @classmethod
    def build(cls, options: PositionOptions) -> Parity:
        return cls(options.model_dim)

    def forward(
        self, length: int, *, start: int = 0, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, "{length} model_dim"]:
        return self.vectors[torch.arange(start, start + length) % 2].to(dtype)


class LearnedDecay(DistanceBias):
    """-w_h sqrt|i - j| for head h, with w learned."""

    def __init__(self, heads: int):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(heads))

    @classmethod
    def build(cls, options: PositionOptions) -> LearnedDecay:
        return cls(options.heads)

    def forward(
        self, distances: Int[Tensor, "target source"], *, dtype: torch.dtype
    ) -> Float[Tensor, "heads target source"]:
        return -self.weights[:, None, None] * distances.abs().to(dtype).sqrt()


def built(recipe: str, *overrides: str) -> Translator[Any]:
    """Return the untrained translator of a shipped recipe with changed settings."""
    torch.manual_seed(1)
    found = find_recipe(recipe, overrides=[*SMALL, *overrides])
    model: Translator[Any] = task_of("translate").build(found)
    return model


def losses(model: Translator[Any], *, steps: int = 60) -> tuple[float, float]:
    """Teach a model to copy four sentences; return its loss before and after."""
    tokens = torch.randint(4, 12, (4, 5), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(tokens, dtype=torch.bool)
    shifted = torch.cat([torch.full((4, 1), 2), tokens[:, :-1]], dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    found = []
    for _ in range(steps):
        logits = model.project(model(tokens, mask, shifted).features)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        found.append(float(loss.detach()))
    return found[0], found[-1]


def part_of(model: torch.nn.Module, kind: type[torch.nn.Module]) -> torch.nn.Module:
    """Return the first part of this kind."""
    return next(part for part in model.modules() if isinstance(part, kind))


@pytest.mark.parametrize(
    ("recipe", "overrides"),
    [
        ("luong", [*RECURRENT, "model.attention=negative-distance"]),
        ("bahdanau", [*RECURRENT, "model.attention=negative-distance"]),
        ("transformer-tiny", [*TRANSFORMER, "model.score=negative-distance"]),
    ],
)
def test_a_new_score_is_a_class_and_a_line(
    recipe: str, overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match="Unknown model"):
        built(recipe, *overrides)
    monkeypatch.setitem(SCORES, "negative-distance", NegativeDistance)
    model = built(recipe, *overrides)
    weights = part_of(model, NegativeDistance).get_parameter("weights.weight")
    before = weights.detach().clone()
    first, last = losses(model)
    assert last < first / 2
    assert not torch.equal(weights, before)


def test_a_new_score_is_traced_with_its_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, "negative-distance", NegativeDistance)
    overrides = [*RECURRENT, "tokenizer.kind=word", "model.attention=negative-distance"]
    found = trace_recipe(find_recipe("luong", overrides=overrides), "to be or not")
    formulas = {array.name: array.formula for array in found.arrays}
    assert formulas["score"] == "e_ij = -|W s_i - h_j|^2"


def test_a_new_score_on_edges_is_a_class_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = GraphModelSettings(
        score="edge-distance", heads=2, head_dim=3, dropout=0, attention_dropout=0
    )
    with pytest.raises(SettingsError, match=r"Unknown model\.score"):
        build_graph_classifier(settings, features=4, classes=2)
    monkeypatch.setitem(EDGE_SCORES, "edge-distance", EdgeDistance)
    torch.manual_seed(1)
    model = build_graph_classifier(settings, features=4, classes=2)
    nodes = torch.arange(6)
    edges = Edges.sort(
        torch.cat([nodes, nodes]), torch.cat([nodes, nodes.roll(1)]), sources=6, targets=6
    )
    graph = GraphInput(torch.randn(6, 4), edges, torch.zeros(12, dtype=torch.long))
    labels = nodes % 2
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    found = []
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(graph).logits, labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        found.append(float(loss.detach()))
    assert found[-1] < found[0] / 2


@pytest.mark.parametrize(
    ("kind", "name", "parameter"),
    [(Parity, "parity", "vectors"), (LearnedDecay, "learned-decay", "weights")],
)
def test_a_new_kind_of_positions_is_a_class_and_a_line(
    kind: Any, name: str, parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    overrides = [*TRANSFORMER, f"model.positions={name}"]
    with pytest.raises(SettingsError, match=r"Unknown model\.positions"):
        built("transformer-tiny", *overrides)
    monkeypatch.setitem(POSITIONS, name, kind)
    model = built("transformer-tiny", *overrides)
    weights = part_of(model, kind).get_parameter(parameter)
    before = weights.detach().clone()
    first, last = losses(model)
    assert last < first / 2
    assert not torch.equal(weights, before)
    with pytest.raises(SettingsError, match="belong to a trained run"):
        positions_of(name)
    if kind is LearnedDecay:
        with pytest.raises(SettingsError, match="has no scores that"):
            built("transformer-tiny", *overrides, "model.kernel=linear")


def test_new_positions_without_parameters_have_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    class FixedDecay(LearnedDecay):
        def __init__(self, heads: int):
            super().__init__(heads)
            self.weights.requires_grad_(False)
            weights = self.weights.data
            del self.weights
            self.register_buffer("weights", weights)

        @classmethod
        def build(cls, options: PositionOptions) -> FixedDecay:
            return cls(options.heads)

    monkeypatch.setitem(POSITIONS, "fixed-decay", FixedDecay)
    drawn = positions_of("fixed-decay")
    assert isinstance(drawn, PositionCurves)
    assert drawn.curves["head 0"][:2] == [0.0, -1.0]
    assert isinstance(positions_of("sinusoidal"), PositionVectors)


MOST_LINES, LONGEST_FUNCTION = 400, 60
SOURCE = Path(regard.__file__).parent


def _trees() -> dict[str, ast.Module]:
    files = sorted(SOURCE.rglob("*.py"))
    return {f.relative_to(SOURCE).as_posix(): ast.parse(f.read_text("utf-8")) for f in files}


def _type_names(tree: ast.Module, file: str) -> Iterator[tuple[str, str]]:
    """Yield each class and each name that is given to a type, with what it stands for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, f"{file}:{node.lineno}"
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = ast.unparse(node.value)
            option = file.startswith("cli/") and value.startswith("Annotated[")
            name = target.id if isinstance(target, ast.Name) else ""
            is_type = re.fullmatch(r"[A-Z][A-Za-z]*[a-z]", name) and "TypeVar(" not in value
            if is_type and not option:
                yield name, value


def test_no_name_of_a_class_or_type_means_two_things() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for file, tree in _trees().items():
        for name, meaning in _type_names(tree, file):
            found[name].add(meaning)
    assert {name: meanings for name, meanings in found.items() if len(meanings) > 1} == {}


def test_files_and_functions_are_of_a_readable_size() -> None:
    files = {f.name: len(f.read_text("utf-8").splitlines()) for f in SOURCE.rglob("*.py")}
    assert {name: lines for name, lines in files.items() if lines > MOST_LINES} == {}
    long = {}
    for name, tree in _trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                # The signature of a command declares its options, which may be many.
                first = node.body[0].lineno if name.startswith("cli/") else node.lineno
                if (node.end_lineno or first) - first + 1 > LONGEST_FUNCTION:
                    long[f"{name}: {node.name}"] = (node.end_lineno or first) - first + 1
    assert long == {}


DEVICES = {"cpu", "cuda", "mps", "xpu"}


def test_only_one_file_names_devices() -> None:
    """Whatever computes asks `compute.device`, so that a device torch knows needs no change."""
    source = Path(regard.__file__).parent
    naming = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.split(":")[0] in DEVICES
    }
    # Exchanges between processes have a library for each kind of device, and sixteen bits are
    # chosen by hand on a processor alone.
    assert naming <= {f"compute/{name}.py" for name in ("device", "group", "precision")}
