"""The guide as local pages: complete HTML documents that ask the network for nothing."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

from regard.lectures.blocks import figure_frame, inline_picture, with_blocks
from regard.lectures.figures import Figures
from regard.lectures.guide import PAGES, FigureBlock, Page, page_named

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'"
)
STYLE = """
:root { color-scheme: light dark; --lecture-line: rgba(128,128,128,.35);
  --lecture-accent: #2f6fd0; }
* { box-sizing: border-box; }
body { margin: 0; font: 17px/1.6 system-ui, sans-serif; }
nav { display: flex; flex-wrap: wrap; gap: .3em 1.1em; padding: .8em 1.2em;
  border-bottom: 1px solid var(--lecture-line); font-size: .85em; }
nav a { text-decoration: none; } nav a[aria-current] { font-weight: 700; color: inherit; }
main { max-width: 62em; margin: 0 auto; padding: 1em 1.2em 4em; }
h1 { font-size: 1.9em; line-height: 1.2; } h2 { margin-top: 2.2em; line-height: 1.25; }
pre { overflow-x: auto; padding: .7em .9em; border-radius: .4em; background: rgba(128,128,128,.13);
  font-size: .85em; }
code { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
pre code { overflow-wrap: normal; font-size: 1em; }
table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; }
table.notations { display: table; }
th, td { border-bottom: 1px solid var(--lecture-line); padding: .35em .7em; text-align: left;
  vertical-align: top; }
blockquote { margin: 1em 0; padding: .1em 1em; border-left: .25em solid var(--lecture-accent); }
details { margin: .6em 0; } summary { cursor: pointer; font-weight: 600; }
#sentence-form { display: flex; flex-wrap: wrap; gap: .6em; margin: 1em 0; }
#sentence { flex: 1 1 18em; font: inherit; padding: .3em .5em; }
button { font: inherit; padding: .3em .9em; }
"""


def local_page(name: str, figures: Figures, *, live: bool, alone: bool = False) -> str:
    """Return a page of the guide as an HTML document.

    With `live`, its sliders ask the server that it came from; otherwise it holds all frames.
    `alone` leaves out the links to the other pages, which a single file does not have.
    """
    page = page_named(name)
    count = 0

    def drawn(figure: FigureBlock, numbers: dict[str, str], number: int) -> str:
        svg = _svg(figures, figure.name, tuple(numbers.items()))
        prefix = f"f{count}-{number}-"
        return inline_picture(svg, name=figure.name, numbers=numbers, prefix=prefix)

    def figure_html(figure: FigureBlock) -> str:
        nonlocal count
        count += 1
        where = f"/figure/{figure.name}" if live else None
        return figure_frame(figure, figures, drawn, live=where)

    body = rendered(with_blocks(page, figure_html), alone=alone)
    reads = any(figure.name in ("step", "heat-map") for figure in page.figures)
    form = _sentence_form(figures) if live and figures.run is not None and reads else ""
    menu = "" if alone else _menu(page)
    css, script = _text("lecture.css"), _text("lecture.js")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(page.title)} - Regard</title><style>{STYLE}{css}</style></head>"
        f"<body>{menu}<main>{form}{body}</main><script>{script}</script></body></html>"
    )


def rendered(markdown: str, *, alone: bool) -> str:
    """Return Markdown as HTML; links to pages of the guide lead to local ones."""
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

    reader = MarkdownIt("commonmark", {"html": True}).enable("table")

    def link_open(self: RendererHTML, tokens: list[Token], index: int, *others: object) -> str:
        target = str(tokens[index].attrs.get("href", ""))
        name, mark, _ = target.partition(".md")
        if mark and "/" not in name and name in PAGES and not alone:
            tokens[index].attrs["href"] = f"/{name}"
        elif "://" not in target:  # a page that only the site has
            tokens[index].attrs = {"class": "elsewhere"}
        return self.renderToken(tokens, index, *others)  # type: ignore[arg-type]

    reader.add_render_rule("link_open", link_open)
    return str(reader.render(markdown))


def _menu(page: Page) -> str:
    links = "".join(
        f'<a href="/{name}"{" aria-current=page" if name == page.name else ""}>'
        f"{escape(page_named(name).title)}</a>"
        for name in PAGES
    )
    return f"<nav>{links}</nav>"


def _sentence_form(figures: Figures) -> str:
    from regard.lectures.figures import example

    text = escape(figures.sentence or str(example()["source_text"]), quote=True)
    return (
        f'<form id="sentence-form"><input id="sentence" value="{text}" maxlength="400" '
        'aria-label="Sentence to read"><button>Read it</button></form>'
    )


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


# A picture is drawn once for the page and again for its frame; figures of a run are kept there.
def _svg(figures: Figures, name: str, numbers: tuple[tuple[str, str], ...]) -> str:
    key = (name, numbers)
    if key not in figures.drawn:
        figures.drawn[key] = figures.svg(name, dict(numbers))
    return figures.drawn[key]
