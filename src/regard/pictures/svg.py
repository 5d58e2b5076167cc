"""SVG for a page or a notebook: unique ids, the page's colours, and nothing that can run."""

import hashlib
import html
import re
import xml.etree.ElementTree as ElementTree

from regard.base.errors import RegardError
from regard.pictures.canvas import FAINT, INK, RULE
from regard.pictures.labels import plain_text


def escaped(text: str) -> str:
    """Return a text escaped for any place in an HTML page."""
    return html.escape(plain_text(text), quote=True)


SVG = "http://www.w3.org/2000/svg"
LINK = "http://www.w3.org/1999/xlink"

# The elements of a picture; anything else (scripts, foreign HTML, animation) is refused.
# fmt: off
ALLOWED = frozenset({
    "svg", "g", "defs", "use", "clipPath", "path", "rect", "circle", "ellipse", "line", "polyline",
    "polygon", "text", "tspan", "title", "desc", "image", "linearGradient", "radialGradient",
    "stop", "marker", "pattern",
})
# fmt: on
# Matplotlib's metadata, and a style sheet that would affect the whole page.
LEFT_OUT = frozenset({"metadata", "style"})
THEME = {INK: "currentColor", FAINT: "var(--faint)", RULE: "var(--line)"}

REFERENCE = re.compile(r"url\(\s*#([^)\s]+)\s*\)")


def inline_svg(svg: str, *, prefix: str, label: str) -> str:
    """Return an SVG text that can be placed in a page together with others.

    `prefix` goes before every id, so that pictures do not use each other's clip paths; `label` is
    for screen readers. Text and lines take the colours of the page, in both themes.
    """
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK)
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise RegardError(f"a picture is not valid SVG ({error}).") from error
    if root.tag != f"{{{SVG}}}svg":
        raise RegardError(f"a picture is not SVG but <{root.tag}>.")

    for element in root.iter():
        for child in list(element):
            if _name(child) in LEFT_OUT:
                element.remove(child)
        if _name(element) not in ALLOWED:
            raise RegardError(f"a picture may not hold <{_name(element)}>.")
        for attribute, value in element.attrib.items():
            element.set(attribute, _attribute(attribute, value, prefix))
    root.set("role", "img")
    root.set("aria-label", label)
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    return ElementTree.tostring(root, encoding="unicode")


def _name(element: ElementTree.Element) -> str:
    return str(element.tag).removeprefix(f"{{{SVG}}}")


def _attribute(name: str, value: str, prefix: str) -> str:
    """Return an attribute's value with prefixed ids and the colours of the page."""
    if name.lower().startswith("on"):
        raise RegardError(f"a picture may not hold the attribute '{name}'.")
    if name == "id":
        return prefix + value
    if name in ("href", f"{{{LINK}}}href"):
        if value.startswith("#"):
            return f"#{prefix}{value[1:]}"
        if not value.startswith("data:image/png;base64,"):
            raise RegardError(f"a picture may not refer to '{value[:40]}': a report is one file.")
        return value
    for ink, themed in THEME.items():
        value = value.replace(ink, themed)
    value, internal = REFERENCE.subn(rf"url(#{prefix}\1)", value)
    if value.lower().count("url(") != internal:
        raise RegardError(f"a picture may not refer to '{value[:40]}': a report is one file.")
    return value


# A notebook does not have our style sheet: these greys are readable on white and on black.
COLOURS = "--faint:#7d8590;--line:rgba(128,128,128,.35)"


def notebook_picture(svg: str, *, label: str) -> str:
    """Return a picture for a notebook; its ids differ from those of all other pictures."""
    digest = hashlib.sha256(svg.encode("utf-8")).hexdigest()[:10]
    drawn = inline_svg(svg, prefix=f"regard-{digest}-", label=plain_text(label))
    return f'<div style="{COLOURS};max-width:100%;overflow-x:auto">{drawn}</div>'


def notebook_lines(*lines: tuple[str, str]) -> str:
    """Return named texts, one per line."""
    rows = "".join(
        f'<div><span style="opacity:.6;display:inline-block;min-width:6em">{escaped(name)}</span>'
        f'<span dir="auto">{escaped(text)}</span></div>'
        for name, text in lines
    )
    return f'<div style="line-height:1.6">{rows}</div>'
