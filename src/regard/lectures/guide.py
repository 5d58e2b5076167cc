"""The guide: a page a topic, read from Markdown, with equations, live figures and commands.

The pages are `docs/lectures/*.md`; an installed Regard has a copy. Besides plain Markdown they have
two kinds of blocks: ```equation (see `notation`) and ```figure: its first line names a figure with
numbers, as `extreme-case strength=8`, every other one a slider, as `slide strength 1 2 4 8`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regard.base.errors import RegardError
from regard.settings.recipe import require_known

HERE = Path(__file__).parent
TOPICS = (
    "bottleneck",
    "gates",
    "decoders",
    "transformer",
    "positions",
    "language-models",
    "graphs",
    "scale",
)
FRONT = "index"
COVERAGE = "coverage"
PAGES = (FRONT, *TOPICS, COVERAGE)
BLOCK = re.compile(r"^```(equation|figure)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class FigureBlock:
    """A figure of a page: its name, its numbers as text, and the values of its sliders."""

    name: str
    numbers: Mapping[str, str]
    sliders: Mapping[str, tuple[str, ...]]

    @property
    def frames(self) -> Iterator[dict[str, str]]:
        """The numbers at every place of every slider, while the others stay where they are."""
        yield dict(self.numbers)
        for key, values in self.sliders.items():
            for value in values:
                if value != self.numbers[key]:
                    yield {**self.numbers, key: value}


@dataclass(frozen=True)
class Page:
    """A page of the guide."""

    name: str
    title: str
    markdown: str

    @property
    def figures(self) -> list[FigureBlock]:
        """The figures in the order of the page."""
        blocks = BLOCK.findall(self.markdown)
        return [figure_of(text, page=self.name) for kind, text in blocks if kind == "figure"]

    @property
    def equations(self) -> list[str]:
        """The equations in the order of the page, as TeX."""
        return [text for kind, text in BLOCK.findall(self.markdown) if kind == "equation"]


@cache
def folder() -> Path:
    """Return where the pages are: beside this file if installed, else in the repository."""
    installed = HERE / "pages"
    return installed if installed.is_dir() else HERE.parents[2] / "docs" / "lectures"


def page_named(name: str) -> Page:
    """Return a page of the guide by its topic."""
    require_known(name, list(PAGES), what="topic")
    path = folder() / f"{name}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RegardError(f"{path}: the page of the guide cannot be read ({error}).") from error
    title = text.splitlines()[0].removeprefix("# ").strip()
    return Page(name, title, text)


def figure_of(text: str, *, page: str = "") -> FigureBlock:
    """Return the figure that a block describes."""
    first, *others = [line.split() for line in text.splitlines() if line.strip()]
    name, *pairs = first
    numbers = dict(pair.split("=", 1) for pair in pairs)
    sliders = {}
    for word, key, *values in others:
        if word != "slide" or key not in numbers or numbers[key] not in values:
            line = " ".join([word, key, *values])
            raise RegardError(
                f"{page}: the slider {line!r} of {name} has to begin with `slide`, name a number "
                "of the figure, and have that number's value among its own."
            )
        sliders[key] = tuple(values)
    return FigureBlock(name, numbers, sliders)
