"""The documents: what a reader can type must exist, and figures are those of the result files."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
import torch
import typer
from pydantic import BaseModel

import regard
from regard.attention.positions import POSITIONS
from regard.attention.scores import SCORES
from regard.base.errors import RunError
from regard.cli.app import app
from regard.corpora.formats.document import Languages
from regard.corpora.formats.registry import ENDINGS, READERS, format_of, read_document
from regard.models.build import build_translator
from regard.settings.models import RecurrentSettings, TransformerSettings
from regard.tasks import TASKS, task_of
from regard.transformer.layers import FeedForward

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
PARTS = ("data", "tokenizer", "model", "batches", "training", "decoding")
SETTING = re.compile(
    rf"(?<![\w./-])((?:{'|'.join(PARTS)})\.[a-z_]+(?:\.[a-z_]+)*)(?![\w/-])(?<!safetensors)"
)


def snippets(path: Path) -> Iterator[tuple[str, str]]:
    """Return (language, text) of every block of code, and of code in a line as language ""."""
    text = path.read_text(encoding="utf-8")
    yield from FENCE.findall(text)
    yield from (("", inline) for inline in INLINE.findall(FENCE.sub("", text)))


def command_lines(path: Path) -> Iterator[list[str]]:
    """Return the words of every call of `regard`, comments left out."""
    for language, text in snippets(path):
        if language in ("", "console"):
            joined = text.replace("\\\n", " ")
            for line in joined.splitlines():
                if found := re.search(r"(?:^|[|$/ ])regard ([a-z][a-z0-9-]*)(?=\s|$)(.*)", line):
                    rest = found[2].split(" #")[0].split(" | ")[0]
                    yield [found[1], *re.findall(r"(?<=\s)--[a-z][\w-]*", rest)]


by_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


@by_document
def test_commands_and_their_options_exist(path: Path) -> None:
    group: Any = typer.main.get_command(app)
    for command, *options in command_lines(path):
        assert command in group.commands, f"{path.name}: regard {command}"
        found = group.commands[command]
        inner = getattr(found, "commands", {"": found}).values()  # of `regard corpus`: all its own
        parameters: list[click.Parameter] = [one for each in inner for one in each.params]
        known = {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
        assert {*options} <= known | {"--help"}, f"{path.name}: regard {command} {options}"


@by_document
def test_settings_exist(path: Path) -> None:
    known = {name for task in TASKS for name in names_of(task_of(task).schema)}
    code = " ".join(text for _, text in snippets(path) if "import " not in text)
    unknown = {name for name in SETTING.findall(code) if name not in known}
    assert not unknown, path.name


def names_of(schema: type[BaseModel], before: str = "") -> Iterator[str]:
    """Return the dotted names of all settings, those of alternatives included."""
    for name, field in schema.model_fields.items():
        yield before + name
        for inner in models_in(field.annotation):
            yield from names_of(inner, f"{before}{name}.")


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Return the models that an annotation is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from models_in(part)


@by_document
def test_python_imports_what_exists(path: Path) -> None:
    for language, text in snippets(path):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                module = import_module(node.module)
                assert all(hasattr(module, name.name) for name in node.names), ast.unparse(node)
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "regard":
                assert node.attr in dir(regard), f"{path.name}: regard.{node.attr}"


@by_document
def test_links_and_pictures_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)|<img src=\"([^\"]+)\"", text)
    for target in ("".join(found) for found in targets):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_architecture_names_every_room_and_its_files() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text.split("## A task")[0], re.MULTILINE))
    rooms = ROOT / "src" / "regard"
    assert {*rows} == {path.parent.name for path in rooms.glob("*/__init__.py")}
    for room, holds in rows.items():
        files = {path.stem for path in (rooms / room).iterdir()}
        named = {*re.findall(r"`(\w+)`", holds)}
        assert named <= files, room
        modules = {path.stem for path in (rooms / room).glob("*.py")} - {"__init__"}
        assert room == "cli" or modules <= named, room


def test_architecture_speaks_of_files_and_names_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "regard"
    for code in re.findall(r"`((?:\w+/)+\w*[\w.]*)`", text.split("`recipe.toml`")[0]):
        place, _, name = code.removesuffix(".py").partition(".")
        found = [root / place for root in (ROOT, ROOT / "src", source) if (root / place).is_dir()]
        if not found:
            module = import_module("regard." + place.removeprefix("regard/").replace("/", "."))
            assert not name or hasattr(module, name), code
    for name in re.findall(r"`regard\.(\w+)`", text):
        assert hasattr(regard, name)


def test_the_readme_stays_a_screen_and_a_half() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    rows = text.split("<!-- results -->")[1].split("<!-- end -->")[0].strip().splitlines()
    assert len(rows) - 2 <= 8


def test_tables_are_made_of_the_result_files() -> None:
    command = [sys.executable, ROOT / "bench" / "results_page.py", "--check"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_the_page_of_messages_is_made_of_the_source() -> None:
    command = [sys.executable, ROOT / "bench" / "errors_page.py", "--check"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    files = [*DOCUMENTS, ROOT / "Dockerfile", *(ROOT / "src").rglob("*.py")]
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"pip install (?:-\S+ )*['\"]?regard\b", text), path


def test_the_dockerfile_is_the_documented_one() -> None:
    text = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    recipe = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "docker build -t regard ." in text and "docker build -t regard ." in recipe
    copied = re.findall(r"^COPY (.*) \S+$", recipe, re.MULTILINE)
    assert all((ROOT / name).exists() for line in copied for name in line.split())
    extras = re.findall(r"'\.\[(.*)\]'", recipe)[0].split(",")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {*extras} <= {*known["project"]["optional-dependencies"]}


def example(heading: str) -> str:
    """Return the Python under a heading of CONTRIBUTING.md, which is to be short."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^## {heading}\n.*?^```python\n(.*?)^```", text, re.M | re.S)
    assert len([line for line in found.splitlines() if line.strip()]) <= 15
    return str(found)


