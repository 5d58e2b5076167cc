"""Heads as pictures: all of them, those of a layer, one of them, or from one word."""

from __future__ import annotations

from pathlib import Path

from regard.base.errors import SettingsError
from regard.pictures.arcs import Gaze, draw_arcs, draw_sentence_arcs
from regard.pictures.head_grid import draw_head_grid, head_grid_svg
from regard.pictures.heat_map import write_map
from regard.pictures.report import Heading, HoverMap, Picture, Section, write_report
from regard.recipes.attention_heads import AttentionHeads


def draw_heads(
    heads: AttentionHeads, path: Path, *, layer: int | None = None, head: int | None = None
) -> None:
    """Draw all layers and heads, the heads of a layer, or one head.

    A file that ends in .html is a page with every head, in which one can point at each word.
    """
    heads.check(layer, head)
    if path.suffix.lower() == ".html":
        write_report(path, title=f"Every head: {heads.title}", sections=_sections(heads))
        return
    if head is None:
        chosen = heads.weights if layer is None else heads.weights[layer : layer + 1]
        draw_head_grid(
            chosen,
            source=heads.source,
            target=heads.target,
            path=path,
            first_layer=layer or 0,
            title=heads.title,
        )
        return
    if layer is None:
        raise SettingsError(f"Say of which layer: 0 to {len(heads.weights) - 1}.")
    seen = heads.of(layer, head)
    title = f"layer {layer}, head {head}"
    write_map(seen.weights, source=seen.source, target=seen.target, path=path, title=title)


def gazes(
    heads: AttentionHeads, word: str, *, layer: int | None = None, head: int | None = None
) -> list[Gaze]:
    """Return what a word looks at: in each layer on average, in each head of a layer, or in one."""
    heads.check(layer, head)
    place = heads.place(word)
    if layer is None:
        if head is not None:
            raise SettingsError(f"Say of which layer: 0 to {len(heads.weights) - 1}.")
        count = heads.weights.shape[1]
        means = heads.weights.mean(axis=1)
        return [
            Gaze(heads.source, place, each[place], f"layer {number}, mean of {count} heads")
            for number, each in enumerate(means)
        ]
    numbers = range(heads.weights.shape[1]) if head is None else [head]
    return [
        Gaze(
            heads.source,
            place,
            heads.weights[layer, number, place],
            f"layer {layer}, head {number}",
        )
        for number in numbers
    ]


def draw_word(
    heads: AttentionHeads,
    word: str,
    path: Path,
    *,
    layer: int | None = None,
    head: int | None = None,
) -> None:
    """Draw arcs from one word to the words that it looks at."""
    draw_arcs(gazes(heads, word, layer=layer, head=head), path)


def draw_sentence(
    heads: AttentionHeads, path: Path, *, layer: int | None = None, head: int | None = None
) -> None:
    """Draw the arcs of all words: of one head, or the mean of a layer's or of all heads."""
    if not heads.looks_at_itself:
        raise SettingsError("Only self-attention leads from word to word: choose its part.")
    seen = heads.of(layer, head)
    where = "all layers" if layer is None else f"layer {layer}"
    which = "mean of the heads" if head is None else f"head {head}"
    draw_sentence_arcs(seen.weights, words=seen.source, path=path, title=f"{where}, {which}")


def _sections(heads: AttentionHeads) -> list[Section]:
    sections: list[Section] = [
        Picture(
            "All layers and heads",
            head_grid_svg(heads.weights, source=heads.source, target=heads.target),
        )
    ]
    for layer, of_layer in enumerate(heads.weights):
        sections.append(Heading(f"Layer {layer}"))
        sections += [
            HoverMap(heads.source, heads.target, of_head, f"Layer {layer}, head {head}")
            for head, of_head in enumerate(of_layer)
        ]
    return sections
