"""The guide: equations, notations, figures, local pages, and the server of `regard lecture`."""

from __future__ import annotations

import json
import re
import socket
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from regard.base.errors import RegardError, SettingsError
from regard.cli.app import main
from regard.lectures import guide
from regard.lectures.blocks import figure_frame, with_blocks
from regard.lectures.figures import OPTIONS, Figures, example
from regard.lectures.illustrations import ILLUSTRATIONS, options
from regard.lectures.local import local_page
from regard.lectures.mathml import mathml
from regard.lectures.notation import NOTATIONS, ROLES, equation_html, table_html, written
from regard.lectures.server import LectureServer

every_page = pytest.mark.parametrize("name", guide.PAGES)


def text_of(html: str) -> str:
    """Return the text of an equation, without spaces and invisible signs."""
    return re.sub(r"[\s\u2061]", "", "".join(ElementTree.fromstring(html).itertext()))


@pytest.mark.parametrize(
    ("tex", "parts", "text"),
    [
        ("h_{t-1}", ["msub"], "ht−1"),
        ("x_i^2", ["msubsup"], "xi2"),
        ("\\frac{a}{b_1}", ["mfrac", "msub"], "ab1"),
        ("\\sum_{i=1}^n w_i", ["munderover", "msub"], "∑i=1nwi"),
        ("\\sqrt{d_k} \\cdot \\tanh(x')", ["msqrt", "msup"], "dk·tanh(x′)"),
        ("\\text{a < b}, \\text{ c}", ["mtext"], "a<b,c"),
        ("a \\\\ b", ["mtable", "mtr"], "ab"),
        ("\\tilde{h}_t \\in 0.5", ["mover", "mn"], "ht∈0.5"),
    ],
)
def test_equations_become_mathml(tex: str, parts: list[str], text: str) -> None:
    found = mathml(tex)
    tags = {element.tag for element in ElementTree.fromstring(found).iter()}
    assert tags >= {*parts}
    assert text_of(found).replace("~", "") == text


@pytest.mark.parametrize(
    ("tex", "message"),
    [("\\unknown x", "uses \\unknown"), ("a_", "ends too early"), ("a } b", "out of place"),
     ("\\frac{a", "ends too early"), ("\\text a b", "without its braces")],
)  # fmt: skip
def test_mistakes_in_equations_are_told(tex: str, message: str) -> None:
    with pytest.raises(RegardError, match=re.escape(message)):
        mathml(tex)


def test_every_notation_writes_every_role() -> None:
    for name, notation in NOTATIONS.items():
        assert notation.roles.keys() == ROLES.keys()
        assert not re.search("|".join(rf"\\{role}\b" for role in ROLES),
                             written("\\scoring \\query \\each", name))  # fmt: skip
    html = equation_html("\\context = \\reading")
    assert html.count("in-notation") == len(NOTATIONS) == html.count("hidden") + 1
    assert "in-notation" not in equation_html("a = b")
    assert "in-notation" not in table_html()


@every_page
def test_pages_are_complete(name: str) -> None:
    page = guide.page_named(name)
    assert page.markdown.startswith(f"# {page.title}\n")
    for tex in page.equations:
        ElementTree.fromstring(equation_html(tex))
    for figure in page.figures:
        known = options(figure.name) if figure.name in ILLUSTRATIONS else OPTIONS[figure.name]
        assert figure.numbers.keys() <= known.keys()
    if name in guide.TOPICS:
        sections = page.markdown.split("\n## ")[1:]
        for section in sections:
            assert "**Ask the class.**" in section and "<summary>An answer</summary>" in section
        assert page.equations and "\nregard " in page.markdown


def test_all_illustrations_are_in_the_guide() -> None:
    shown = {figure.name for name in guide.TOPICS for figure in guide.page_named(name).figures}
    assert shown == {*ILLUSTRATIONS, *OPTIONS}


def test_a_slider_must_fit_its_figure() -> None:
    figure = guide.figure_of("shift by=2\nslide by 1 2 3\n")
    assert [one["by"] for one in figure.frames] == ["2", "1", "3"]
    for wrong in ("slide far 1 2", "slide by 3 4", "glide by 1 2"):
        with pytest.raises(RegardError, match="the slider"):
            guide.figure_of(f"shift by=2\n{wrong}\n")
    with pytest.raises(SettingsError, match=r"Unknown topic 'decoder'.*decoders"):
        guide.page_named("decoder")


@pytest.fixture(scope="module")
def figures() -> Figures:
    return Figures()


def test_figures_refuse_what_they_cannot_draw(figures: Figures) -> None:
    for name, numbers, message in (
        ("sketch", {}, "Unknown figure 'sketch'"),
        ("step", {"step": "x"}, "step = x: it must be a whole number"),
        ("step", {"path": "1"}, "Unknown number of the figure step 'path'"),
        ("diagram", {"recipe": "/etc/passwd"}, "Unknown recipe '/etc/passwd'"),
        ("shift", {"by": "9"}, "choose a shift"),
    ):
        with pytest.raises(SettingsError, match=re.escape(message)):
            figures.svg(name, numbers)
    with pytest.raises(SettingsError, match="has 401 characters"):
        figures.svg("heat-map", {}, sentence="a" * 401)


def test_the_recorded_example_is_what_lectures_say() -> None:
    seen = Figures().attention()
    assert [seen.source[place] for place in seen.weights.argmax(axis=1)] == [
        "Cats", "like", "not", "dogs.",
    ]  # fmt: skip
    assert seen.target == ("Katzen", "mögen", "keine", "Hunde.")
    assert example()["made_by"].startswith("python bench/lecture_example.py")


