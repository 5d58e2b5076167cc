"""What nodes attend to, as pictures and tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import numpy as np
from jaxtyping import Float

from regard.base.errors import RegardError, SettingsError
from regard.pictures.graph import Neighbour, draw_embeddings, draw_neighbourhood
from regard.tasks.looking import LookRequest, View
from regard.tasks.node_classification import model


def look_at_node(
    loaded: model.LoadedGraphClassifier, node: int, *, layer: int = 0, head: int | None = None
) -> list[Neighbour]:
    """Return what a node attends to, most attended first: one head, or the mean of all."""
    own = loaded.attention(layer).of(node)
    weights = _by_edge(own, head)
    order = np.argsort(-weights, kind="stable")
    return [_neighbour(loaded, int(own.source[i]), float(weights[i])) for i in order]


def draw_node(
    loaded: model.LoadedGraphClassifier,
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
    loaded: model.LoadedGraphClassifier, path: Path, *, method: Literal["pca", "t-sne"] = "pca"
) -> None:
    """Draw all nodes by the features of the last hidden layer, coloured by their class."""
    draw_embeddings(
        loaded.embeddings(),
        labels=loaded.graph.labels,
        classes=loaded.graph.classes,
        path=path,
        method=method,
    )


def _by_edge(own: model.EdgeAttention, head: int | None) -> Float[np.ndarray, "edges"]:
    heads = own.weights.shape[1]
    if head is None:
        return np.asarray(own.weights.mean(axis=1))
    if not 0 <= head < heads:
        raise RegardError(f"There is no head {head}; the heads are 0 to {heads - 1}.")
    return np.asarray(own.weights[:, head])


def _neighbour(loaded: model.LoadedGraphClassifier, node: int, weight: float) -> Neighbour:
    return Neighbour(loaded.graph.name(node), int(loaded.predictions[node]), weight)


PRINTED_NEIGHBOURS = 20
TABLES = (".tsv", ".npz")


def edges_view(request: LookRequest) -> View:
    """Write the attention of all edges."""
    loaded = model.load(request.run)
    remedy = (
        "Name a node with --node, or write the attention of all edges with --out FILE.tsv "
        "(or .npz)."
    )

    def save(path: Path) -> None:
        if path.suffix.lower() not in TABLES:
            raise SettingsError(remedy)
        loaded.attention(request.layer or 0).save(path, graph=loaded.graph)

    return View(record={}, save=save, remedy=remedy)


def classes_view(request: LookRequest) -> View:
    """Draw all nodes by their features."""
    remedy = "--embeddings takes pca or t-sne, and a picture with --out."
    if request.embeddings not in ("pca", "t-sne"):
        raise SettingsError(remedy)
    loaded, method = model.load(request.run), cast(Literal["pca", "t-sne"], request.embeddings)
    return View(
        record={}, save=lambda path: draw_classes(loaded, path, method=method), remedy=remedy
    )


def node_view(request: LookRequest) -> View:
    """Show what a node attends to."""
    loaded, layer = model.load(request.run), request.layer or 0
    node = request.node or ""
    number = loaded.graph.find(node)
    seen = look_at_node(loaded, number, layer=layer, head=request.head)
    classes = loaded.graph.classes
    predicted = classes[loaded.predictions[number]]

    def save(path: Path) -> None:
        if path.suffix.lower() in TABLES:
            loaded.attention(layer).of(number).save(path, graph=loaded.graph)
        else:
            draw_node(loaded, number, path, layer=layer, head=request.head)

    text = f"node {node}: class {predicted}\n{neighbour_lines(seen, classes)}"
    return View(
        record={
            "node": node,
            "predicted": predicted,
            "attends_to": [
                {"node": each.name, "predicted": classes[each.label], "weight": each.weight}
                for each in seen
            ],
        },
        save=save,
        text=text,
        shown=lambda width: text,
    )


def neighbour_lines(seen: Sequence[Neighbour], classes: Sequence[str]) -> str:
    """Return the most attended neighbours as lines of text with bars."""
    most = max((each.weight for each in seen), default=1.0)
    lines = [
        f"  {each.weight:.4f} {'█' * round(20 * each.weight / most):<20} "
        f"{each.name} ({classes[each.label]})"
        for each in seen[:PRINTED_NEIGHBOURS]
    ]
    if rest := seen[PRINTED_NEIGHBOURS:]:
        share = sum(each.weight for each in rest)
        lines.append(f"  {share:.4f} on {len(rest)} more (all with --json or --out F.tsv)")
    return "\n".join(lines)
