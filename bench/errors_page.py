"""Writes `docs/errors.md`: every message about a user's mistake, as it stands in the code.

    python bench/errors_page.py [--check]

The page is made from the source, so that it cannot say anything else: every `raise` of one of the
errors of `regard.base.errors`, the refusals of the server, and the checks of settings. `{name}`
stands for a value. With --check nothing is written; the exit code says whether the page is current.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "regard"
PAGE = ROOT / "docs" / "errors.md"
ERRORS = {"DataError", "SettingsError", "RunError", "RegardError", "ApiError", "bad_request"}
ROOMS = {
    "settings": "Recipes and settings",
    "corpora": "Files of data and documents",
    "text": "Tokenizers",
    "models": "Models",
    "training": "Checkpoints and training",
    "decoding": "Search and constraints",
    "engines": "Engines",
    "exchange": "Models of other programs",
    "runs": "Run folders",
    "tasks": "Tasks",
    "documents": "Translating files",
    "studies": "Studies and comparisons",
    "pictures": "Pictures",
    "scoring": "Scores",
    "serving": "The server (the answer to a request, with its status)",
    "cli": "Commands",
}
HEAD = """# Messages

Every message about a mistake that a user can mend, made from the source by
`python bench/errors_page.py`. `{name}` stands for a value; where the second column is empty, the
message itself says what to do. A command prints it after `Error:` and exits with 2; a Python call
raises it as a `regard.RegardError`; the server answers with its status and `{"error": ...}`. A
message about a file begins with its path and, where it is known, the line.

What the operating system refuses (a full disk, a read-only folder, a missing permission) is said in
one sentence too, with exit code 2. If the memory is full, the exit code is 1; after an interruption
it is 130. Anything with a traceback is a bug: please report it.
"""


class Message(NamedTuple):
    """What is said and what to do about it."""

    room: str
    problem: str
    remedy: str


def messages() -> Iterator[Message]:
    """Yield the messages of all rooms, in the order of the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        room = parts[0] if len(parts) > 1 else "tasks"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                yield from _of_call(node, room if room in ROOMS else "runs")
            elif isinstance(node, ast.Raise) and "settings" in str(path.relative_to(SOURCE)):
                yield from _of_check(node, room)


def _of_call(call: ast.Call, room: str) -> Iterator[Message]:
    """Yield the message of an error that is made here, if it is written here."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else name
    if name not in ERRORS or not call.args:
        return
    said = [_text(argument) for argument in call.args]
    remedy = next((_text(one.value) for one in call.keywords if one.arg == "remedy"), "")
    if name in ("ApiError", "bad_request"):
        status = ast.unparse(call.args[0]) if name == "ApiError" else "400"
        problem = said[1] if name == "ApiError" and len(said) > 1 else said[0]
        if problem:
            yield Message("serving", problem, status)
    elif said[0]:
        yield Message(room, said[0], remedy)


def _of_check(node: ast.Raise, room: str) -> Iterator[Message]:
    """Yield the message of a check of settings, which pydantic turns into a SettingsError."""
    call = node.exc
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
        text = _text(call.args[0])
        if call.func.id == "ValueError" and text:
            yield Message(room, text, "")


def _text(node: ast.expr) -> str:
    """Return a text as it is written, with names for its values; empty if it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return f"{{{_name(node.value)}}}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.IfExp):
        return _text(node.body) or _text(node.orelse)
    return ""


def _name(value: ast.expr) -> str:
    """Return what a value in a message is called."""
    while not isinstance(value, ast.Name | ast.Attribute):
        inner = [child for child in ast.iter_child_nodes(value) if isinstance(child, ast.expr)]
        if not inner:
            return "..."
        value = inner[-1] if isinstance(value, ast.Call) and value.args else inner[0]
    found = value.id if isinstance(value, ast.Name) else value.attr
    return found.strip("_").lower() or "..."


def page() -> str:
    """Return the page."""
    every = list(dict.fromkeys(messages()))
    parts = [HEAD]
    for room, title in ROOMS.items():
        own = [one for one in every if one.room == room]
        if not own:
            continue
        second = "status" if room == "serving" else "what to do"
        parts.append(f"\n## {title}\n\n| message | {second} |\n|---|---|\n")
        parts += [f"| {_cell(one.problem)} | {_cell(one.remedy)} |\n" for one in own]
    return "".join(parts)


def _cell(text: str) -> str:
    plain = " ".join(text.split()).replace("|", "\\|")
    return plain.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("`", "")


def main() -> None:
    """Write the page, or check it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="only say whether it is current")
    given = options.parse_args()
    made = page()
    if given.check:
        current = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made
        if not current:
            sys.exit("docs/errors.md is out of date: run python bench/errors_page.py")
        return
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
