"""A trained node classifier as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float

from regard.base.errors import RegardError
from regard.pictures.graph import Neighbour, draw_embeddings, draw_neighbourhood
from regard.recipes.loaded_graph import EdgeAttention, LoadedGraphClassifier


def look_at_node(
    loaded: LoadedGraphClassifier, node: int, *, layer: int = 0, head: int | None = None
) -> list[Neighbour]:
    """Return what a node attends to, most attended first: one head, or the mean of all."""
    own = loaded.attention(layer).of(node)
    weights = _by_edge(own, head)
    order = np.argsort(-weights, kind="stable")
    return [_neighbour(loaded, int(own.source[i]), float(weights[i])) for i in order]


def draw_node(
    loaded: LoadedGraphClassifier,
    node: int,
    path: Path,
    *,
    layer: int = 0,
    head: int | None = None,
) -> None:
    """Draw the neighbourhood of a node; colours are the classes that the model predicts."""
    seen = look_at_node(loaded, node, layer=layer, head=head)
    name = loaded.graph.name(node)
    itself = [each for each in seen if each.name == name]
    others = [each for each in seen if each.name != name]
    centre = itself[0] if itself else _neighbour(loaded, node, 0.0)
    which = "mean of all heads" if head is None else f"head {head}"
    draw_neighbourhood(
        centre,
        others,
        classes=loaded.graph.classes,
        path=path,
        title=f"What node {name} attends to (layer {layer}, {which})",
    )


def draw_classes(
    loaded: LoadedGraphClassifier, path: Path, *, method: Literal["pca", "t-sne"] = "pca"
) -> None:
    """Draw all nodes by the features of the last hidden layer, coloured by their class."""
    draw_embeddings(
        loaded.embeddings(),
        labels=loaded.graph.labels,
        classes=loaded.graph.classes,
        path=path,
        method=method,
    )


def _by_edge(own: EdgeAttention, head: int | None) -> Float[np.ndarray, "edges"]:
    heads = own.weights.shape[1]
    if head is None:
        return np.asarray(own.weights.mean(axis=1))
    if not 0 <= head < heads:
        raise RegardError(f"There is no head {head}; the heads are 0 to {heads - 1}.")
    return np.asarray(own.weights[:, head])


def _neighbour(loaded: LoadedGraphClassifier, node: int, weight: float) -> Neighbour:
    return Neighbour(loaded.graph.name(node), int(loaded.predictions[node]), weight)