def run(code: str, name: str = "example") -> ModuleType:
    """Return what an example defines, as a module."""
    module = ModuleType(name)
    exec(code, module.__dict__)
    return module


def test_the_example_of_a_score_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, "cosine", SCORES["dot"])
    run(example("Add an attention score"))
    model = RecurrentSettings(attention="cosine", hidden=8, embedding=4)
    lookup = build_translator(model, source_vocab=9, target_vocab=9).get_submodule("decoder.lookup")
    query, keys = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    score = lookup.get_submodule("score")
    expected = torch.cosine_similarity(query[:, :, None], keys[:, None], dim=-1)
    torch.testing.assert_close(score(query, score.prepare(keys)), expected)


def test_the_example_of_a_position_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POSITIONS, "log", POSITIONS["none"])
    run(example("Add a kind of position"))
    sizes = {"layers": 1, "model_dim": 8, "heads": 2, "feed_forward": 8, "dropout": 0.0}
    settings = TransformerSettings(positions="log", **sizes)  # type: ignore[arg-type]
    model = build_translator(settings, source_vocab=9, target_vocab=9).eval()
    source, real = torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)
    memory = model.encode(source, real).memory
    turned = model.encode(source.flip(1), real).memory.flip(1)
    torch.testing.assert_close(memory, turned)  # the bias is symmetric, so only distance counts
    swapped = model.encode(torch.tensor([[6, 5, 7]]), real).memory
    assert not torch.allclose(memory[:, 2], swapped[:, 2])


def test_the_example_of_a_task_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    toy = run(example("Add a task"), "toy_mean")
    monkeypatch.setitem(sys.modules, "toy_mean", toy)
    monkeypatch.setitem(TASKS, "mean", "toy_mean")
    trained = regard.train(toy.MeanRecipe(), data=[1, 2, 3], out=tmp_path / "mean", progress=False)
    assert trained.model == 2.0
    assert regard.load(tmp_path / "mean") == 2.0


def test_the_example_of_a_format_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READERS, "properties", READERS["text"])
    monkeypatch.setitem(ENDINGS, ".properties", "text")
    run(example("Add a document format"))
    path = Path("menu.properties")
    content = b"# a menu\nopen = Open a file\n\nclose=Close\n"
    found = read_document(content, path=path, kind=format_of(path), languages=Languages())
    assert [segment.text for segment in found.segments] == ["Open a file", "Close"]
    assert found.filled(["X", "Y"]) == "# a menu\nopen =X\n\nclose=Y\n"


def test_the_example_of_a_layout_works() -> None:
    example_of = run(example("Add a foreign layout of weights"))
    layer = FeedForward(4, hidden=6, activation="relu")
    shapes = {"ffn_W1": (4, 6), "ffn_b1": (1, 6), "ffn_W2": (6, 4), "ffn_b2": (1, 4)}
    theirs = {name: torch.randn(shape) for name, shape in shapes.items()}
    more = {"ffn_step": torch.ones(1)}
    back = example_of.there_and_back(layer, theirs | more, "w.npz")
    torch.testing.assert_close(layer.inner.weight.data, theirs["ffn_W1"].T)
    assert back.keys() == theirs.keys()
    assert all(torch.equal(back[name], theirs[name]) for name in theirs)
    with pytest.raises(RunError, match=r"w.npz has no tensor 'ffn_b1'"):
        del theirs["ffn_b1"]
        example_of.there_and_back(layer, theirs, "w.npz")
