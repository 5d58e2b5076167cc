"""The report of a run or of several: one HTML file that needs nothing beside itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from regard.pictures.sections import (
    Fold,
    Heading,
    HoverMap,
    Paragraph,
    Passage,
    Picture,
    Sample,
    Samples,
    Section,
    Table,
    escaped,
)
from regard.pictures.written import write_bytes

__all__ = [
    "Fold",
    "Heading",
    "HoverMap",
    "Paragraph",
    "Passage",
    "Picture",
    "Sample",
    "Samples",
    "Section",
    "Table",
    "report_html",
    "write_report",
]

FEWEST_LINKED = 3


def write_report(path: Path, *, title: str, sections: Sequence[Section]) -> None:
    """Write the sections, in their order, as one self-contained HTML file."""
    write_bytes(path, report_html(title=title, sections=sections).encode("utf-8"))


def report_html(*, title: str, sections: Sequence[Section]) -> str:
    """Return the page; style and script stand in it, and it may load nothing."""
    body = "\n".join(section.to_html(number) for number, section in enumerate(sections, start=1))
    style, script = _part("report.css"), _part("report.js")
    # The browser itself keeps the promise: only this script runs, and nothing is fetched.
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
    """Return a file that stands beside this one."""
    return resources.files("regard.pictures").joinpath(name).read_text(encoding="utf-8")
