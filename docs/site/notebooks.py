"""Pages of the site from notebooks: each is executed, and shown with what it prints and draws."""

from __future__ import annotations

import base64
import html
import os
import re
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CELL_SECONDS = 300
"""A cell that takes longer fails the build; on two quiet cores the longest takes about ten."""
LARGEST = 1_000_000
"""Characters of the outputs of a notebook."""
SKIP = "REGARD_DOCS_NOTEBOOKS"
MATHEMATICS = re.compile(r"\$([^$\n]+)\$")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each notebook, which stays there to be downloaded."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, name, content=page(executed(path), path.name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of the list to the pages; in the repository they lead to the notebooks."""
    is_list = page.file.src_uri == "notebooks/index.md"
    return markdown.replace(".ipynb)", ".md)") if is_list else markdown


def executed(path: Path) -> Any:
    """Return a notebook with its outputs; `REGARD_DOCS_NOTEBOOKS=0` leaves them out."""
    notebook = nbformat.read(path, as_version=4)
    if os.environ.get(SKIP) == "0":
        return notebook
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        try:
            return client.execute()
        except (CellExecutionError, CellTimeoutError) as error:
            raise PluginError(f"{path.name}: {error}") from error


def page(notebook: Any, name: str) -> str:
    """Return a notebook as Markdown."""
    parts = [part for cell in notebook.cells for part in _cell(cell)]
    note = f"[Download this notebook]({name}) and open it in Jupyter or Colab: [how](index.md)."
    parts.insert(1, note)
    text = "\n\n".join(parts) + "\n"
    if len(text) > LARGEST:
        raise PluginError(f"{name}: {len(text):,} characters with its outputs; keep them small.")
    return text


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield MATHEMATICS.sub(_equation, cell.source)
        return
    yield f"```python\n{cell.source}\n```"
    for kind, outputs in groupby(cell.get("outputs", []), key=lambda output: output.output_type):
        if kind == "stream":
            yield _text("".join(output.text for output in outputs if output.name == "stdout"))
        else:
            for output in outputs:
                yield from _output(output)


def _equation(found: re.Match[str]) -> str:
    """Return an equation of a notebook as MathML; Jupyter writes some names in another way."""
    from regard.lectures.mathml import mathml

    tex = found[1].replace("\\mathrm", "\\text").replace("\\top", "T").replace("\\mid", "|")
    return mathml(tex, block=False)


def _output(output: Any) -> Iterator[str]:
    """Return an output as HTML: what is drawn, or else the text."""
    data = output.get("data", {})
    if "text/html" in data:
        lines = [line for line in data["text/html"].splitlines() if line.strip()]
        yield '<div class="notebook-output">\n' + "\n".join(lines) + "\n</div>"
    elif "image/png" in data:
        picture = (
            data["image/png"].strip()
            if isinstance(data["image/png"], str)
            else (base64.b64encode(data["image/png"]).decode())
        )
        yield f'<p><img alt="output" src="data:image/png;base64,{picture}"></p>'
    elif "text/plain" in data:
        yield _text(data["text/plain"])


def _text(text: str) -> str:
    plain = COLOURS.sub("", text).rstrip("\n")
    return f'<pre class="notebook-output">{html.escape(plain)}</pre>' if plain else ""
