"""The notebooks: what they have in common, and their pages on the site."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from regard.lectures.exercises.catalogue import EXERCISES
from regard.lectures.museum import EXHIBITS

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    found = importlib.util.spec_from_file_location(
        "site_notebooks", ROOT / "docs/site/notebooks.py"
    )
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_there_is_one_for_each_topic_of_the_guide() -> None:
    topics = {path.stem for path in (ROOT / "docs" / "lectures").glob("*.md")}
    assert {path.stem for path in NOTEBOOKS} == topics - {"index", "coverage"}
    index = (ROOT / "docs" / "notebooks" / "index.md").read_text(encoding="utf-8")
    assert all(f"]({path.stem}.ipynb)" in index for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs_and_begins_with_its_installation(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)
    assert "pip" in cells[0].source and 'find_spec("regard")' in cells[0].source
    for cell in cells:
        ast.parse(cell.source)
    source = "\n".join(cell.source for cell in cells)
    if "train(" in source:  # a restart goes on with the training
        assert "regard.train(resume=out" in source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_it_asks_to_start_is_there(path: Path) -> None:
    text = "\n".join("".join(c["source"]) for c in json.loads(path.read_text("utf-8"))["cells"])
    for part in text.split("`regard exercise start ")[1:]:
        assert part.split("`")[0] in EXERCISES
    for part in text.split("`regard museum visit ")[1:]:
        assert part.split("`")[0] in EXHIBITS


def test_a_page_shows_text_pictures_and_equations(pages: ModuleType) -> None:
    made: Any = nbformat.v4
    output = made.new_output
    code = made.new_code_cell(
        "1 < 2",
        outputs=[
            output("stream", name="stdout", text="\x1b[1ma < b\x1b[0m\n"),
            output("stream", name="stderr", text="not shown"),
            output("display_data", data={"text/html": "<b>x</b>\n\n<i>y</i>", "text/plain": "z"}),
            output("display_data", data={"image/png": "QUJD", "text/plain": "z"}),
            output("execute_result", data={"text/plain": "True"}),
        ],
    )
    markdown = made.new_markdown_cell("# One\n\n$\\mathrm{ATT}_1$")
    text = pages.page(made.new_notebook(cells=[markdown, code]), "one.ipynb")
    assert text.startswith("# One\n\n<math") and "[Download this notebook](one.ipynb)" in text
    assert "```python\n1 < 2\n```" in text
    assert '<pre class="notebook-output">a &lt; b</pre>' in text and "not shown" not in text
    assert "<b>x</b>\n<i>y</i>" in text and ">z<" not in text
    assert "base64,QUJD" in text and ">True</pre>" in text


def test_too_much_output_is_refused(pages: ModuleType) -> None:
    made = nbformat.v4
    big = made.new_output("stream", name="stdout", text="x" * (pages.LARGEST + 1))
    cells = [made.new_markdown_cell("# One"), made.new_code_cell("1", outputs=[big])]
    with pytest.raises(pages.PluginError, match="keep them small"):
        pages.page(made.new_notebook(cells=cells), "one.ipynb")
