"""`regard lecture`: the guide of the lectures in the browser, with live figures and sliders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.base.errors import SettingsError

if TYPE_CHECKING:
    from regard.lectures.figures import Figures


def lecture(
    topic: Annotated[
        str | None, typer.Argument(help="A topic, as decoders; without one: the list of them.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="Draw what this translator reads."),
    ] = None,
    sentence: Annotated[
        str | None, typer.Option("--sentence", help="What it reads first (with --run).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the topic as one .html file instead."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port; 0 for any that is free.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    list_topics: Annotated[bool, typer.Option("--list", help="List the topics and end.")] = False,
) -> None:
    """Open the guide of the lectures: equations, live figures, commands, questions for a class.

    Example: regard lecture decoders --run runs/demo/attention
    """
    from regard.lectures import guide
    from regard.lectures.figures import Figures

    if list_topics:
        width = max(map(len, guide.PAGES))
        for name in guide.PAGES:
            typer.echo(f"{name:<{width}}  {guide.page_named(name).title}")
        return
    if sentence is not None and run is None:
        raise SettingsError("--sentence needs a translator that reads it: name its run with --run.")
    name = guide.page_named(topic or guide.FRONT).name
    figures = Figures(run=run, sentence=sentence)
    if run is not None:
        figures.attention()  # a run that cannot be read is told now
    if out is not None:
        _write(name, figures, out)
        return
    _serve(name, figures, port=port, browser=browser)


def _write(name: str, figures: Figures, out: Path) -> None:
    from regard.base.files import write_file
    from regard.lectures.local import local_page

    if out.suffix.lower() not in (".html", ".htm"):
        raise SettingsError(
            f"{out}: a lecture is written as a page; name a file that ends in .html."
        )
    text = local_page(name, figures, live=False, alone=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, text.encode("utf-8"))
    typer.echo(f"Wrote {out}")


def _serve(name: str, figures: Figures, *, port: int, browser: bool) -> None:
    import webbrowser

    from regard.lectures.guide import FRONT
    from regard.lectures.server import LectureServer

    server = LectureServer(figures, port=port)
    address = server.address + ("/" if name == FRONT else f"/{name}")
    typer.echo(f"The guide is at {address} (Ctrl-C ends it)", err=True)
    if browser:
        webbrowser.open(address)
    with server:
        server.serve_forever()
