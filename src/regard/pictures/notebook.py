"""Results as they show themselves in a notebook: escaped, self-contained, by day and by night."""

from __future__ import annotations

import hashlib

from regard.pictures.inline_svg import inline_svg
from regard.pictures.labelled_map import plain_text
from regard.pictures.sections import escaped

# A notebook has no style sheet of ours: greys that can be read on white and on black.
COLOURS = "--faint:#7d8590;--line:rgba(128,128,128,.35)"


def notebook_picture(svg: str, *, label: str) -> str:
    """Return a picture to stand in a notebook; its ids are its own, whatever else stands there."""
    digest = hashlib.sha256(svg.encode("utf-8")).hexdigest()[:10]
    drawn = inline_svg(svg, prefix=f"regard-{digest}-", label=plain_text(label))
    return f'<div style="{COLOURS};max-width:100%;overflow-x:auto">{drawn}</div>'


def notebook_lines(*lines: tuple[str, str]) -> str:
    """Return named texts, one a line."""
    rows = "".join(
        f'<div><span style="opacity:.6;display:inline-block;min-width:6em">{escaped(name)}</span>'
        f'<span dir="auto">{escaped(text)}</span></div>'
        for name, text in lines
    )
    return f'<div style="line-height:1.6">{rows}</div>'
