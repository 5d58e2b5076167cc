"""Blocks of the guide as HTML, the same for the documentation site and for local pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from json import dumps

from regard.lectures.figures import Figures
from regard.lectures.guide import BLOCK, FigureBlock, Page, figure_of
from regard.lectures.notation import ROLE, equation_html, switch_html, table_html
from regard.pictures.svg import COLOURS, inline_svg

SWITCH, TABLE = "<!-- notation switch -->", "<!-- notation table -->"
READING = ("step", "heat-map")
BLANK = re.compile(r"\n\s*\n")  # in Markdown it would end the picture

Drawing = Callable[[FigureBlock, dict[str, str], int], str]
"""Returns the HTML of a figure with these numbers; it is the frame of this number."""


def with_blocks(page: Page, figure_html: Callable[[FigureBlock], str]) -> str:
    """Return a page's Markdown with its equations and figures as HTML."""

    def block(kind: str, text: str) -> str:
        if kind == "equation":
            return equation_html(text)
        return figure_html(figure_of(text, page=page.name))

    switched = any(ROLE.search(tex) for tex in page.equations)
    text = BLOCK.sub(lambda found: f"\n{block(found[1], found[2])}\n", page.markdown)
    if switched and SWITCH not in text:
        first, _, rest = text.partition("\n")
        text = f"{first}\n\n{SWITCH}\n{rest}"
    return text.replace(SWITCH, f"<p>{switch_html()}</p>").replace(TABLE, table_html())


def figure_frame(
    figure: FigureBlock, figures: Figures, draw: Drawing, *, live: str | None = None
) -> str:
    """Return a figure with its sliders and the command that draws it.

    `draw` returns the picture for given numbers. With `live`, an address, the page asks a server
    for every place of a slider; otherwise it holds one frame for each.
    """
    numbers = dict(figure.numbers)
    sliders = "".join(
        f'<label>{escape(key)} <input type="range" name="{escape(key)}" aria-label="{escape(key)}" '
        f'min="0" max="{len(values) - 1}" step="1" value="{values.index(numbers[key])}" '
        f'data-values="{escape(" ".join(values))}"><output>{escape(numbers[key])}</output></label>'
        for key, values in figure.sliders.items()
    )
    frames = ""
    if live is None and sliders:
        frames = "".join(
            f'<template data-frame="{escape(_changed(figure, one))}" '
            f'data-command="{escape(figures.command(figure.name, one))}">'
            f"{draw(figure, one, number)}</template>"
            for number, one in enumerate(figure.frames)
        )
    kinds = f"lecture-figure {'diagram ' * (figure.name == 'diagram')}"
    kinds += "reads" if figure.name in READING else ""
    where = f' data-live="{live}" data-numbers="{escape(dumps(numbers))}"' if live else ""
    return (
        f'<figure class="{kinds.strip()}"{where}>'
        + (f'<div class="lecture-sliders">{sliders}</div>' if sliders else "")
        + f'<div class="lecture-drawing">{draw(figure, numbers, 0)}</div>'
        f'<p class="lecture-problem" role="alert" hidden></p>'
        f'<p><code class="lecture-command">{escape(figures.command(figure.name, numbers))}</code>'
        f"</p>{frames}</figure>"
    )


def _changed(figure: FigureBlock, numbers: dict[str, str]) -> str:
    """Return the number that a frame has changed, as strength=4; the first frame has none."""
    changed = [f"{key}={value}" for key, value in numbers.items() if value != figure.numbers[key]]
    return "".join(changed)


def inline_picture(svg: str, *, name: str, numbers: dict[str, str], prefix: str) -> str:
    """Return a picture for a page, which takes the page's colours."""
    settings = ", ".join(f"{key} = {value}" for key, value in numbers.items())
    label = f"{name.replace('-', ' ')}{f' ({settings})' if settings else ''}"
    drawn = BLANK.sub("\n", inline_svg(svg, prefix=prefix, label=label))
    return f'<div style="{COLOURS}">{drawn}</div>'
