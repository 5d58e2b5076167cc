"""The report of one or several runs: one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from regard.base.errors import RegardError
from regard.pictures import labels
from regard.pictures.canvas import Value, write_bytes
from regard.pictures.svg import escaped, inline_svg

MANY_WORDS = 24


@dataclass(frozen=True)
class Heading:
    """Begins a new part of the report."""

    text: str

    def to_html(self, number: int) -> str:
        """Return the heading; its number in the report is a target for links."""
        return f'<h2 id="part-{number}">{escaped(self.text)}</h2>'


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str
    small: bool = False

    def to_html(self, number: int) -> str:
        """Return the paragraph."""
        kind = ' class="small"' if self.small else ""
        return f"<p{kind}>{escaped(self.text)}</p>"


@dataclass(frozen=True)
class Table:
    """A table; numbers are aligned to the right, floats have two decimals, None is a dash."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Value]]

    def to_html(self, number: int) -> str:
        """Return the table, or refuse a row that does not fit its header."""
        for row in self.rows:
            if len(row) != len(self.header):
                raise RegardError(
                    f"table '{self.caption}': a row of {len(row)} values does not fit "
                    f"a header of {len(self.header)}."
                )
        numeric = [
            any(_is_number(row[column]) for row in self.rows) for column in range(len(self.header))
        ]
        head = "".join(
            f'<th scope="col"{_side(right)}>{escaped(name)}</th>'
            for name, right in zip(self.header, numeric, strict=True)
        )
        body = "\n".join(
            "<tr>"
            + "".join(
                f"<td{_side(right)}>{_shown(value)}</td>"
                for value, right in zip(row, numeric, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return (
            f'<div class="table" role="group" aria-label="{escaped(self.caption)}">'
            f"<table><caption>{escaped(self.caption)}</caption>\n"
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )


@dataclass(frozen=True)
class Picture:
    """A drawn picture as SVG text (see the functions that end in `_svg`)."""

    caption: str
    svg: str

    def to_html(self, number: int) -> str:
        """Return the picture; its number makes its ids unique in the report."""
        drawn = inline_svg(
            self.svg, prefix=f"part-{number}-", label=labels.plain_text(self.caption)
        )
        return (
            f'<figure class="picture"><figcaption>{escaped(self.caption)}</figcaption>\n'
            f"{drawn}</figure>"
        )


@dataclass(frozen=True)
class Passage:
    """A text of several lines, shown verbatim."""

    caption: str
    text: str

    def to_html(self, number: int) -> str:
        """Return the text with its line breaks."""
        lines = "\n".join(escaped(line) for line in self.text.splitlines())
        return (
            f'<figure class="passage"><figcaption>{escaped(self.caption)}</figcaption>\n'
            f'<pre dir="auto">{lines}</pre></figure>'
        )


@dataclass(frozen=True)
class Sample:
    """A sentence with its reference and the output of each named model.

    `note` is shown next to the source, for example the score by which the sentence was chosen.
    """

    source: str
    reference: str
    outputs: Mapping[str, str]
    note: str = ""


@dataclass(frozen=True)
class Samples:
    """Translations side by side; words that differ from the reference are marked."""

    rows: Sequence[Sample]

    def to_html(self, number: int) -> str:
        """Return a card for each sentence."""
        cards = "\n".join(self._card(row) for row in self.rows)
        return f'<div class="samples">\n{cards}\n</div>'

    def _card(self, row: Sample) -> str:
        note = f' <span class="note">{escaped(row.note)}</span>' if row.note else ""
        lines = [
            f'<dt>source</dt><dd class="source" dir="auto">{escaped(row.source)}{note}</dd>',
            f'<dt>reference</dt><dd dir="auto">{escaped(row.reference)}</dd>',
        ]
        for name, output in row.outputs.items():
            shown = _compared(output, row.reference)
            lines.append(f'<dt>{escaped(name)}</dt><dd dir="auto">{shown}</dd>')
        return f'<div class="sample"><dl>{"".join(lines)}</dl></div>'


@dataclass(frozen=True)
class HoverMap:
    """A heat map in which pointing at a target word highlights what it attends to."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Float[np.ndarray, "target source"]
    caption: str

    def to_html(self, number: int) -> str:
        """Return both sentences and the grid; both are readable without the script too."""
        drawn = labels.labelled_map(self.weights, source=self.source, target=self.target)
        source = [escaped(labels.readable_label(word)) for word in drawn.source]
        target = [escaped(labels.readable_label(word)) for word in drawn.target]
        rounded = [[round(weight, 4) for weight in row] for row in drawn.weights.tolist()]
        many = " many" if max(len(source), len(target)) > MANY_WORDS else ""
        return (
            f'<figure class="hover-map" data-weights="{html.escape(json.dumps(rounded))}">\n'
            f"<figcaption>{escaped(self.caption)}</figcaption>\n"
            f"{_line('source', _source_words(source), _direction(drawn.source))}\n"
            f"{_line('target', _target_words(target), _direction(drawn.target))}\n"
            '<p class="reading" aria-live="polite">Point at a target word, or move to it with '
            "the Tab key, to see what it attends to.</p>\n"
            f'<div class="grid{many}" role="group" aria-label="heat map"{_direction(drawn.source)}>'
            f"{_grid(source, target, rounded, drawn.limit)}</div>\n"
            f'<p class="scale">weight 0 <span></span> {drawn.limit:.2g}</p>\n</figure>'
        )


@dataclass(frozen=True)
class FilmStrip:
    """Heat maps of the same words at several times, with a slider to go through them."""

    source: Sequence[str]
    target: Sequence[str]
    frames: Sequence[tuple[str, Sequence[Sequence[float]]]]
    """What each frame is called, and its weights."""
    caption: str

    def to_html(self, number: int) -> str:
        """Return the last frame, which is readable without the script too, and all as data."""
        source, target = ([escaped(word) for word in side] for side in (self.source, self.target))
        data = [
            {"name": name, "weights": [[round(float(w), 3) for w in row] for row in weights]}
            for name, weights in self.frames
        ]
        last = data[-1]
        return (
            f'<figure class="film-strip" data-frames="{html.escape(json.dumps(data))}">\n'
            f"<figcaption>{escaped(self.caption)}</figcaption>\n"
            f'<p><input type="range" min="0" max="{len(data) - 1}" value="{len(data) - 1}" '
            f'aria-label="frame"> <output>{escaped(str(last["name"]))}</output></p>\n'
            '<div class="grid" role="group" aria-label="heat map">'
            f"{_grid(source, target, self.frames[-1][1], 1.0)}</div>\n</figure>"
        )


@dataclass(frozen=True)
class Fold:
    """Sections that are hidden until the reader opens them."""

    summary: str
    sections: Sequence[Section]

    def to_html(self, number: int) -> str:
        """Return the sections under a summary; their numbers begin with that of the fold."""
        inside = "\n".join(
            section.to_html(1000 * number + place)
            for place, section in enumerate(self.sections, start=1)
        )
        return f"<details><summary>{escaped(self.summary)}</summary>\n{inside}\n</details>"


Section: TypeAlias = (
    Heading | Paragraph | Table | Picture | Passage | Samples | HoverMap | FilmStrip | Fold
)


def _line(side: str, words: str, direction: str) -> str:
    return f'<div class="words"><span class="side">{side}</span><div{direction}>{words}</div></div>'


def _direction(words: Sequence[str]) -> str:
    """Return the attribute that makes columns run from right to left, if their words do."""
    return ' dir="rtl"' if labels.reads_right_to_left(words) else ""


def _source_words(words: Sequence[str]) -> str:
    return "".join(f'<span class="word source-word" dir="auto">{word}</span>' for word in words)


def _target_words(words: Sequence[str]) -> str:
    return "".join(
        f'<button type="button" class="word" data-target="{row}" dir="auto">{word}</button>'
        for row, word in enumerate(words)
    )


def _grid(
    source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[float]], limit: float
) -> str:
    """Return the heat map; the style sheet gets the weight of a cell as `--w`."""
    head = "".join(f'<th><span dir="auto"{_posture(word)}>{word}</span></th>' for word in source)
    rows = "\n".join(
        f'<tr data-target="{row}"><th><bdi>{word}</bdi></th>'
        + "".join(
            f'<td style="--w:{min(1.0, max(0.0, weight / limit)):.3g}"></td>'
            for weight in weights[row]
        )
        + "</tr>"
        for row, word in enumerate(target)
    )
    return (
        '<table aria-hidden="true">'  # screen readers use the words above
        f"<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    )


def _posture(word: str) -> str:
    """Return the attribute that keeps Chinese and similar scripts upright above a column."""
    return ' class="upright"' if any(labels.is_wide(letter) for letter in word) else ""


def _compared(output: str, reference: str) -> str:
    """Return an output with the words marked that differ from its reference."""
    words, expected = output.split(), reference.split()
    if words == expected:
        return f'{escaped(output)} <span class="right" title="as the reference">✓</span>'
    if not words:
        return "<mark>(nothing)</mark>"
    parts = []
    matcher = SequenceMatcher(None, expected, words, autojunk=False)
    for change, _, _, start, end in matcher.get_opcodes():
        text = escaped(" ".join(words[start:end]))
        if text:
            parts.append(text if change == "equal" else f"<mark>{text}</mark>")
    return " ".join(parts)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Value) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if _is_number(value) else escaped(str(value))


def _side(right: bool) -> str:
    return ' class="number"' if right else ""


FEWEST_LINKED = 3


def write_page(path: Path, *, title: str, sections: Sequence[Section]) -> None:
    """Write the sections, in their order, as one self-contained HTML file."""
    write_bytes(path, report_html(title=title, sections=sections).encode("utf-8"))


def report_html(*, title: str, sections: Sequence[Section]) -> str:
    """Return the page with its style and script; it cannot load anything."""
    body = "\n".join(section.to_html(number) for number, section in enumerate(sections, start=1))
    style, script = _part("report.css"), _part("report.js")
    # The browser enforces it: only this script runs, and nothing is fetched.
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{escaped(title)}</h1>
{_contents(sections)}
{body}
<footer>Made with Regard. This file needs no network.</footer>
</main>
<script>{script}</script>
</body>
</html>
"""


def _contents(sections: Sequence[Section]) -> str:
    """Return links to the headings of a report that has several."""
    headings = [
        f'<a href="#part-{number}">{escaped(section.text)}</a>'
        for number, section in enumerate(sections, start=1)
        if isinstance(section, Heading)
    ]
    if len(headings) < FEWEST_LINKED:
        return ""
    return f'<nav aria-label="Contents">{" ".join(headings)}</nav>'


def _part(name: str) -> str:
    """Return the text of a file in this package."""
    return resources.files("regard.pictures").joinpath(name).read_text(encoding="utf-8")
