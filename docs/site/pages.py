"""Pages of the site that are made from the code: commands, settings, API; and the front page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click
import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from regard.lectures import guide
from regard.lectures.blocks import figure_frame, with_blocks
from regard.lectures.figures import Figures

ROOT = Path(__file__).parents[2]
FIGURES = Figures()
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put documents that the menu does not name under its last heading."""
    named = set(re.findall(r"[\w/-]+\.md", str(config.nav)))
    every = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    config.nav[-1]["Project"] += [name for name in every if name not in named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made = {
        "index.md": (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .replace("](docs/", "](")
        .replace('src="docs/', 'src="'),
        "commands.md": commands(),
        "settings.md": settings(),
        "api.md": api(),
    }
    for name, target in OUTSIDE.items():
        made[target] = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    lectures = ROOT / "src" / "regard" / "lectures"
    for name in ("lecture.js", "lecture.css"):
        made[f"site/{name}"] = (lectures / name).read_text(encoding="utf-8")
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for name in guide.PAGES:
        for path, svg in figure_files(guide.page_named(name)).items():
            files.append(File.generated(config, path, content=svg))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the guide; lead links out of docs/ to pages that the site has, or show them as code."""
    folder, _, name = page.file.src_uri.rpartition("/")
    if folder == "lectures":
        markdown = lecture(guide.page_named(name.removesuffix(".md")))
    for name, target in OUTSIDE.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{name}", f"]({target}", markdown)
    return re.sub(r"\[`([^`\]]+)`\]\(\.\./(?:bench|src|tests)/[^)]*\)", r"`\1`", markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site in which a link or a picture leads nowhere."""
    dead = list(dead_links(Path(config.site_dir)))
    if dead:
        raise PluginError("Dead links:\n" + "\n".join(dead))


def dead_links(site: Path) -> Iterator[str]:
    """Yield every address inside the site that has no file, or no such place in its page."""
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    places = {path: {*re.findall(r'\b(?:id|name)="([^"]+)"', text)} for path, text in pages.items()}
    for path, text in pages.items():
        for address in dict.fromkeys(re.findall(r'<[^>]+?\b(?:href|src)="([^"]+)"', text)):
            parts = urlsplit(html.unescape(address))
            if parts.scheme or parts.netloc:
                continue
            # The page for what is missing may be shown anywhere: it counts from the root.
            start = site if parts.path.startswith("/") else path.parent
            file = unquote(parts.path).lstrip("/")
            target = (start / file).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(site)}: {address}"
            elif place and target in places and place not in places[target]:
                yield f"{path.relative_to(site)}: {address} has no such place"


def figure_path(figure: guide.FigureBlock, numbers: dict[str, str]) -> str:
    """Return the file of a figure with these numbers, beside its page."""
    settings = "".join(f"-{key}-{value}" for key, value in numbers.items())
    return f"figures/{figure.name}{settings}.svg"


def figure_files(page: guide.Page) -> dict[str, str]:
    """Return the pictures of a page of the guide, one for each place of each slider."""
    return {
        f"lectures/{figure_path(figure, numbers)}": FIGURES.svg(figure.name, numbers)
        for figure in page.figures
        for numbers in figure.frames
    }


def lecture(page: guide.Page) -> str:
    """Return a page of the guide with its equations, figures and sliders."""

    def picture(figure: guide.FigureBlock, numbers: dict[str, str], number: int) -> str:
        settings = ", ".join(f"{key} = {value}" for key, value in numbers.items())
        label = f"{figure.name.replace('-', ' ')}, {settings}".removesuffix(", ")
        return f'<img src="{figure_path(figure, numbers)}" alt="{label}">'

    return with_blocks(page, lambda figure: figure_frame(figure, FIGURES, picture))


def commands() -> str:
    """Return the reference of all commands."""
    from regard.cli.app import app

    group = typer.main.get_command(app)
    lines = ["# Commands", "", "Made from the program: `regard COMMAND --help` says the same.", ""]
    for name, command in _commands(group, "regard"):
        lines += [f"## {name}", "", *_described(command.help or ""), ""]
        lines += ["| argument or option | meaning | default |", "|---|---|---|"]
        lines += [_row(parameter) for parameter in command.params]
        lines += [""]
    return "\n".join(lines)


def _commands(group: Any, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _described(text: str) -> Iterator[str]:
    """Return a help text, its example as a block of code."""
    for paragraph in text.split("\n\n"):
        before, mark, example = paragraph.partition("Example: ")
        plain = " ".join(before.replace("\b", "").split())
        if plain:
            yield from (_safe(plain), "")
        if mark:
            yield from ("```", " ".join(example.split()), "```", "")


def _row(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        name = f"`{(parameter.metavar or parameter.name or '').upper()}`"
    else:
        name = ", ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = default is not None and default is not False and not callable(default)
    shown = shown and default != () and "Sentinel" not in type(default).__name__
    text = _safe(" ".join((getattr(parameter, "help", None) or "").split()))
    return f"| {name} | {text} | {f'`{default}`' if shown else ''} |"


def settings() -> str:
    """Return all settings of all tasks, made from the schemas."""
    from regard.runs.catalogue import recipe_names
    from regard.settings.reference import SettingsTable, tables_of
    from regard.tasks import find_recipe

    tasks: dict[str, dict[tuple[str, str], tuple[SettingsTable, list[str]]]] = {}
    for name in recipe_names():
        recipe = find_recipe(name)
        for table in tables_of(recipe):
            of_task = tasks.setdefault(recipe.task, {})
            of_task.setdefault((table.name, table.description), (table, []))[1].append(name)
    lines = [
        "# Settings",
        "",
        "Every key of a recipe, made from the schemas of the tasks. Set one with",
        "`--set KEY=VALUE`; `regard recipes NAME` shows the values of a recipe.",
        "",
    ]
    for task, tables in tasks.items():
        lines += [f"## {task}", ""]
        for (name, description), (table, recipes) in tables.items():
            if not table.settings:
                continue
            several = sum(other == name for other, _ in tables) > 1
            title = f"{task}: {name or 'recipe'}"
            title += f" ({recipes[0]})" if several else ""
            lines += [f"### {title}", "", _safe(description), ""]
            if several:
                lines += ["Recipes: " + ", ".join(f"`{one}`" for one in recipes) + ".", ""]
            lines += ["| key | meaning | default |", "|---|---|---|"]
            for one in table.settings:
                default = "" if one.default is None else f"`{one.default}`".replace("|", "\\|")
                lines.append(f"| `{one.key}` | {_safe(one.text)} | {default} |")
            lines.append("")
    return "\n".join(lines)


LOADED = {
    "translation": "LoadedTranslator",
    "language_modelling": "LoadedLanguageModel",
    "text_classification": "LoadedTextClassifier",
    "forecasting": "LoadedForecaster",
    "node_classification": "LoadedGraphClassifier",
}
LAYERS = (
    "attention.scores", "attention.positions", "attention.lookup", "attention.multihead",
    "attention.graph", "attention.masks", "attention.ladder", "recurrent.cells",
    "recurrent.decoders", "transformer.layers", "base.results", "base.errors",
)  # fmt: skip


def api() -> str:
    """Return the API reference; mkdocstrings fills it from the source."""
    import regard

    lines = [
        "# API",
        "",
        "Everything that `import regard` offers, what `regard.load` returns, and the layers.",
        "",
    ]
    for name in regard.__all__:
        if not name.startswith("__"):
            lines += [f"::: regard.{name}", ""]
    for task, name in LOADED.items():
        lines += [f"::: regard.tasks.{task}.model.{name}", ""]
    for module in LAYERS:
        lines += [f"::: regard.{module}", ""]
    return "\n".join(lines)


def _safe(text: str) -> str:
    """Return a text that means itself in a cell of a Markdown table."""
    parts = re.split(r"(`[^`]*`)", text)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r"([*_\[\]|])", r"\\\1", parts[number]).replace("<", "&lt;")
    return "".join(part.replace("|", "\\|") if part.startswith("`") else part for part in parts)
