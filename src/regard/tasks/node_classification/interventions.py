"""Interventions in a graph: heads off, neighbours hidden, the weights of a node set by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from regard.attention.edges import Edges
from regard.attention.graph import GraphAttention
from regard.attention.probe import Change, Probe, Site, in_turn
from regard.base.errors import RegardError, SettingsError
from regard.base.shapes import Tensor
from regard.compute.device import beside
from regard.models import interventions as changes
from regard.models.interventions import GRAPH, Place
from regard.tasks.interventions import (
    Effect,
    InterventionRequest,
    InterventionSubject,
    Outcome,
    Words,
)
from regard.tasks.node_classification.model import LoadedGraphClassifier


@dataclass(frozen=True, eq=False)
class HideNode:
    """Nobody attends to a node; the other neighbours share its weight."""

    node: int
    edges: Edges
    place: Place = GRAPH

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the weights [heads, edges] without those of the edges from the node."""
        if name != "edge_weights" or not self.place.covers(site):
            return value
        changed, heads = value.clone(), self.place.heads
        rows = changed[heads]
        rows[:, self.edges.source == self.node] = 0
        totals = rows.new_zeros(len(rows), self.edges.targets)
        totals = totals.index_add(1, self.edges.target, rows)[:, self.edges.target]
        touched = (self.edges.source == self.node).nonzero()[:, 0]
        near = torch.isin(self.edges.target, self.edges.target[touched]) & (totals > 0)
        changed[heads] = torch.where(near, rows / totals.where(near, 1.0), rows)
        return changed


@dataclass(frozen=True, eq=False)
class ForceNode:
    """A node gives these weights to its neighbours, one for each edge that ends in it."""

    node: int
    weights: tuple[float, ...]
    edges: Edges
    place: Place = GRAPH

    def __call__(self, site: Site, name: str, value: Tensor) -> Tensor:
        """Return the weights [heads, edges] with those of the node's edges replaced."""
        if name != "edge_weights" or not self.place.covers(site):
            return value
        changed = value.clone()
        first, last = self.edges.starts[self.node : self.node + 2].tolist()
        changed[self.place.heads, first:last] = value.new_tensor(self.weights)
        return changed


def intervene_in_graph(
    loaded: LoadedGraphClassifier, text: str, request: InterventionRequest
) -> Effect:
    """Classify a node as it is and with interventions; the steps and words are nodes."""
    described = request.described()
    request.refuse("mean", "skip", "move", "swap", "patch", task="a graph")
    layers = [part for part in loaded.model.modules() if isinstance(part, GraphAttention)]
    if not layers:
        raise RegardError("This model has no attention to intervene in.")
    node = loaded.graph.find(text.strip())
    wanted = _changes(loaded, node, request, layers)
    before, after = (_classes(loaded, node, some) for some in ([], wanted))
    kept = dict(zip(after.tokens, after.probabilities, strict=True))
    return Effect(text, described, before, after, tuple(kept[name] for name in before.tokens))


def _changes(
    loaded: LoadedGraphClassifier,
    node: int,
    request: InterventionRequest,
    layers: Sequence[GraphAttention],
) -> list[Change]:
    edges, graph = loaded.tensors.edges, loaded.graph
    there = beside(loaded.model, edges)
    most = max(layer.heads for layer in layers)
    nothing = Words((), ())
    subject = InterventionSubject(
        source=nothing,
        target=nothing,
        part="graph",
        parts={"graph": (len(layers), most)},
        states=("graph", "features"),
        means=dict,
        record=lambda other: _no_states(),
    )
    found: list[Change] = [changes.Off(subject.place(each, part="graph")) for each in request.off]
    for each in request.hide:
        what, place = subject.split(each, part="graph")
        found.append(HideNode(graph.find(what.strip()), there, place))
    for each in request.force:
        what, place = subject.split(each, part="graph")
        neighbours, equals, share = what.rpartition("=")
        at, wanted = (neighbours, share) if equals else (str(node), what)
        target = graph.find(at.strip())
        first, last = edges.starts[target : target + 2].tolist()
        near = edges.source[first:last].tolist()
        other = graph.find(wanted.strip())
        if other not in near:
            names = ", ".join(graph.name(number) for number in near[:20])
            raise SettingsError(
                f"{graph.name(other)} is no neighbour of {graph.name(target)}: it has {names}."
            )
        weights = tuple(float(number == other) for number in near)
        found.append(ForceNode(target, weights, there, place))
    return found


def _no_states() -> Any:
    raise SettingsError("The states of a graph cannot be patched.")


@torch.inference_mode()
def _classes(loaded: LoadedGraphClassifier, node: int, wanted: Sequence[Change]) -> Outcome:
    """Return the class of a node, and all classes with their probabilities, highest first."""
    output = loaded.model(beside(loaded.model, loaded.tensors), probe=Probe(in_turn(*wanted)))
    chances = output.logits[node].softmax(dim=0)
    order = chances.argsort(descending=True).tolist()
    names = tuple(loaded.graph.classes[number] for number in order)
    return Outcome(names[0], names, tuple(chances[order].tolist()))
