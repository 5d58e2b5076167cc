"""What a language model looks at, as pictures: all heads at once, or one word of one head."""

from __future__ import annotations

from pathlib import Path

from regard.base.errors import SettingsError
from regard.pictures.arcs import Gaze, draw_arcs
from regard.pictures.head_grid import draw_head_grid, head_grid_svg
from regard.pictures.report import Heading, HoverMap, Picture, Section, write_report
from regard.recipes.loaded_language_model import HeadView


def draw_view(view: HeadView, path: Path, *, layer: int = 0, head: int | None = None) -> None:
    """Draw all layers and heads, or what the last symbol of a text looks at in one of them.

    A file that ends in .html is a page with every head, in which one can point at each symbol.
    """
    layers, heads = view.weights.shape[:2]
    if not 0 <= layer < layers or (head is not None and not 0 <= head < heads):
        raise SettingsError(
            f"There is no layer {layer} or head {head}: the model has {layers} layers of {heads} "
            "heads, counted from 0."
        )
    weights = view.weights.numpy()
    title = "".join(view.pieces).replace("␣", " ").replace("▁", " ")
    if path.suffix.lower() == ".html":
        write_report(path, title="Attention of every layer and head", sections=_sections(view))
    elif head is None:
        draw_head_grid(weights, source=view.pieces, target=view.pieces, path=path, title=title)
    else:
        last = len(view.pieces) - 1
        note = f"layer {layer}, head {head}"
        draw_arcs([Gaze(view.pieces, last, weights[layer, head, last], note)], path, title=title)


def _sections(view: HeadView) -> list[Section]:
    weights = view.weights.numpy()
    sections: list[Section] = [
        Picture(
            "All layers and heads",
            head_grid_svg(weights, source=view.pieces, target=view.pieces),
        )
    ]
    for layer, of_layer in enumerate(weights):
        sections.append(Heading(f"Layer {layer}"))
        sections += [
            HoverMap(view.pieces, view.pieces, of_head, f"Layer {layer}, head {head}")
            for head, of_head in enumerate(of_layer)
        ]
    return sections
