"""The one way from a drawing to a file: same fonts, same bytes, no global state left behind."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure

from regard.pictures.colours import FAINT, INK, RULE
from regard.pictures.written import unknown_suffix, write_bytes

Format: TypeAlias = Literal["png", "svg", "pdf"]
FORMATS: dict[str, Format] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}

# Matplotlib brings DejaVu Sans with it: Latin, Greek, Cyrillic and more, the same everywhere.
OWN_FAMILY = "DejaVu Sans"
# Where a character is not in it, the first of these that is installed and has it.
OTHER_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Tamil",
    "Noto Sans Thai",
    "Nirmala UI",
    "Leelawadee UI",
    "Arial Unicode MS",
    "Noto Sans",
    "Noto Sans NKo",
    "Noto Emoji",
    "Symbola",
    "Unifont",
)

# Matplotlib's settings and warning filters are global, so one picture is drawn at a time.
_one_at_a_time = threading.Lock()


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Write a figure to a PNG, SVG or PDF file, by the suffix of its name."""
    format = FORMATS.get(path.suffix.lower())
    if format is None:
        raise unknown_suffix(path, tuple(FORMATS))
    write_bytes(path, render(draw, format))


def figure_svg(draw: Callable[[], Figure]) -> str:
    """Return a figure as SVG text on a transparent ground, to stand in a page."""
    return render(draw, "svg", ground="none").decode("utf-8")


def figure_in_full(draw: Callable[[], Figure]) -> Figure:
    """Return a figure whose page is as large as what was drawn, labels included, for a notebook."""
    with _one_at_a_time, _settings("png"):
        figure = draw()
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


def render(draw: Callable[[], Figure], format: Format, *, ground: str = "white") -> bytes:
    """Return the bytes of a figure; the same figure always gives the same bytes."""
    # Each format has its own name for the date that must not be in the file.
    undated: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None},
    }
    buffer = io.BytesIO()
    with _one_at_a_time, _settings(format):
        draw().savefig(
            buffer,
            format=format,
            dpi=160,
            facecolor=ground,
            bbox_inches="tight",
            pad_inches=0.12,
            metadata=undated[format],
        )
    return buffer.getvalue()


@contextmanager
def _settings(format: Format) -> Iterator[None]:
    """Draw with our settings instead of the user's matplotlibrc, and put the old ones back."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.family": _families(format),
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
        # A script that no installed font has is drawn as boxes; that must not stop a run.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def _families(format: Format) -> list[str]:
    """Return the fonts to look a character up in, first to last."""
    if format == "svg":  # who shows it has fallbacks of their own
        return ["sans-serif"]
    return [OWN_FAMILY, *_installed_families()]


@cache
def _installed_families() -> tuple[str, ...]:
    installed = set(font_manager.get_font_names())
    return tuple(family for family in OTHER_FAMILIES if family in installed)
