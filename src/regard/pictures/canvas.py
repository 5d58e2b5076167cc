"""From a figure to a file: colours, fonts and formats of all pictures, and their data."""

import csv
import io
import json
import logging
import math
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast

import matplotlib
from matplotlib.figure import Figure

from regard.base.errors import RegardError
from regard.base.files import write_file
from regard.pictures import labels


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, making its folder where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except OSError as error:
        raise RegardError(f"{path}: cannot be written ({error.strerror}).") from error


def unknown_suffix(path: Path, known: tuple[str, ...]) -> RegardError:
    """Return the error for a file name with an unknown suffix."""
    return RegardError(
        f"{path}: cannot tell a format from the suffix '{path.suffix}'. "
        f"Choose one of: {', '.join(known)}."
    )


Value: TypeAlias = str | int | float | None

DATA_SUFFIXES = (".csv", ".json")


@dataclass(frozen=True)
class Records:
    """A table: named columns, and rows with a value or None for each of them."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Value]]

    def to_dicts(self) -> list[dict[str, Value]]:
        """Return each row as a dictionary."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def write_records(records: Records, path: Path) -> None:
    """Write a table as CSV, or as JSON with an object a row, by the suffix of the file's name."""
    suffix = path.suffix.lower()
    if suffix not in DATA_SUFFIXES:
        raise unknown_suffix(path, DATA_SUFFIXES)
    if suffix == ".csv":
        write_text(path, csv_text([records.columns, *records.rows]))
    else:
        write_text(path, json_text(records.to_dicts()))


def csv_text(rows: Sequence[Sequence[Value]]) -> str:
    """Return rows as CSV; None is an empty field."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def json_text(value: Any) -> str:
    """Return plain values as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8; a lone surrogate becomes a question mark rather than a crash."""
    write_bytes(path, text.encode("utf-8", errors="replace"))


Colour: TypeAlias = tuple[int, int, int]

BLUE_HUE = math.radians(256)

# Text, faint text and lines of pictures; in the report they follow the reader's theme.
INK = "#1f2328"
FAINT = "#6a737d"
RULE = "#e2e6ea"

# For models, in this order; each has a contrast of at least 3:1 in both themes of the report.
PALETTE = ("#2f7de1", "#d9622b", "#1f9d72", "#b05cc6", "#b8860b", "#d6457a", "#5f7f95", "#8a7a2d")


def colour_on_light(share: float) -> Colour:
    """Return the colour of a weight on a light background: 0 is white, 1 the deepest blue."""
    share = _clip(share)
    return _from_oklch(1.0 - 0.66 * share, 0.145 * math.sin(0.62 * math.pi * share), BLUE_HUE)


def colour_on_dark(share: float) -> Colour:
    """Return the colour of a weight on a dark background: 0 is nearly black, 1 bright blue."""
    share = _clip(share)
    chroma = 0.025 + 0.11 * math.sin(math.pi * min(1.0, 0.88 * share))
    return _from_oklch(0.25 + 0.67 * share, chroma, BLUE_HUE)


def hexadecimal(colour: Colour) -> str:
    """Return a colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _clip(share: float) -> float:
    return min(1.0, max(0.0, share))


def _from_oklch(lightness: float, chroma: float, hue: float) -> Colour:
    """Return the sRGB colour of an OKLCh one."""
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    # The cubes of the non-linear cone responses, then linear light.
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _encoded(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _encoded(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _encoded(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _encoded(light: float) -> int:
    """Return linear light as an sRGB byte."""
    light = _clip(light)
    encoded = 12.92 * light if light <= 0.0031308 else 1.055 * light ** (1 / 2.4) - 0.055
    return round(255 * encoded)


PictureFormat: TypeAlias = Literal["png", "svg", "pdf"]
Made = TypeVar("Made")
FORMATS: dict[str, PictureFormat] = {".png": "png", ".svg": "svg", ".pdf": "pdf"}

# Matplotlib's warning about a character that no font has, and a text in its SVG files.
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
    """Return a figure as SVG text with a transparent background, for a page."""
    return render(draw, "svg", background="none").decode("utf-8")


class NotebookFigure(Figure):
    """A figure that shows itself in a notebook, also without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        return _with_fonts(lambda: _bytes_of(self, "png", "white"), "png")


def figure_in_full(draw: Callable[[], Figure]) -> NotebookFigure:
    """Return a figure that is large enough for all of its labels, for a notebook."""
    figure = _with_fonts(lambda: _in_full(draw()), "png")
    figure.__class__ = NotebookFigure  # which adds a method and no data
    return cast(NotebookFigure, figure)


def render(
    draw: Callable[[], Figure], format: PictureFormat, *, background: str = "white"
) -> bytes:
    """Return the bytes of a figure; the same figure always gives the same bytes.

    A script that no installed font has is drawn as boxes, with a warning that names it.
    """
    content = _with_fonts(lambda: _bytes_of(draw(), format, background), format)
    if format != "svg":
        return content
    # Programs that show an SVG file assume that every text runs from left to right.
    text = content.decode("utf-8")
    return SVG_TEXT.sub(lambda found: f">{labels.with_direction(found[1])}</text>", text).encode(
        "utf-8"
    )


def _bytes_of(figure: Figure, format: PictureFormat, background: str) -> bytes:
    # The same figure must give the same bytes: each format has its own name for the date.
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
        facecolor=background,
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


def _with_fonts(make: Callable[[], Made], format: PictureFormat) -> Made:
    """Draw, and if a character is missing, draw again with installed fonts that have it."""
    if format == "svg":  # the viewer falls back to its own fonts
        return _made(make, ["sans-serif"])[0]
    families = labels.preferred_families()
    made, missing = _made(make, families)
    if missing and (others := labels.families_with(missing)):
        made, missing = _made(make, [*families, *others])
    if missing:
        warnings.warn(labels.unreadable(missing), labels.UnreadableScriptWarning, stacklevel=3)
    return made


def _made(make: Callable[[], Made], families: list[str]) -> tuple[Made, frozenset[int]]:
    """Return what was made with these fonts, and the characters that none of them has."""
    with _one_at_a_time, _settings(families), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    missing = set()
    for warning in caught:
        if found := MISSING.match(str(warning.message)):
            missing.add(int(found[1]))
        else:  # pass on other warnings
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
        search.setLevel(logging.ERROR)  # do not report that a font has no bold letters
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.family": families,
                "font.sans-serif": [labels.OWN_FAMILY],
                "font.size": 10,
                "text.color": INK,
                "text.parse_math": False,  # a word may contain dollar signs
                "axes.facecolor": "none",  # the background of a page shows through
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
                "svg.fonttype": "none",  # text stays text, in any script, and can be searched
                "svg.hashsalt": "regard",
                "pdf.fonttype": 42,
            }
        )
        try:
            yield
        finally:
            search.setLevel(level)