def test_figures_of_a_run(toy_run: Path) -> None:
    figures = Figures(run=toy_run, sentence="badal kofen migon")
    assert "NEFOK" in figures.svg("step", {"step": "2"})
    assert "NOGIM" not in figures.svg("step", {"step": "2"})
    assert "NOGIM" in figures.svg("step", {"step": "9"})  # the last there is
    assert "SILUR" in figures.svg("heat-map", {}, sentence="rulis")
    assert str(toy_run) in figures.command("step", {"step": "2"})


def test_a_model_without_attention_has_nothing_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = SimpleNamespace(translate=lambda text: SimpleNamespace(attention=None, text="x"))
    monkeypatch.setattr(Figures, "_translator", lambda self: silent)
    with pytest.raises(SettingsError, match="The model of runs/plain shows no attention for 'a b'"):
        Figures(run=Path("runs/plain")).svg("heat-map", {}, sentence="a b")


def test_a_page_in_one_file_has_a_frame_for_each_place(figures: Figures) -> None:
    page = local_page("positions", figures, live=False, alone=True)
    frames = sum(len([*figure.frames]) for figure in guide.page_named("positions").figures
                 if figure.sliders)  # fmt: skip
    assert page.count("<template") == frames
    assert "```" not in page and "<nav>" not in page and "data-live" not in page
    shown = re.sub(r"<template.*?</template>", "", page, flags=re.DOTALL)
    prefixes = re.findall(r' id="(f\d+-0-)figure_1"', shown)  # no two pictures share their ids
    assert len(prefixes) == len({*prefixes}) == len(guide.page_named("positions").figures)
    addresses = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert not [one for one in addresses if one.startswith("http")]


def test_an_answer_of_the_site_is_the_local_one(figures: Figures) -> None:
    page = guide.page_named("gates")
    shown = with_blocks(
        page, lambda figure: figure_frame(figure, figures, lambda *given: "<i>drawn</i>")
    )
    assert shown.count("<figure") == len(page.figures)
    assert shown.count('type="range"') == sum(len(figure.sliders) for figure in page.figures)


@pytest.fixture(scope="module")
def served(toy_run: Path) -> Iterator[LectureServer]:
    server = LectureServer(Figures(run=toy_run, sentence="badal kofen"))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(server: LectureServer, path: str, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8")
    connection.close()
    return answer.status, text


def test_the_server_has_every_page_and_live_figures(served: LectureServer) -> None:
    status, front = ask(served, "/")
    assert status == 200 and 'href="/decoders"' in front and "<nav>" in front
    status, page = ask(served, "/graphs")
    assert status == 200 and 'data-live="/figure/graph-attention"' in page
    assert "<template" not in page
    status, found = ask(served, "/figure/shift?by=3")
    assert status == 200 and "<svg" in json.loads(found)["svg"]
    assert json.loads(found)["command"] == "regard illustrate shift --set by=3 --out shift.svg"
    status, found = ask(served, "/figure/step?step=1&sentence=rulis+badal")
    assert status == 200 and "SILUR" in found and "rulis badal" in json.loads(found)["command"]


@pytest.mark.parametrize(
    ("path", "headers", "status", "message"),
    [
        ("/nothing", {}, 404, "no such page"),
        ("/graphs/more", {}, 404, "no such page"),
        ("/../pyproject.toml", {}, 404, "no such page"),
        ("/figure/nothing", {}, 400, "Unknown figure"),
        ("/figure/shift?by=0", {}, 400, "choose a shift"),
        ("/figure/shift?" + "&".join(["a=1"] * 20), {}, 400, "Max number of fields"),
        ("/figure/shift?by=" + "1" * 5000, {}, 414, "too long"),
        ("/", {"Host": "evil.example"}, 403, "this machine alone"),
    ],
)
def test_what_the_server_refuses(
    served: LectureServer, path: str, headers: dict[str, str], status: int, message: str
) -> None:
    found, text = ask(served, path, **headers)
    assert found == status and message in text


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], toy_run: Path) -> None:
    page = tmp_path / "new" / "graphs.html"
    main_of("lecture", "--list")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*guide.PAGES]
    main_of("lecture", "graphs", "--out", page)
    assert capsys.readouterr().out == f"Wrote {page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    main_of("lecture", "language-models", "--run", toy_run, "--sentence", "badal", "--out", page)


def main_of(*words: Any) -> None:
    try:
        main([str(word) for word in words])
    except SystemExit as stop:
        assert not stop.code


def test_mistakes_are_told(refused: Any, tmp_path: Path) -> None:
    assert "Unknown topic 'graph'. Did you mean 'graphs'" in refused("lecture", "graph")
    assert "name a file that ends in .html" in refused("lecture", "--out", "page.pdf")
    assert "--sentence needs a translator" in refused("lecture", "--sentence", "a b")
    assert "recipe.toml" in refused("lecture", "--run", tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused("lecture", "--port", port, "--no-browser")
    assert f"Cannot listen at 127.0.0.1, port {port}" in message and "--port" in message


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: Any) -> str:
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        assert stop.value.code == 2
        return capsys.readouterr().err

    return call


def test_the_command_serves_and_opens_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(LectureServer, "serve_forever", lambda self: None)
    main_of("lecture", "graphs")
    main_of("lecture", "--no-browser")
    assert len(opened) == 1
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/graphs", opened[0])
