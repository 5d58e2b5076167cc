"""The one way from a drawing to a file: same fonts, same bytes, no global state left behind."""

from __future__ import annotations

import io
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import matplotlib
from matplotlib.figure import Figure

from regard.pictures.colours import FAINT, INK, RULE
from regard.pictures.fonts import (
    OWN_FAMILY,
    UnreadableScriptWarning,
    families_with,
    preferred_families,
    unreadable,
)
from regard.pictures.records import DATA_SUFFIXES, Records, write_records
from regard.pictures.scripts import with_direction
from regard.pictures.written import unknown_suffix, write_bytes

Format: TypeAlias = Literal["png", "svg", "pdf"]
Made = TypeVar("Made")
FORMATS: dict[str, Format] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}

# What matplotlib says of a character that no font has, and how text ends in its SVG files.
MISSING = re.compile(r"Glyph (\d+) .*missing from")
SVG_TEXT = re.compile(r">([^<>]+)</text>")

# Matplotlib's settings and warning filters are global, so one picture is drawn at a time.
_one_at_a_time = threading.Lock()


def save_figure(
    draw: Callable[[], Figure], path: Path, *, data: Callable[[], Records] | None = None
) -> None:
    """Write a figure as PNG, SVG or PDF, or its data as CSV or JSON, by the suffix of the file."""
    suffix = path.suffix.lower()
    if data is not None and suffix in DATA_SUFFIXES:
        write_records(data(), path)
        return
    if suffix not in FORMATS:
        raise unknown_suffix(path, (*FORMATS, *(DATA_SUFFIXES if data is not None else ())))
    write_bytes(path, render(draw, FORMATS[suffix]))


def figure_svg(draw: Callable[[], Figure]) -> str:
    """Return a figure as SVG text on a transparent ground, to stand in a page."""
    return render(draw, "svg", ground="none").decode("utf-8")


def figure_in_full(draw: Callable[[], Figure]) -> Figure:
    """Return a figure whose page is as large as what was drawn, labels included, for a notebook."""
    return _with_fonts(lambda: _in_full(draw()), "png")


def render(draw: Callable[[], Figure], format: Format, *, ground: str = "white") -> bytes:
    """Return the bytes of a figure; the same figure always gives the same bytes.

    A script that no installed font has is drawn as boxes, with a warning that names it.
    """
    content = _with_fonts(lambda: _bytes_of(draw(), format, ground), format)
    if format != "svg":
        return content
    # Who shows an SVG file takes every text for one that runs from left to right.
    text = content.decode("utf-8")
    return SVG_TEXT.sub(lambda found: f">{with_direction(found[1])}</text>", text).encode("utf-8")


def _bytes_of(figure: Figure, format: Format, ground: str) -> bytes:
    # Each format has its own name for the date that must not be in the file.
    undated: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None},
    }
    buffer = io.BytesIO()
    figure.savefig(
        buffer,
        format=format,
        dpi=160,
        facecolor=ground,
        bbox_inches="tight",
        pad_inches=0.12,
        metadata=undated[format],
    )
    return buffer.getvalue()


def _in_full(figure: Figure) -> Figure:
    needed = figure.get_tightbbox().padded(0.12)  # inches
    old_width, old_height = figure.get_size_inches()
    figure.set_size_inches(needed.width, needed.height)
    for axes in figure.axes:
        place = axes.get_position(original=True)
        left, bottom = place.x0 * old_width - needed.x0, place.y0 * old_height - needed.y0
        width, height = place.width * old_width, place.height * old_height
        axes.set_position(
            (
                left / needed.width,
                bottom / needed.height,
                width / needed.width,
                height / needed.height,
            )
        )
    return figure


def _with_fonts(make: Callable[[], Made], format: Format) -> Made:
    """Draw, and where a character is missing draw again with the installed fonts that have it."""
    if format == "svg":  # who shows it has fallbacks of their own
        return _made(make, ["sans-serif"])[0]
    families = preferred_families()
    made, missing = _made(make, families)
    if missing and (others := families_with(missing)):
        made, missing = _made(make, [*families, *others])
    if missing:
        warnings.warn(unreadable(missing), UnreadableScriptWarning, stacklevel=3)
    return made


def _made(make: Callable[[], Made], families: list[str]) -> tuple[Made, frozenset[int]]:
    """Return what was made with these fonts, and the characters that none of them has."""
    with _one_at_a_time, _settings(families), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        made = make()
    missing = set()
    for warning in heard:
        if found := MISSING.match(str(warning.message)):
            missing.add(int(found[1]))
        else:  # not ours to hide
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return made, frozenset(missing)


@contextmanager
def _settings(families: list[str]) -> Iterator[None]:
    """Draw with our settings instead of the user's matplotlibrc, and put the old ones back."""
    search = logging.getLogger("matplotlib.font_manager")
    level = search.level
    with matplotlib.rc_context():
        search.setLevel(logging.ERROR)  # that a font has no bold letters is nothing to report
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.family": families,
                "font.sans-serif": [OWN_FAMILY],
                "font.size": 10,
                "text.color": INK,
                "text.parse_math": False,  # a word may hold dollars
                "axes.facecolor": "none",  # the ground of a page shows through
                "axes.edgecolor": FAINT,
                "axes.labelcolor": INK,
                "axes.titlecolor": INK,
                "axes.linewidth": 0.8,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.titlelocation": "left",
                "axes.titlesize": 11,
                "axes.titleweight": "bold",
                "axes.axisbelow": True,
                "grid.color": RULE,
                "grid.linewidth": 0.8,
                "xtick.color": FAINT,
                "ytick.color": FAINT,
                "xtick.labelcolor": INK,
                "ytick.labelcolor": INK,
                "legend.frameon": False,
                "svg.fonttype": "none",  # text stays text: any script, and it can be searched
                "svg.hashsalt": "regard",
                "pdf.fonttype": 42,
            }
        )
        try:
            yield
        finally:
            search.setLevel(level)
