"""The documentation site: pages that are made from the code hold what the code has."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import typer
import yaml

import regard
from regard.cli.app import app
from regard.tasks import TASKS

ROOT = Path(__file__).parent.parent
pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    found = importlib.util.spec_from_file_location("site_pages", ROOT / "docs/site/pages.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_reference_has_every_command_with_its_options(pages: ModuleType) -> None:
    page = pages.commands()
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", {"": command})
        for own, each in inner.items():
            assert f"## {' '.join(filter(None, ('regard', name, own)))}\n" in page
            assert all(
                f"`{one}`" in page for each_ in each.params for one in each_.opts if "-" in one
            )


def test_the_reference_has_the_settings_of_every_task(pages: ModuleType) -> None:
    page = pages.settings()
    assert all(f"\n## {task}\n" in page for task in TASKS)
    assert "`training.steps`" in page and "`model.attention`" in page


def test_the_reference_of_python_has_every_name(pages: ModuleType) -> None:
    page = pages.api()
    assert all(f"::: regard.{name}\n" in page for name in regard.__all__ if "__" not in name)


def test_dead_links_are_found(pages: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#here">b</a><a href="#top">up</a><img src="no.png">'
        '<a href="b.html#gone">b</a><a href="https://example.org/x">out</a>'
        '<a href="c%20d.html">c</a><a href="/b.html">b</a>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="here">B</p>', encoding="utf-8")
    (tmp_path / "c d.html").write_text("C", encoding="utf-8")
    assert list(pages.dead_links(tmp_path)) == [
        "a.html: no.png",
        "a.html: b.html#gone has no such place",
    ]


def test_the_site_asks_no_other_site_for_anything() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = yaml.load(text, yaml.BaseLoader)
    assert settings["theme"]["font"] == "false" and settings["strict"] == "true"
    loaded = [
        *settings["extra_javascript"],
        *settings["extra_css"],
        *settings["extra"]["polyfills"],
    ]
    made = ROOT / "src" / "regard" / "lectures"  # what the guide's local pages have, too
    places = [(ROOT / "docs" / name, made / Path(name).name) for name in loaded]
    assert all(one.is_file() or other.is_file() for one, other in places)
